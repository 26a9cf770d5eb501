package config

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/karmada-toolkit/karmada/internal/imagearchive"
	"github.com/karmada-toolkit/karmada/internal/pki"
	"github.com/karmada-toolkit/karmada/internal/version"
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
	// Names are those of the objects in the host cluster; nil keeps those of init.
	Names components.Naming
	// SystemNamespace of the control plane in its own API; empty means that it is called as Namespace.
	SystemNamespace string

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
	// Servers are workloads beside the usual ones that have a certificate of their own.
	Servers []string
	// Early is how much earlier than usual certificates are made again.
	Early time.Duration
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
		HostEndpoint: o.Host.Endpoint, Namespace: o.APIServer.Namespace, Domain: o.Host.Domain,
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
	r.Timeout = cmp.Or(r.Timeout, Unlimited)
	for _, c := range o.components() {
		r.Workloads = append(r.Workloads, Workload{
			Name: c.name, Flag: c.flag, Replicas: c.Replicas, PriorityClass: c.PriorityClass, ExtraArgs: c.ExtraArgs, Pod: c.PodSettings,
		})
	}
	return r, nil
}

func (c *CertificateOptions) request() Certificates {
	out := Certificates{
		ExternalIPs: splitList(string(c.ExternalIP)), ExternalDNS: splitList(string(c.ExternalDNS)), Validity: c.Validity.Duration,
		CACertFile: c.CACertFile, CAKeyFile: c.CAKeyFile, Algorithm: pki.ECDSA,
	}
	if c.KeyAlgorithm == KeyRSA {
		out.Algorithm = pki.RSA
	}
	return out
}

func (e *EtcdOptions) request() (Etcd, error) {
	selector, err := parseLabels(string(e.NodeSelector))
	if err != nil {
		return Etcd{}, fmt.Errorf("the etcdNodeSelector format is incorrect: %w", err)
	}
	out := Etcd{
		Replicas: e.Replicas, StorageMode: cmp.Or(e.StorageMode, components.StorageEmptyDir), DataPath: e.DataPath, NodeSelector: selector, Tolerations: e.Tolerations,
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

// parseExtraArgs restores what a list flag split at commas: an element that does
// not begin with "--" belongs to the one before.
func parseExtraArgs(list []string) ([]string, error) {
	valid := regexp.MustCompile(`^--[a-zA-Z][a-zA-Z0-9_-]*(=.*)?$`)
	var out []string
	for _, arg := range list {
		switch {
		case strings.TrimSpace(arg) != arg:
			return nil, fmt.Errorf("argument %q contains leading/trailing whitespace", arg)
		case strings.HasPrefix(arg, "--"):
			out = append(out, arg)
		case len(out) == 0:
			return nil, fmt.Errorf("argument %q is invalid: no preceding --key found", arg)
		default:
			out[len(out)-1] += "," + arg
		}
	}
	for _, arg := range out {
		if !valid.MatchString(arg) {
			return nil, fmt.Errorf("invalid argument: %s", arg)
		}
	}
	return out, nil
}

// overrideArgs replaces arguments by those of the same name.
func overrideArgs(args, by []string) []string {
	name := func(arg string) string { n, _, _ := strings.Cut(arg, "="); return n }
	var out []string
	for _, arg := range args {
		if !slices.ContainsFunc(by, func(b string) bool { return name(b) == name(arg) }) {
			out = append(out, arg)
		}
	}
	return append(out, by...)
}

// ownRepository is the name of the image that "make image" builds, without its tag.
const ownRepository = "karmada/karmada"

// OwnImage returns the name of the image of a build, with its registry.
func OwnImage(build version.Info) string {
	return imagearchive.Canonical(ownRepository + ":" + strings.ReplaceAll(build.GitVersion, "+", "-"))
}

// FindArchive returns the path of the image archive beside a program: karmada.tar
// in the same directory, or where "make image" writes it in a source tree. It is
// empty when there is none, or only that of another build.
func FindArchive(executable string, build version.Info) string {
	dir := filepath.Dir(executable)
	for _, path := range []string{filepath.Join(dir, "karmada.tar"), filepath.Join(dir, "..", "_output", "karmada.tar")} {
		if _, err := os.Stat(path); err != nil {
			continue
		}
		names, err := imagearchive.Names(path)
		if err == nil && slices.Contains(canonicalNames(names), OwnImage(build)) {
			return path
		}
	}
	return ""
}

func canonicalNames(images []string) []string {
	var out []string
	for _, image := range images {
		out = append(out, imagearchive.Canonical(image))
	}
	return out
}

// hasOwn reports whether the image of a build is among the available ones, by any of
// its names: nodes report no more than five of each image. The names of the roles
// have the tag of the release; where that is not of this build alone they do
// not identify it.
func hasOwn(build version.Info, available []string) bool {
	return slices.ContainsFunc(available, func(image string) bool {
		return image == OwnImage(build) ||
			build.Release() == build.GitVersion && strings.HasPrefix(image, karmadaRegistry+"/karmada-") && strings.HasSuffix(image, ":"+build.Release())
	})
}
