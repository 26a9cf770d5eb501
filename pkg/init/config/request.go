package config

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/karmada-toolkit/karmada/internal/pki"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
)

// Unlimited is the timeout of a wait without a limit.
const Unlimited = 24 * time.Hour

// Request is the control plane that is wanted: options that were checked and parsed. It does not change.
type Request struct {
	// HostEndpoint replaces the server of the host's kubeconfig, unless it is empty.
	HostEndpoint string
	// Namespace and Domain of the host cluster.
	Namespace, Domain string

	Images      ImageSet
	PullPolicy  corev1.PullPolicy
	PullSecrets []string

	Certificates Certificates
	Etcd         Etcd
	APIServer    APIServer
	// Workloads are the parts of the control plane, etcd among them.
	Workloads []Workload

	// CRDs is a directory, an archive or the URL of an archive; empty means those that are built in.
	CRDs      string
	Directory Directory
	// Timeout is how long each part may take to become ready.
	Timeout time.Duration
	// OfferToken returns a bootstrap token for the next commands.
	OfferToken bool

	phases PhaseOptions
}

// Workload is one part of the control plane.
type Workload struct {
	// Name of the workload, Flag is the prefix of its flags.
	Name, Flag    string
	Replicas      int32
	PriorityClass string
	ExtraArgs     []string
	Pod           components.PodSettings
}

// Certificates are how certificates are made.
type Certificates struct {
	// ExternalIPs and ExternalDNS are further names of the API server.
	ExternalIPs, ExternalDNS []string
	Validity                 time.Duration
	// CACertFile and CAKeyFile are an authority to use instead of a new one; both are empty or none.
	CACertFile, CAKeyFile string
	Algorithm             pki.Algorithm
}

// APIServer is how the API server is reached.
type APIServer struct {
	// AdvertiseAddress is the IP address in the kubeconfig; empty means that of a node.
	AdvertiseAddress   string
	NodePort           int32
	ServiceAnnotations map[string]string
}

// Etcd is the store of the control plane.
type Etcd struct {
	Replicas int32
	// StorageMode is hostPath, emptyDir or PVC.
	StorageMode string
	// DataPath and NodeSelector are for hostPath. Without a selector the installer chooses a node.
	DataPath     string
	NodeSelector map[string]string
	Tolerations  []corev1.Toleration
	// StorageClass and PVCSize are for PVC.
	StorageClass, PVCSize string
	// External is an etcd to use instead of a new one, or nil.
	External *ExternalEtcdOptions
}

// OnNode reports whether etcd keeps its data in a directory of a node.
func (e *Etcd) OnNode() bool { return e.External == nil && e.StorageMode == components.StorageHostPath }

// Directory is where the local files of an installation are.
type Directory struct {
	// Data is of the administrator's kubeconfig, PKI of the certificates.
	Data, PKI string
}

// Request checks the options and returns the first error. program is what the user types, for the next step; phases
// are the names of all phases.
func (o *Options) Request(program string, phases []string) (*Request, error) {
	if err := o.validate(program, phases); err != nil {
		return nil, err
	}
	etcd, err := o.Etcd.request()
	if err != nil {
		return nil, err
	}
	r := &Request{
		HostEndpoint: o.Host.Endpoint, Namespace: o.Namespace, Domain: o.Domain,
		Images: o.ImageSet(), PullPolicy: corev1.PullPolicy(o.Images.PullPolicy), PullSecrets: o.Images.PullSecrets,
		Certificates: o.Certificates.request(),
		Etcd:         etcd,
		APIServer: APIServer{
			AdvertiseAddress: o.APIServer.AdvertiseAddress, NodePort: o.APIServer.NodePort, ServiceAnnotations: o.APIServer.ServiceAnnotations,
		},
		CRDs:       o.CRDs,
		Directory:  Directory{Data: o.DataPath, PKI: o.PKIPath},
		Timeout:    time.Duration(o.WaitSeconds) * time.Second,
		OfferToken: o.OfferToken,
		phases:     o.Phases,
	}
	if o.PKIPath == DefaultPKIPath && o.DataPath != DefaultDataPath {
		r.Directory.PKI = o.DataPath + "/pki" // beside the kubeconfig when only that was moved
	}
	if r.CRDs == NewOptions().CRDs {
		r.CRDs = ""
	}
	if r.Timeout == 0 {
		r.Timeout = Unlimited
	}
	for _, c := range o.components() {
		r.Workloads = append(r.Workloads, Workload{
			Name: c.name, Flag: c.flag, Replicas: c.Replicas, PriorityClass: c.PriorityClass, ExtraArgs: c.ExtraArgs, Pod: c.Pod,
		})
	}
	return r, nil
}

func (c *CertificateOptions) request() Certificates {
	out := Certificates{
		ExternalIPs: splitList(c.ExternalIP), ExternalDNS: splitList(c.ExternalDNS), Validity: c.Validity,
		CACertFile: c.CACertFile, CAKeyFile: c.CAKeyFile, Algorithm: pki.ECDSA,
	}
	if c.KeyAlgorithm == KeyRSA {
		out.Algorithm = pki.RSA
	}
	return out
}

func (e *EtcdOptions) request() (Etcd, error) {
	selector, err := parseLabels(e.NodeSelector)
	if err != nil {
		return Etcd{}, fmt.Errorf("the etcdNodeSelector format is incorrect: %w", err)
	}
	out := Etcd{
		Replicas: e.Replicas, StorageMode: cmp.Or(e.StorageMode, components.StorageEmptyDir), DataPath: e.DataPath, NodeSelector: selector, Tolerations: e.Pod.Tolerations,
		StorageClass: e.StorageClass, PVCSize: e.PVCSize,
	}
	if e.External.used() {
		out.External = new(e.External)
	}
	return out, nil
}

// Runs reports whether a phase is to run.
func (r *Request) Runs(phase string) bool {
	return (len(r.phases.Only) == 0 || slices.Contains(r.phases.Only, phase)) && !slices.Contains(r.phases.Skip, phase)
}

// InDirectory returns the request with the local files in another directory.
func (r *Request) InDirectory(d Directory) *Request {
	out := *r
	out.Directory = d
	return &out
}

// WithImages returns the request with other images.
func (r *Request) WithImages(images ImageSet) *Request {
	out := *r
	out.Images = images
	return &out
}
