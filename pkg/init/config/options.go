// Package config is the request for an installation: flags and a configuration file, checked once and parsed.
package config

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

// Options are the flags and the configuration file of an installation, not checked yet. NewOptions returns the
// defaults, Request the checked values.
type Options struct {
	// ConfigFile is a KarmadaInitConfig whose values override those given here. Complete reads it.
	ConfigFile string

	// Host is the cluster that the control plane runs on.
	Host HostOptions
	// Namespace of the control plane in the host cluster.
	Namespace string
	// Domain is the DNS domain of the host cluster.
	Domain string

	Images       ImageOptions
	Certificates CertificateOptions
	Etcd         EtcdOptions

	// The parts of the control plane.
	APIServer             APIServerOptions
	Aggregated            ComponentOptions
	KubeControllerManager ComponentOptions
	Scheduler             ComponentOptions
	ControllerManager     ComponentOptions
	Webhook               ComponentOptions

	// CRDs is a directory, an archive or the URL of an archive with the APIs of the federation. Empty, and the default
	// URL, mean those that are built in; nothing is downloaded then.
	CRDs string
	// DataPath is the local directory of the administrator's kubeconfig.
	DataPath string
	// PKIPath is the local directory of the certificates.
	PKIPath string
	// WaitSeconds is how long each part may take to become ready; 0 is without limit.
	WaitSeconds int

	Phases PhaseOptions
	// OfferToken returns a bootstrap token for the next commands.
	OfferToken bool
}

// PhaseOptions choose phases by name. At most one of the two may be used.
type PhaseOptions struct{ Only, Skip []string }

// HostOptions configure how the host cluster is reached. The installer receives a rest.Config; these are for the
// command that makes it.
type HostOptions struct {
	Kubeconfig, Context string
	// Endpoint replaces the server of the kubeconfig.
	Endpoint string
}

// ImageOptions configure where images come from.
type ImageOptions struct {
	PrivateRegistry string
	PullPolicy      string
	PullSecrets     []string
	// MirrorCountry is a code, such as "cn" or "global".
	MirrorCountry string
	KubeRegistry  string
	KubeTag       string
}

// CertificateOptions configure how certificates are made.
type CertificateOptions struct {
	// ExternalIP and ExternalDNS are further names of the API server, separated by commas.
	ExternalIP, ExternalDNS string
	// Validity of certificates other than authorities.
	Validity time.Duration
	// CACertFile and CAKeyFile are an authority to use instead of a new one.
	CACertFile, CAKeyFile string
	// KeyAlgorithm of new keys: KeyECDSA or KeyRSA.
	KeyAlgorithm string
}

// ComponentOptions configure one part of the control plane.
type ComponentOptions struct {
	Image         string
	Replicas      int32
	PriorityClass string
	// ExtraArgs are "--name=value", each replacing the default of that name.
	ExtraArgs []string
	// Pod configures where its pods run.
	Pod components.PodSettings
}

// APIServerOptions configure the API server of the control plane.
type APIServerOptions struct {
	ComponentOptions
	// AdvertiseAddress is the address in the kubeconfig, instead of a node's.
	AdvertiseAddress string
	// NodePort of its Service.
	NodePort int32
	// ServiceAnnotations are added to its Service.
	ServiceAnnotations map[string]string
}

// EtcdOptions configure the store of the control plane.
type EtcdOptions struct {
	ComponentOptions
	// StorageMode is hostPath, emptyDir or PVC; empty means emptyDir.
	StorageMode string
	// DataPath on the node, for hostPath.
	DataPath string
	// NodeSelector is "key=value,key=value", for hostPath.
	NodeSelector string
	// StorageClass and PVCSize are for PVC.
	StorageClass, PVCSize string
	External              ExternalEtcdOptions
}

// ExternalEtcdOptions configure an etcd that exists already.
type ExternalEtcdOptions struct {
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
	component := func(name string) ComponentOptions {
		c := ComponentOptions{Replicas: 1, PriorityClass: DefaultPriorityClass}
		if name != "" {
			c.Image = DefaultImage(name, release)
		}
		return c
	}
	return Options{
		Namespace: DefaultNamespace,
		Domain:    DefaultDomain,
		Images:    ImageOptions{PullPolicy: defaultPullPolicy, KubeTag: defaultKubeTag},
		Certificates: CertificateOptions{
			Validity: defaultValidity, KeyAlgorithm: KeyECDSA,
		},
		Etcd: EtcdOptions{
			ComponentOptions: component(""), StorageMode: components.StorageHostPath, DataPath: DefaultEtcdDataPath, PVCSize: defaultEtcdSize,
		},
		APIServer:             APIServerOptions{ComponentOptions: component(""), NodePort: DefaultNodePort},
		Aggregated:            component(components.AggregatedAPIServer),
		KubeControllerManager: component(""),
		Scheduler:             component(components.Scheduler),
		ControllerManager:     component(components.ControllerManager),
		Webhook:               component(components.Webhook),
		CRDs:                  defaultCRDs(version.Get()),
		DataPath:              DefaultDataPath,
		PKIPath:               DefaultPKIPath,
		WaitSeconds:           defaultTimeout,
		OfferToken:            true,
	}
}

// SetKarmadaImage uses one image for every part that is not Kubernetes' own.
func (o *Options) SetKarmadaImage(image string) {
	for _, c := range []*ComponentOptions{&o.Aggregated, &o.Scheduler, &o.ControllerManager, &o.Webhook} {
		c.Image = image
	}
}

// components are the parts with the names of their workloads and flags.
func (o *Options) components() []component {
	return []component{
		{components.Etcd, "etcd", &o.Etcd.ComponentOptions},
		{components.APIServer, "karmada-apiserver", &o.APIServer.ComponentOptions},
		{components.AggregatedAPIServer, "karmada-aggregated-apiserver", &o.Aggregated},
		{components.KubeControllerManager, "karmada-kube-controller-manager", &o.KubeControllerManager},
		{components.Scheduler, "karmada-scheduler", &o.Scheduler},
		{components.ControllerManager, "karmada-controller-manager", &o.ControllerManager},
		{components.Webhook, "karmada-webhook", &o.Webhook},
	}
}

type component struct {
	// name of the workload, flag is the prefix of its flags.
	name, flag string
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
