// Package config is the configuration of an installation: defaults, a file and flags, checked once.
package config

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/karmada-toolkit/karmada/internal/pki"
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
	// DefaultPriorityClass is of the pods of the control plane.
	DefaultPriorityClass = "system-node-critical"

	// DefaultEtcdDataPath is on the node of etcd.
	DefaultEtcdDataPath = "/var/lib/karmada-etcd"
	defaultEtcdSize     = "5Gi"
	defaultKubeTag      = "v1.36.2"
	defaultValidity     = 365 * 24 * time.Hour
	defaultTimeout      = 120
	defaultAPITimeout   = 30
	etcdTag             = "3.6.8-0"
	kubeRegistry        = "registry.k8s.io"
	karmadaRegistry     = "docker.io/karmada"
	chinaKubeRegistry   = "registry.cn-hangzhou.aliyuncs.com/google_containers"
	crdsDefaultPattern  = "https://github.com/karmada-io/karmada/releases/download/%s/crds.tar.gz"
)

// Unlimited is the timeout of a wait without a limit.
const Unlimited = 24 * time.Hour

// Key algorithms of new certificates.
const (
	KeyECDSA = "ecdsa"
	KeyRSA   = "rsa"
)

// Configuration is the control plane that is wanted. Flags are bound to its fields, and the spec of a KarmadaInitConfig is decoded
// into them: the fields of the contract have its names, those that are ours stand beside them. New returns the defaults, Complete
// and Validate make it ready for use; it does not change after that.
type Configuration struct {
	// ConfigFile is a KarmadaInitConfig, which Complete reads.
	ConfigFile string `json:"-"`

	// Host is the cluster that the control plane runs on.
	Host         Host         `json:"hostCluster,omitzero"`
	Images       Images       `json:"images,omitzero"`
	Certificates Certificates `json:"certificates,omitzero"`
	Etcd         Etcd         `json:"etcd,omitzero"`

	Components `json:"components,omitzero"`
	// Addons are the optional parts. An installation leaves them out.
	Addons Addons `json:"-"`

	// Compact runs the roles of Karmada in one workload, AllInOne.
	Compact bool `json:"compact,omitempty"`

	// CRDs is a directory, an archive or the URL of an archive with the APIs of the federation. Empty, and the default
	// URL, mean those that are built in; nothing is downloaded then.
	CRDs string `json:"karmadaCRDs,omitempty"`
	// DataPath is the local directory of the administrator's kubeconfig.
	DataPath string `json:"karmadaDataPath,omitempty"`
	// PKIPath is the local directory of the certificates.
	PKIPath string `json:"karmadaPKIPath,omitempty"`
	// WaitSeconds is how long each part may take to become ready; 0 is without limit.
	WaitSeconds int `json:"waitComponentReadyTimeout,omitempty"`

	// Names are those of the objects in the host cluster; nil keeps those of init. Labels are on each of them in place of
	// components.BootstrapLabel.
	Names  components.Naming `json:"-"`
	Labels map[string]string `json:"-"`
	// KeepScale keeps the replicas of Deployments that something else has set through their scale.
	KeepScale bool `json:"-"`
	// With are the addons that are installed with the control plane, by the names of their workloads.
	With []string `json:"-"`
	// SystemNamespace of the control plane in its own API; empty means that it is called as its namespace in the host cluster.
	SystemNamespace string `json:"-"`

	Phases Phases `json:"-"`
	// OfferToken returns a bootstrap token for the next commands.
	OfferToken bool `json:"-"`
}

// Phases choose phases by name. At most one of the two may be used.
type Phases struct{ Only, Skip []string }

// Host is how the host cluster is reached. The installer receives a rest.Config; all but Endpoint and Domain are for the command
// that makes it.
type Host struct {
	Kubeconfig string `json:"kubeconfig,omitempty"`
	Context    string `json:"context,omitempty"`
	// Endpoint replaces the server of the kubeconfig.
	Endpoint string `json:"apiEndpoint,omitempty"`
	// Domain is the DNS domain of the host cluster.
	Domain string `json:"domain,omitempty"`
	// SecretRef cannot be used: a cluster whose Secrets can be read is reached already.
	SecretRef *corev1.LocalObjectReference `json:"secretRef,omitempty"`
}

// Images are where images come from.
type Images struct {
	Registry   `json:"privateRegistry,omitzero"`
	PullPolicy corev1.PullPolicy `json:"imagePullPolicy,omitempty"`
	// PullSecrets are names of Secrets for pulling images.
	PullSecrets []string `json:"imagePullSecrets,omitempty"`
	// MirrorCountry is a code, such as "cn" or "global".
	MirrorCountry string `json:"kubeImageMirrorCountry,omitempty"`
	KubeRegistry  string `json:"kubeImageRegistry,omitempty"`
	KubeTag       string `json:"kubeImageTag,omitempty"`
}

// Registry is a registry that has all images.
type Registry struct {
	PrivateRegistry string `json:"registry,omitempty"`
}

// Certificates are how certificates are made.
type Certificates struct {
	// ExternalIP and ExternalDNS are further names of the API server.
	ExternalIP  List `json:"externalIP,omitempty"`
	ExternalDNS List `json:"externalDNS,omitempty"`
	// Validity of certificates other than authorities.
	Validity metav1.Duration `json:"validityPeriod,omitzero"`
	// CACertFile and CAKeyFile are an authority to use instead of a new one; both are empty or none.
	CACertFile string `json:"caCertFile,omitempty"`
	CAKeyFile  string `json:"caKeyFile,omitempty"`
	// KeyAlgorithm of new keys: KeyECDSA or KeyRSA.
	KeyAlgorithm string `json:"keyAlgorithm,omitempty"`
	// Servers are workloads beside the usual ones that have a certificate of their own.
	Servers []string `json:"-"`
	// Names are further names in the certificates of workloads.
	Names map[string][]string `json:"-"`
	// CA is an authority as CACertFile and CAKeyFile are, PEM. Nil means that there is none.
	CA *KeyPair `json:"-"`
	// Early is how much earlier than usual certificates are made again.
	Early time.Duration `json:"-"`
}

// KeyPair is a certificate and its key, PEM.
type KeyPair struct{ Cert, Key []byte }

// Algorithm returns the algorithm of new keys.
func (c *Certificates) Algorithm() pki.Algorithm {
	if c.KeyAlgorithm == KeyRSA {
		return pki.RSA
	}
	return pki.ECDSA
}

// Components are the parts of the control plane other than etcd.
type Components struct {
	APIServer             APIServer `json:"karmadaAPIServer,omitzero"`
	Aggregated            Component `json:"karmadaAggregatedAPIServer,omitzero"`
	KubeControllerManager Component `json:"kubeControllerManager,omitzero"`
	Scheduler             Component `json:"karmadaScheduler,omitzero"`
	ControllerManager     Component `json:"karmadaControllerManager,omitzero"`
	Webhook               Component `json:"karmadaWebhook,omitzero"`
	// AllInOne are the pods with the roles of Karmada in the compact layout. Its image is that of the controller-manager unless it has one.
	AllInOne Component `json:"karmadaAllInOne,omitzero"`
}

// Component is one part of the control plane.
type Component struct {
	// Image is the whole name of the image. A file may have Repository and Tag instead, which Complete joins.
	Image         string `json:"image,omitempty"`
	Repository    string `json:"repository,omitempty"`
	Tag           string `json:"tag,omitempty"`
	Replicas      int32  `json:"replicas,omitempty"`
	PriorityClass string `json:"priorityClassName,omitempty"`
	// ExtraArgs each replace the default of their name.
	ExtraArgs Args `json:"extraArgs,omitempty"`
	// PodSettings configure where its pods run.
	components.PodSettings `json:",inline"`
	// Further are settings of its workload that files and flags do not have. Those above replace theirs.
	Further components.Workload `json:"-"`
}

// APIServer is the API server of the control plane.
type APIServer struct {
	Component `json:",inline"`
	// AdvertiseAddress is the IP address in the kubeconfig, instead of a node's.
	AdvertiseAddress string `json:"advertiseAddress,omitempty"`
	Networking       `json:"networking,omitzero"`
	// ServiceAnnotations are added to its Service.
	ServiceAnnotations map[string]string `json:"serviceAnnotations,omitempty"`
	// ServiceType of its Service; empty means NodePort. LoadBalancerClass is that of the type LoadBalancer.
	ServiceType       corev1.ServiceType `json:"-"`
	LoadBalancerClass *string            `json:"-"`
	// Server is its URL for the administrator, instead of one with the address of a node.
	Server string `json:"-"`
}

// Networking is where the API server is found.
type Networking struct {
	// Namespace of the control plane in the host cluster.
	Namespace string `json:"namespace,omitempty"`
	// NodePort of the Service of the API server.
	NodePort int32 `json:"port,omitempty"`
}

// Etcd is the store of the control plane.
type Etcd struct {
	LocalEtcd `json:"local,omitzero"`
	// External is an etcd to use instead of a new one.
	External ExternalEtcd `json:"external,omitzero"`
}

// OnNode reports whether etcd keeps its data in a directory of a node.
func (e *Etcd) OnNode() bool {
	return !e.External.Used() && e.StorageMode == components.StorageHostPath
}

// LocalEtcd is an etcd that is installed.
type LocalEtcd struct {
	Component `json:",inline"`
	// StorageMode is hostPath, emptyDir or PVC; empty means emptyDir.
	StorageMode string `json:"storageMode,omitempty"`
	// DataPath on the node, for hostPath.
	DataPath string `json:"dataPath,omitempty"`
	// NodeLabels choose the node, for hostPath. Without any the installer chooses one.
	NodeLabels Labels `json:"nodeSelectorLabels,omitempty"`
	// StorageClass and PVCSize are for PVC.
	StorageClass string `json:"storageClassesName,omitempty"`
	PVCSize      string `json:"pvcSize,omitempty"`
	// Claim is the claim of each member, instead of one of StorageClass and PVCSize.
	Claim *corev1.PersistentVolumeClaimTemplate `json:"-"`
}

// ExternalEtcd is an etcd that exists already.
type ExternalEtcd struct {
	// Servers are its URLs. Empty means that there is none.
	Servers List `json:"endpoints,omitempty"`
	// CAFile, CertFile and KeyFile are local files.
	CAFile   string `json:"caFile,omitempty"`
	CertFile string `json:"certFile,omitempty"`
	KeyFile  string `json:"keyFile,omitempty"`
	// KeyPrefix of the control plane's keys.
	KeyPrefix string `json:"keyPrefix,omitempty"`
	// Files are the contents of the files etcd-ca.crt, etcd-client.crt and etcd-client.key, instead of those above.
	Files map[string][]byte `json:"-"`
}

// Used reports whether there is an external etcd.
func (x *ExternalEtcd) Used() bool { return len(x.Servers) > 0 }

// Addons are the optional parts of a control plane. An estimator is one for each of some members.
type Addons struct {
	Descheduler, MetricsAdapter, Estimator, Search Component
	// WaitSeconds is how long each API of an addon may take to be served; 0 is without limit.
	WaitSeconds int
}

// New returns the defaults.
func New() Configuration {
	release := version.Get().Release()
	component := func(name string) Component {
		c := Component{Replicas: 1, PriorityClass: DefaultPriorityClass}
		if name != "" {
			c.Image = DefaultImage(name, release)
		}
		return c
	}
	return Configuration{
		Host:         Host{Domain: DefaultDomain},
		Images:       Images{PullPolicy: corev1.PullIfNotPresent, KubeTag: defaultKubeTag},
		Certificates: Certificates{Validity: metav1.Duration{Duration: defaultValidity}, KeyAlgorithm: KeyECDSA},
		Etcd: Etcd{LocalEtcd: LocalEtcd{
			Component: component(""), StorageMode: components.StorageHostPath, DataPath: DefaultEtcdDataPath, PVCSize: defaultEtcdSize,
		}},
		Components: Components{
			APIServer:             APIServer{Component: component(""), Networking: Networking{Namespace: DefaultNamespace, NodePort: DefaultNodePort}},
			Aggregated:            component(components.AggregatedAPIServer),
			KubeControllerManager: component(""),
			Scheduler:             component(components.Scheduler),
			ControllerManager:     component(components.ControllerManager),
			Webhook:               component(components.Webhook),
			AllInOne:              component(""),
		},
		Addons: Addons{
			Descheduler: component(components.Descheduler), MetricsAdapter: component(components.MetricsAdapter),
			Estimator: component(components.Estimator), Search: component(components.Search), WaitSeconds: defaultAPITimeout,
		},
		CRDs:        defaultCRDs(version.Get()),
		DataPath:    DefaultDataPath,
		PKIPath:     DefaultPKIPath,
		WaitSeconds: defaultTimeout,
		OfferToken:  true,
	}
}

// Part is one part of a control plane.
type Part struct {
	// Name of its workload; Flag is the prefix of its flags, Path where it is in a file.
	Name, Flag, Path string
	*Component
}

// Parts returns the parts of the control plane in all layouts, etcd among them.
func (c *Configuration) Parts() []Part {
	return []Part{
		{components.Etcd, "etcd", "spec.etcd.local", &c.Etcd.Component},
		{components.APIServer, "karmada-apiserver", "spec.components.karmadaAPIServer", &c.APIServer.Component},
		{components.AggregatedAPIServer, "karmada-aggregated-apiserver", "spec.components.karmadaAggregatedAPIServer", &c.Aggregated},
		{components.KubeControllerManager, "karmada-kube-controller-manager", "spec.components.kubeControllerManager", &c.KubeControllerManager},
		{components.Scheduler, "karmada-scheduler", "spec.components.karmadaScheduler", &c.Scheduler},
		{components.ControllerManager, "karmada-controller-manager", "spec.components.karmadaControllerManager", &c.ControllerManager},
		{components.Webhook, "karmada-webhook", "spec.components.karmadaWebhook", &c.Webhook},
		{components.AllInOne, "karmada-all-in-one", "spec.components.karmadaAllInOne", &c.AllInOne},
	}
}

// Installs reports whether an installation has a workload.
func (c *Configuration) Installs(workload string) bool {
	switch workload {
	case components.Etcd:
		return !c.Etcd.External.Used()
	case components.AllInOne:
		return c.Compact
	}
	return !c.Compact || !slices.Contains(components.CompactParts(), workload)
}

// AddonParts returns the addons.
func (c *Configuration) AddonParts() []Part {
	return []Part{
		{Name: components.Descheduler, Flag: "descheduler", Component: &c.Addons.Descheduler},
		{Name: components.MetricsAdapter, Flag: "metrics-adapter", Component: &c.Addons.MetricsAdapter},
		{Name: components.Estimator, Flag: "estimator", Component: &c.Addons.Estimator},
		{Name: components.Search, Flag: "search", Component: &c.Addons.Search},
	}
}

// AllParts returns the parts of the control plane and those of the addons that are installed with it.
func (c *Configuration) AllParts() []Part {
	out := c.Parts()
	for _, part := range c.AddonParts() {
		if slices.Contains(c.With, part.Name) {
			out = append(out, part)
		}
	}
	return out
}

// Timeout returns how long each part may take to become ready.
func (c *Configuration) Timeout() time.Duration { return seconds(c.WaitSeconds) }

// Timeout returns how long each API of an addon may take to be served.
func (a *Addons) Timeout() time.Duration { return seconds(a.WaitSeconds) }

// seconds returns a timeout, where 0 is without limit.
func seconds(n int) time.Duration {
	return cmp.Or(time.Duration(n)*time.Second, Unlimited)
}

// CustomCRDs returns the source of the APIs of the federation, empty if they are those that are built in.
func (c *Configuration) CustomCRDs() string {
	if c.CRDs == defaultCRDs(version.Get()) {
		return ""
	}
	return c.CRDs
}

// Runs reports whether a phase is to run.
func (c *Configuration) Runs(phase string) bool {
	return (len(c.Phases.Only) == 0 || slices.Contains(c.Phases.Only, phase)) && !slices.Contains(c.Phases.Skip, phase)
}

// defaultCRDs returns the URL that stands for the APIs that are built in: that of the release, or none for a build of a
// commit, of which no archive exists. A build without a version has the URL of the contract.
func defaultCRDs(v version.Info) string {
	if !v.Released() && v.GitVersion != "v0.0.0-master" {
		return ""
	}
	return fmt.Sprintf(crdsDefaultPattern, v.Release())
}
