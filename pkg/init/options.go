package installer

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/karmada-toolkit/karmada/internal/version"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
)

// Defaults of an installation.
const (
	DefaultNamespace = "karmada-system"
	DefaultDomain    = "cluster.local"
	DefaultDataPath  = "/etc/karmada"
	DefaultPKIPath   = "/etc/karmada/pki"
	DefaultNodePort  = 32443

	defaultEtcdData    = "/var/lib/karmada-etcd"
	defaultEtcdSize    = "5Gi"
	defaultKubeTag     = "v1.36.2"
	defaultValidity    = 365 * 24 * time.Hour
	defaultTimeout     = 120
	defaultPriority    = "system-node-critical"
	defaultPullPolicy  = string(corev1.PullIfNotPresent)
	etcdTag            = "3.6.8-0"
	kubeRegistry       = "registry.k8s.io"
	karmadaRegistry    = "docker.io/karmada"
	chinaKubeRegistry  = "registry.cn-hangzhou.aliyuncs.com/google_containers"
	crdsDefaultPattern = "https://github.com/karmada-io/karmada/releases/download/%s/crds.tar.gz"
)

// Key algorithms of new certificates.
const (
	KeyECDSA = "ecdsa"
	KeyRSA   = "rsa"
)

// Options say which control plane is wanted. NewOptions returns the defaults.
type Options struct {
	// ConfigFile is a KarmadaInitConfig whose values override those given here.
	// Complete reads it.
	ConfigFile string

	// Host says which cluster the control plane runs on.
	Host Host
	// Namespace of the control plane in the host cluster.
	Namespace string
	// Domain is the DNS domain of the host cluster.
	Domain string

	Images       Images
	Certificates Certificates
	Etcd         Etcd

	// The parts of the control plane.
	APIServer             APIServer
	Aggregated            Component
	KubeControllerManager Component
	Scheduler             Component
	ControllerManager     Component
	Webhook               Component

	// CRDs is a directory, an archive or the URL of an archive with the APIs of the
	// federation. Empty, and the default URL, mean those that are built in; nothing
	// is downloaded then.
	CRDs string
	// DataPath is the local directory of the administrator's kubeconfig.
	DataPath string
	// PKIPath is the local directory of the certificates.
	PKIPath string
	// WaitSeconds is how long each part may take to become ready; 0 is for ever.
	WaitSeconds int

	// Only and Skip choose phases by name. At most one of them may be used.
	Only, Skip []string
	// OfferToken makes, or finds, a bootstrap token for the next commands.
	OfferToken bool
}

// Host says how the host cluster is reached. The installer is given a
// rest.Config; these are for the command that makes it.
type Host struct {
	Kubeconfig, Context string
	// Endpoint replaces the server of the kubeconfig.
	Endpoint string
}

// Images say where images come from.
type Images struct {
	PrivateRegistry string
	PullPolicy      string
	PullSecrets     []string
	// MirrorCountry is a code, such as "cn" or "global".
	MirrorCountry string
	KubeRegistry  string
	KubeTag       string
}

// Certificates say how certificates are made.
type Certificates struct {
	// ExternalIP and ExternalDNS are further names of the API server, separated by
	// commas.
	ExternalIP, ExternalDNS string
	// Validity of certificates other than authorities.
	Validity time.Duration
	// CACertFile and CAKeyFile are an authority to use instead of a new one.
	CACertFile, CAKeyFile string
	// KeyAlgorithm of new keys: KeyECDSA or KeyRSA.
	KeyAlgorithm string
}

// Component is one part of the control plane.
type Component struct {
	Image         string
	Replicas      int32
	PriorityClass string
	// ExtraArgs are "--name=value", each replacing the default of that name.
	ExtraArgs []string
	// Pod says where its pods run.
	Pod components.PodSettings
}

// APIServer is the API server of the control plane.
type APIServer struct {
	Component
	// AdvertiseAddress is the address in the kubeconfig, instead of a node's.
	AdvertiseAddress string
	// NodePort of its Service.
	NodePort int32
	// ServiceAnnotations are added to its Service.
	ServiceAnnotations map[string]string
}

// Etcd is the store of the control plane.
type Etcd struct {
	Component
	// StorageMode is hostPath, emptyDir or PVC; empty means emptyDir.
	StorageMode string
	// DataPath on the node, for hostPath.
	DataPath string
	// NodeSelector is "key=value,key=value", for hostPath.
	NodeSelector string
	// StorageClass and PVCSize are for PVC.
	StorageClass, PVCSize string
	External              ExternalEtcd
}

// ExternalEtcd is an etcd that is there already.
type ExternalEtcd struct {
	// Servers are its URLs, separated by commas. Empty means that there is none.
	Servers string
	// CAFile, CertFile and KeyFile are local files.
	CAFile, CertFile, KeyFile string
	// KeyPrefix of the control plane's keys.
	KeyPrefix string
}

// NewOptions returns the defaults.
func NewOptions() Options {
	release := version.Get().Release()
	component := func(name string) Component {
		c := Component{Replicas: 1, PriorityClass: defaultPriority}
		if name != "" {
			c.Image = defaultImage(name, release)
		}
		return c
	}
	return Options{
		Namespace: DefaultNamespace,
		Domain:    DefaultDomain,
		Images:    Images{PullPolicy: defaultPullPolicy, KubeTag: defaultKubeTag},
		Certificates: Certificates{
			Validity: defaultValidity, KeyAlgorithm: KeyECDSA,
		},
		Etcd: Etcd{
			Component: component(""), StorageMode: components.StorageHostPath, DataPath: defaultEtcdData, PVCSize: defaultEtcdSize,
		},
		APIServer:             APIServer{Component: component(""), NodePort: DefaultNodePort},
		Aggregated:            component(components.AggregatedAPIServer),
		KubeControllerManager: component(""),
		Scheduler:             component(components.Scheduler),
		ControllerManager:     component(components.ControllerManager),
		Webhook:               component(components.Webhook),
		CRDs:                  fmt.Sprintf(crdsDefaultPattern, release),
		DataPath:              DefaultDataPath,
		PKIPath:               DefaultPKIPath,
		WaitSeconds:           defaultTimeout,
		OfferToken:            true,
	}
}

// SetKarmadaImage uses one image for every part that is not Kubernetes' own.
func (o *Options) SetKarmadaImage(image string) {
	for _, c := range []*Component{&o.Aggregated, &o.Scheduler, &o.ControllerManager, &o.Webhook} {
		c.Image = image
	}
}

// named are the components with the names of their workloads and flags.
func (o *Options) named() []namedComponent {
	return []namedComponent{
		{components.Etcd, "etcd", &o.Etcd.Component},
		{components.APIServer, "karmada-apiserver", &o.APIServer.Component},
		{components.AggregatedAPIServer, "karmada-aggregated-apiserver", &o.Aggregated},
		{components.KubeControllerManager, "karmada-kube-controller-manager", &o.KubeControllerManager},
		{components.Scheduler, "karmada-scheduler", &o.Scheduler},
		{components.ControllerManager, "karmada-controller-manager", &o.ControllerManager},
		{components.Webhook, "karmada-webhook", &o.Webhook},
	}
}

type namedComponent struct {
	// name of the workload, flag is the prefix of its flags.
	name, flag string
	*Component
}

// external says whether the store is there already.
func (o *Options) external() bool { return o.Etcd.External.Servers != "" }

// pkiPath is the directory of the certificates: beside the kubeconfig when only
// that was moved.
func (o *Options) pkiPath() string {
	if o.PKIPath == DefaultPKIPath && o.DataPath != DefaultDataPath {
		return o.DataPath + "/pki"
	}
	return o.PKIPath
}
