package config

import (
	"fmt"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"sigs.k8s.io/yaml"
)

// configGroup and configKind identify the configuration file.
const (
	configGroup   = "config.karmada.io"
	configVersion = "v1alpha1"
	configKind    = "KarmadaInitConfig"
)

// InitConfig is the configuration file of an installation. What is empty in it
// leaves the flags as they are.
type InitConfig struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec            InitSpec          `json:"spec,omitempty"`
}

// InitSpec is the wanted control plane.
type InitSpec struct {
	Certificates              CertificatesSpec `json:"certificates,omitempty"`
	Etcd                      EtcdSpec         `json:"etcd,omitempty"`
	HostCluster               HostClusterSpec  `json:"hostCluster,omitempty"`
	Images                    ImagesSpec       `json:"images,omitempty"`
	Components                ComponentsSpec   `json:"components,omitempty"`
	KarmadaCRDs               string           `json:"karmadaCRDs,omitempty"`
	KarmadaDataPath           string           `json:"karmadaDataPath,omitempty"`
	KarmadaPKIPath            string           `json:"karmadaPKIPath,omitempty"`
	WaitComponentReadyTimeout int              `json:"waitComponentReadyTimeout,omitempty"`
}

// CertificatesSpec is how certificates are made.
type CertificatesSpec struct {
	CACertFile     string          `json:"caCertFile,omitempty"`
	CAKeyFile      string          `json:"caKeyFile,omitempty"`
	ExternalDNS    []string        `json:"externalDNS,omitempty"`
	ExternalIP     []string        `json:"externalIP,omitempty"`
	ValidityPeriod metav1.Duration `json:"validityPeriod,omitempty"`
}

// EtcdSpec is the store: a new one, or one that is there already.
type EtcdSpec struct {
	Local    *LocalEtcdSpec    `json:"local,omitempty"`
	External *ExternalEtcdSpec `json:"external,omitempty"`
}

// LocalEtcdSpec is a new store.
type LocalEtcdSpec struct {
	CommonSpec         `json:",inline"`
	DataPath           string            `json:"dataPath,omitempty"`
	PVCSize            string            `json:"pvcSize,omitempty"`
	NodeSelectorLabels map[string]string `json:"nodeSelectorLabels,omitempty"`
	StorageClassesName string            `json:"storageClassesName,omitempty"`
	StorageMode        string            `json:"storageMode,omitempty"`
}

// ExternalEtcdSpec is a store that is there already.
type ExternalEtcdSpec struct {
	Endpoints []string `json:"endpoints,omitempty"`
	CAFile    string   `json:"caFile,omitempty"`
	CertFile  string   `json:"certFile,omitempty"`
	KeyFile   string   `json:"keyFile,omitempty"`
	KeyPrefix string   `json:"keyPrefix,omitempty"`
}

// HostClusterSpec is how the host cluster is reached.
type HostClusterSpec struct {
	APIEndpoint string         `json:"apiEndpoint,omitempty"`
	Kubeconfig  string         `json:"kubeconfig,omitempty"`
	Context     string         `json:"context,omitempty"`
	Domain      string         `json:"domain,omitempty"`
	SecretRef   *SecretRefSpec `json:"secretRef,omitempty"`
}

// SecretRefSpec names a Secret. It cannot be used: a cluster whose Secrets can be
// read is reached already.
type SecretRefSpec struct {
	Name string `json:"name,omitempty"`
}

// ImagesSpec is where images come from.
type ImagesSpec struct {
	ImagePullPolicy        corev1.PullPolicy    `json:"imagePullPolicy,omitempty"`
	ImagePullSecrets       []string             `json:"imagePullSecrets,omitempty"`
	KubeImageMirrorCountry string               `json:"kubeImageMirrorCountry,omitempty"`
	KubeImageRegistry      string               `json:"kubeImageRegistry,omitempty"`
	KubeImageTag           string               `json:"kubeImageTag,omitempty"`
	PrivateRegistry        *PrivateRegistrySpec `json:"privateRegistry,omitempty"`
}

// PrivateRegistrySpec is a registry that has all images.
type PrivateRegistrySpec struct {
	Registry string `json:"registry,omitempty"`
}

// ComponentsSpec are the parts of the control plane.
type ComponentsSpec struct {
	KarmadaAPIServer           *APIServerSpec `json:"karmadaAPIServer,omitempty"`
	KarmadaAggregatedAPIServer *CommonSpec    `json:"karmadaAggregatedAPIServer,omitempty"`
	KubeControllerManager      *CommonSpec    `json:"kubeControllerManager,omitempty"`
	KarmadaControllerManager   *CommonSpec    `json:"karmadaControllerManager,omitempty"`
	KarmadaScheduler           *CommonSpec    `json:"karmadaScheduler,omitempty"`
	KarmadaWebhook             *CommonSpec    `json:"karmadaWebhook,omitempty"`
}

// APIServerSpec is the API server.
type APIServerSpec struct {
	CommonSpec         `json:",inline"`
	AdvertiseAddress   string            `json:"advertiseAddress,omitempty"`
	Networking         NetworkingSpec    `json:"networking,omitempty"`
	ServiceAnnotations map[string]string `json:"serviceAnnotations,omitempty"`
}

// NetworkingSpec is where the API server is found.
type NetworkingSpec struct {
	Namespace string `json:"namespace,omitempty"`
	Port      int32  `json:"port,omitempty"`
}

// CommonSpec are the settings of every part.
type CommonSpec struct {
	Repository   string                      `json:"repository,omitempty"`
	Tag          string                      `json:"tag,omitempty"`
	Replicas     int32                       `json:"replicas,omitempty"`
	Resources    corev1.ResourceRequirements `json:"resources,omitempty"`
	NodeSelector map[string]string           `json:"nodeSelector,omitempty"`
	Tolerations  []corev1.Toleration         `json:"tolerations,omitempty"`
	Affinity     *corev1.Affinity            `json:"affinity,omitempty"`
	ExtraArgs    []Arg                       `json:"extraArgs,omitempty"`
}

// Arg is an argument of a program; without a value it is "--name".
type Arg struct {
	Name  string `json:"name"`
	Value string `json:"value,omitempty"`
}

// Complete reads the configuration file, if one is named, and lets it override o.
func (o *Options) Complete() error {
	for _, c := range o.components() {
		args, err := parseExtraArgs(c.ExtraArgs)
		if err != nil {
			return fmt.Errorf("--%s-extra-args: %w", c.flag, err)
		}
		c.ExtraArgs = args
	}
	if o.ConfigFile == "" {
		return nil
	}
	cfg, err := LoadConfig(o.ConfigFile)
	if err != nil {
		return fmt.Errorf("failed to load karmada init configuration: %w", err)
	}
	if err := o.merge(cfg); err != nil {
		return fmt.Errorf("failed to parse karmada init configuration: %w", err)
	}
	return nil
}

// LoadConfig reads a configuration file. Fields that it does not know are errors.
func LoadConfig(path string) (*InitConfig, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("unable to read config from %q: %w", path, err)
	}
	text, err := yaml.YAMLToJSON(data)
	if err != nil {
		return nil, fmt.Errorf("unable to read config from %q: %w", path, err)
	}
	gvk, err := json.DefaultMetaFactory.Interpret(text)
	if err != nil {
		return nil, fmt.Errorf("unable to read config from %q: %w", path, err)
	}
	want := schema.GroupVersion{Group: configGroup, Version: configVersion}
	switch {
	case gvk.Kind == "" || gvk.Version == "":
		return nil, fmt.Errorf("invalid configuration for GroupVersionKind %s: kind and apiVersion is mandatory information that must be specified", gvk)
	case gvk.GroupVersion() != want:
		return nil, fmt.Errorf("invalid Group or Version: expected group %q and version %q, but got %q and %q", want.Group, want.Version, gvk.Group, gvk.Version)
	case gvk.Kind != configKind:
		return nil, fmt.Errorf("no %s kind was found in the YAML file; its kind is %q", configKind, gvk.Kind)
	}
	cfg := &InitConfig{}
	if err := yaml.UnmarshalStrict(data, cfg); err != nil {
		return nil, fmt.Errorf("unable to read config from %q: %w", path, err)
	}
	return cfg, nil
}

// merge lets what is not empty in the file override o.
func (o *Options) merge(cfg *InitConfig) error {
	s := &cfg.Spec
	if s.HostCluster.SecretRef != nil {
		return fmt.Errorf("spec.hostCluster.secretRef cannot be used: name a kubeconfig in spec.hostCluster.kubeconfig")
	}
	o.Certificates.merge(&s.Certificates)
	set(&o.Host.Kubeconfig, s.HostCluster.Kubeconfig)
	set(&o.Host.Context, s.HostCluster.Context)
	set(&o.Host.Endpoint, s.HostCluster.APIEndpoint)
	set(&o.Domain, s.HostCluster.Domain)
	o.Images.merge(&s.Images)
	set(&o.CRDs, s.KarmadaCRDs)
	set(&o.DataPath, s.KarmadaDataPath)
	set(&o.PKIPath, s.KarmadaPKIPath)
	set(&o.WaitSeconds, s.WaitComponentReadyTimeout)
	if err := o.Etcd.mergeStore(&s.Etcd); err != nil {
		return err
	}
	return o.mergeComponents(&s.Components)
}

func set[T comparable](to *T, value T) {
	var zero T
	if value != zero {
		*to = value
	}
}

func (c *CertificateOptions) merge(s *CertificatesSpec) {
	set(&c.CACertFile, s.CACertFile)
	set(&c.CAKeyFile, s.CAKeyFile)
	set(&c.ExternalDNS, strings.Join(s.ExternalDNS, ","))
	set(&c.ExternalIP, strings.Join(s.ExternalIP, ","))
	set(&c.Validity, s.ValidityPeriod.Duration)
}

func (i *ImageOptions) merge(s *ImagesSpec) {
	set(&i.PullPolicy, string(s.ImagePullPolicy))
	if len(s.ImagePullSecrets) > 0 {
		i.PullSecrets = s.ImagePullSecrets
	}
	set(&i.MirrorCountry, s.KubeImageMirrorCountry)
	set(&i.KubeRegistry, s.KubeImageRegistry)
	set(&i.KubeTag, s.KubeImageTag)
	if s.PrivateRegistry != nil {
		set(&i.PrivateRegistry, s.PrivateRegistry.Registry)
	}
}

func (e *EtcdOptions) mergeStore(s *EtcdSpec) error {
	if s.Local != nil && s.External != nil {
		return fmt.Errorf("spec.etcd has both local and external: keep the one that is wanted")
	}
	if x := s.External; x != nil {
		set(&e.External.Servers, strings.Join(x.Endpoints, ","))
		set(&e.External.CAFile, x.CAFile)
		set(&e.External.CertFile, x.CertFile)
		set(&e.External.KeyFile, x.KeyFile)
		set(&e.External.KeyPrefix, x.KeyPrefix)
	}
	l := s.Local
	if l == nil {
		return nil
	}
	set(&e.DataPath, l.DataPath)
	set(&e.PVCSize, l.PVCSize)
	set(&e.StorageClass, l.StorageClassesName)
	set(&e.StorageMode, l.StorageMode)
	set(&e.NodeSelector, FormatLabels(l.NodeSelectorLabels))
	return e.merge("spec.etcd.local", &l.CommonSpec)
}

func (o *Options) mergeComponents(s *ComponentsSpec) error {
	if a := s.KarmadaAPIServer; a != nil {
		set(&o.APIServer.AdvertiseAddress, a.AdvertiseAddress)
		set(&o.APIServer.NodePort, a.Networking.Port)
		set(&o.Namespace, a.Networking.Namespace)
		if len(a.ServiceAnnotations) > 0 {
			o.APIServer.ServiceAnnotations = a.ServiceAnnotations
		}
		if err := o.APIServer.merge("spec.components.karmadaAPIServer", &a.CommonSpec); err != nil {
			return err
		}
	}
	for _, c := range []struct {
		path string
		to   *ComponentOptions
		from *CommonSpec
	}{
		{"karmadaAggregatedAPIServer", &o.Aggregated, s.KarmadaAggregatedAPIServer},
		{"kubeControllerManager", &o.KubeControllerManager, s.KubeControllerManager},
		{"karmadaControllerManager", &o.ControllerManager, s.KarmadaControllerManager},
		{"karmadaScheduler", &o.Scheduler, s.KarmadaScheduler},
		{"karmadaWebhook", &o.Webhook, s.KarmadaWebhook},
	} {
		if c.from == nil {
			continue
		}
		if err := c.to.merge("spec.components."+c.path, c.from); err != nil {
			return err
		}
	}
	return nil
}

func (c *ComponentOptions) merge(path string, s *CommonSpec) error {
	if (s.Repository == "") != (s.Tag == "") {
		return fmt.Errorf("%s has only one of repository and tag: give both", path)
	}
	if s.Repository != "" {
		c.Image = s.Repository + ":" + s.Tag
	}
	set(&c.Replicas, s.Replicas)
	var args []string
	for i, arg := range s.ExtraArgs {
		if arg.Name == "" {
			return fmt.Errorf("%s: the extra args[%d] name is empty", path, i)
		}
		text := "--" + arg.Name
		if arg.Value != "" {
			text += "=" + arg.Value
		}
		args = append(args, text)
	}
	c.ExtraArgs = overrideArgs(c.ExtraArgs, args)
	if len(s.Resources.Requests) > 0 || len(s.Resources.Limits) > 0 {
		c.Pod.Resources = s.Resources
	}
	if len(s.NodeSelector) > 0 {
		c.Pod.NodeSelector = s.NodeSelector
	}
	if len(s.Tolerations) > 0 {
		c.Pod.Tolerations = s.Tolerations
	}
	if s.Affinity != nil {
		c.Pod.Affinity = s.Affinity
	}
	return nil
}
