// Package config is the request for an installation: flags and a configuration file, checked once and parsed.
package config

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
	defaultPullPolicy   = string(corev1.PullIfNotPresent)
	etcdTag             = "3.6.8-0"
	kubeRegistry        = "registry.k8s.io"
	karmadaRegistry     = "docker.io/karmada"
	chinaKubeRegistry   = "registry.cn-hangzhou.aliyuncs.com/google_containers"
	crdsDefaultPattern  = "https://github.com/karmada-io/karmada/releases/download/%s/crds.tar.gz"
)

// Key algorithms of new certificates.
const (
	KeyECDSA = "ecdsa"
	KeyRSA   = "rsa"
)

// Options are the flags and the configuration file of an installation, not checked yet: flags are bound to the fields, and
// the spec of a KarmadaInitConfig is decoded into them. NewOptions returns the defaults, Request the checked values.
type Options struct {
	// ConfigFile is a KarmadaInitConfig whose values override those given here. Complete reads it.
	ConfigFile string `json:"-"`

	// Host is the cluster that the control plane runs on.
	Host         HostOptions        `json:"hostCluster"`
	Images       ImageOptions       `json:"images"`
	Certificates CertificateOptions `json:"certificates"`
	Etcd         EtcdOptions        `json:"etcd"`

	ComponentsOptions `json:"components"`

	// CRDs is a directory, an archive or the URL of an archive with the APIs of the federation. Empty, and the default
	// URL, mean those that are built in; nothing is downloaded then.
	CRDs string `json:"karmadaCRDs"`
	// DataPath is the local directory of the administrator's kubeconfig.
	DataPath string `json:"karmadaDataPath"`
	// PKIPath is the local directory of the certificates.
	PKIPath string `json:"karmadaPKIPath"`
	// WaitSeconds is how long each part may take to become ready; 0 is without limit.
	WaitSeconds int `json:"waitComponentReadyTimeout"`

	Phases PhaseOptions `json:"-"`
	// OfferToken returns a bootstrap token for the next commands.
	OfferToken bool `json:"-"`
}

// PhaseOptions choose phases by name. At most one of the two may be used.
type PhaseOptions struct{ Only, Skip []string }

// HostOptions configure how the host cluster is reached. The installer receives a rest.Config; these are for the
// command that makes it.
type HostOptions struct {
	Kubeconfig string `json:"kubeconfig"`
	Context    string `json:"context"`
	// Endpoint replaces the server of the kubeconfig.
	Endpoint string `json:"apiEndpoint"`
	// Domain is the DNS domain of the host cluster.
	Domain string `json:"domain"`
	// SecretRef cannot be used: a cluster whose Secrets can be read is reached already.
	SecretRef *corev1.LocalObjectReference `json:"secretRef"`
}

// ImageOptions configure where images come from.
type ImageOptions struct {
	RegistryOptions `json:"privateRegistry"`
	PullPolicy      string   `json:"imagePullPolicy"`
	PullSecrets     []string `json:"imagePullSecrets"`
	// MirrorCountry is a code, such as "cn" or "global".
	MirrorCountry string `json:"kubeImageMirrorCountry"`
	KubeRegistry  string `json:"kubeImageRegistry"`
	KubeTag       string `json:"kubeImageTag"`
}

// RegistryOptions configure a registry that has all images.
type RegistryOptions struct {
	PrivateRegistry string `json:"registry"`
}

// CertificateOptions configure how certificates are made.
type CertificateOptions struct {
	// ExternalIP and ExternalDNS are further names of the API server.
	ExternalIP  List `json:"externalIP"`
	ExternalDNS List `json:"externalDNS"`
	// Validity of certificates other than authorities.
	Validity metav1.Duration `json:"validityPeriod"`
	// CACertFile and CAKeyFile are an authority to use instead of a new one.
	CACertFile string `json:"caCertFile"`
	CAKeyFile  string `json:"caKeyFile"`
	// KeyAlgorithm of new keys: KeyECDSA or KeyRSA.
	KeyAlgorithm string `json:"-"`
}

// ComponentsOptions configure the parts of the control plane other than etcd.
type ComponentsOptions struct {
	APIServer             APIServerOptions `json:"karmadaAPIServer"`
	Aggregated            ComponentOptions `json:"karmadaAggregatedAPIServer"`
	KubeControllerManager ComponentOptions `json:"kubeControllerManager"`
	Scheduler             ComponentOptions `json:"karmadaScheduler"`
	ControllerManager     ComponentOptions `json:"karmadaControllerManager"`
	Webhook               ComponentOptions `json:"karmadaWebhook"`
}

// ComponentOptions configure one part of the control plane.
type ComponentOptions struct {
	Image         string `json:"-"`
	Replicas      int32  `json:"replicas"`
	PriorityClass string `json:"-"`
	// ExtraArgs are "--name=value", each replacing the default of that name.
	ExtraArgs []string `json:"-"`
	// PodSettings configure where its pods run.
	components.PodSettings `json:",inline"`

	// FileOptions are what a file has instead of Image and ExtraArgs; Complete converts them.
	FileOptions `json:",inline"`
}

// FileOptions are an image and arguments in a configuration file.
type FileOptions struct {
	Repository string `json:"repository"`
	Tag        string `json:"tag"`
	Args       []Arg  `json:"extraArgs"`
}

// Arg is an argument of a program; without a value it is "--name".
type Arg struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// APIServerOptions configure the API server of the control plane.
type APIServerOptions struct {
	ComponentOptions `json:",inline"`
	// AdvertiseAddress is the address in the kubeconfig, instead of a node's.
	AdvertiseAddress  string `json:"advertiseAddress"`
	NetworkingOptions `json:"networking"`
	// ServiceAnnotations are added to its Service.
	ServiceAnnotations map[string]string `json:"serviceAnnotations"`
}

// NetworkingOptions configure where the API server is found.
type NetworkingOptions struct {
	// Namespace of the control plane in the host cluster.
	Namespace string `json:"namespace"`
	// NodePort of the Service of the API server.
	NodePort int32 `json:"port"`
}

// EtcdOptions configure the store of the control plane.
type EtcdOptions struct {
	LocalEtcdOptions `json:"local"`
	External         ExternalEtcdOptions `json:"external"`
}

// LocalEtcdOptions configure an etcd that is installed.
type LocalEtcdOptions struct {
	ComponentOptions `json:",inline"`
	// StorageMode is hostPath, emptyDir or PVC; empty means emptyDir.
	StorageMode string `json:"storageMode"`
	// DataPath on the node, for hostPath.
	DataPath string `json:"dataPath"`
	// NodeSelector is for hostPath.
	NodeSelector Labels `json:"nodeSelectorLabels"`
	// StorageClass and PVCSize are for PVC.
	StorageClass string `json:"storageClassesName"`
	PVCSize      string `json:"pvcSize"`
}

// ExternalEtcdOptions configure an etcd that exists already.
type ExternalEtcdOptions struct {
	// Servers are its URLs. Empty means that there is none.
	Servers List `json:"endpoints"`
	// CAFile, CertFile and KeyFile are local files.
	CAFile   string `json:"caFile"`
	CertFile string `json:"certFile"`
	KeyFile  string `json:"keyFile"`
	// KeyPrefix of the control plane's keys.
	KeyPrefix string `json:"keyPrefix"`
}

// List is a list separated by commas, as in flags; in a file it is an array.
type List string

// UnmarshalJSON implements json.Unmarshaler.
func (l *List) UnmarshalJSON(data []byte) error {
	var items []string
	err := json.Unmarshal(data, &items)
	*l = List(strings.Join(items, ","))
	return err
}

// Labels are "key=value,key=value", as in flags; in a file they are an object.
type Labels string

// UnmarshalJSON implements json.Unmarshaler.
func (l *Labels) UnmarshalJSON(data []byte) error {
	var labels map[string]string
	err := json.Unmarshal(data, &labels)
	*l = Labels(FormatLabels(labels))
	return err
}

// NewOptions returns the defaults.
func NewOptions() Options {
	release := version.Get().Release()
	component := func(name string) ComponentOptions {
		c := ComponentOptions{Replicas: 1, PriorityClass: DefaultPriorityClass}
		if name != "" {
			c.Image = DefaultImage(name, release)
		}
		return c
	}
	return Options{
		Host:         HostOptions{Domain: DefaultDomain},
		Images:       ImageOptions{PullPolicy: defaultPullPolicy, KubeTag: defaultKubeTag},
		Certificates: CertificateOptions{Validity: metav1.Duration{Duration: defaultValidity}, KeyAlgorithm: KeyECDSA},
		Etcd: EtcdOptions{LocalEtcdOptions: LocalEtcdOptions{
			ComponentOptions: component(""), StorageMode: components.StorageHostPath, DataPath: DefaultEtcdDataPath, PVCSize: defaultEtcdSize,
		}},
		ComponentsOptions: ComponentsOptions{
			APIServer: APIServerOptions{
				ComponentOptions: component(""), NetworkingOptions: NetworkingOptions{Namespace: DefaultNamespace, NodePort: DefaultNodePort},
			},
			Aggregated:            component(components.AggregatedAPIServer),
			KubeControllerManager: component(""),
			Scheduler:             component(components.Scheduler),
			ControllerManager:     component(components.ControllerManager),
			Webhook:               component(components.Webhook),
		},
		CRDs:        defaultCRDs(version.Get()),
		DataPath:    DefaultDataPath,
		PKIPath:     DefaultPKIPath,
		WaitSeconds: defaultTimeout,
		OfferToken:  true,
	}
}

// SetKarmadaImage uses one image for every part that is not Kubernetes' own.
func (o *Options) SetKarmadaImage(image string) {
	for _, c := range []*ComponentOptions{&o.Aggregated, &o.Scheduler, &o.ControllerManager, &o.Webhook} {
		c.Image = image
	}
}

// components are the parts with the names of their workloads, flags and fields of a file.
func (o *Options) components() []component {
	return []component{
		{components.Etcd, "etcd", "etcd.local", &o.Etcd.ComponentOptions},
		{components.APIServer, "karmada-apiserver", "components.karmadaAPIServer", &o.APIServer.ComponentOptions},
		{components.AggregatedAPIServer, "karmada-aggregated-apiserver", "components.karmadaAggregatedAPIServer", &o.Aggregated},
		{components.KubeControllerManager, "karmada-kube-controller-manager", "components.kubeControllerManager", &o.KubeControllerManager},
		{components.Scheduler, "karmada-scheduler", "components.karmadaScheduler", &o.Scheduler},
		{components.ControllerManager, "karmada-controller-manager", "components.karmadaControllerManager", &o.ControllerManager},
		{components.Webhook, "karmada-webhook", "components.karmadaWebhook", &o.Webhook},
	}
}

type component struct {
	// name of the workload, flag is the prefix of its flags, field where it is in the spec of a file.
	name, flag, field string
	*ComponentOptions
}

// defaultCRDs returns the URL that stands for the APIs that are built in: that of the release, or none for a build of a
// commit, of which no archive exists. A build without a version has the URL of the contract.
func defaultCRDs(v version.Info) string {
	if !v.Released() && v.GitVersion != "v0.0.0-master" {
		return ""
	}
	return fmt.Sprintf(crdsDefaultPattern, v.Release())
}
