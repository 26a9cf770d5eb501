package components

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BootstrapLabel is on everything in the host cluster that belongs to a control
// plane.
const BootstrapLabel = "karmada.io/bootstrapping"

// Values of BootstrapLabel.
const (
	SecretDefaults  = "secret-defaults"
	AppDefaults     = "app-defaults"
	ServiceDefaults = "service-defaults"
	ClaimDefaults   = "pvc-defaults"
)

// Installed selects the objects with BootstrapLabel.
func Installed() metav1.ListOptions { return metav1.ListOptions{LabelSelector: BootstrapLabel} }

// EtcdNodeLabel is on the node whose disk etcd uses.
const EtcdNodeLabel = "karmada.io/etcd"

// Ports of the control plane.
const (
	apiServerPort  = 5443
	etcdClientPort = 2379
	etcdPeerPort   = 2380
	etcdProbePort  = 2381
	httpsPort      = 443
	webhookPort    = 8443
	metricsPort    = 8080
	kcmPort        = 10257
	schedulerPort  = 10351
	managerPort    = 10357
	webhookProbe   = 8000
)

// Config is everything the objects of a control plane on a host cluster depend
// on.
type Config struct {
	// Namespace and Domain of the host cluster.
	Namespace, Domain string
	// SystemNamespace is the namespace of the control plane in its own API; empty means that it is called as Namespace.
	SystemNamespace string
	// Names are those of the objects in the host cluster; nil keeps the names that init gives.
	Names Naming
	// Selectors are the labels by which workloads that others made select their pods, which cannot be changed; a workload without an
	// entry selects them by its name.
	Selectors map[string]map[string]string
	// Labels are on every object in the host cluster in place of BootstrapLabel; nil means that label.
	Labels map[string]string
	// Compact reports whether one workload, AllInOne, runs the roles of Karmada.
	Compact bool
	// IPv6 reports whether the pods of the host cluster have no IPv4 address.
	IPv6 IPv6
	// PullSecrets are names of Secrets for pulling images.
	PullSecrets []string
	// NodePort of the API server, and annotations of its Service.
	NodePort           int32
	ServiceAnnotations map[string]string
	// ServiceType of the API server; empty means NodePort. LoadBalancerClass is that of the type LoadBalancer.
	ServiceType       corev1.ServiceType
	LoadBalancerClass *string
	// Encryption of what the API server stores, or nil.
	Encryption *Encryption
	// Await is what the controllers wait for before they start, or nil.
	Await *Await
	// Workloads by name.
	Workloads map[string]Workload
	Etcd      EtcdConfig
	// Certificates are the keys of the Secret karmada-cert: NAME.crt and NAME.key. Pods roll when what they mount of
	// them changes, unless they are nil, which means that they are not known.
	Certificates Certificates
	// Kubeconfigs by name of the component that uses them.
	Kubeconfigs map[string][]byte
}

// Workload is what can be chosen for the pods of a component.
type Workload struct {
	Image         string
	PullPolicy    corev1.PullPolicy
	Replicas      int32
	PriorityClass string
	// ExtraArgs replace default arguments of the same name, or are added.
	ExtraArgs []string
	// Labels and Annotations of the workload, PodLabels and PodAnnotations of its pods. No label is in a selector.
	Labels, Annotations, PodLabels, PodAnnotations map[string]string
	// PullSecrets are names of Secrets for pulling images, beside those of the Config.
	PullSecrets []string
	// Strategy replaces the pods of a Deployment; nil means Kubernetes' default.
	Strategy *appsv1.DeploymentStrategy
	// DisruptionBudget has no selector; nil means none.
	DisruptionBudget *policyv1.PodDisruptionBudgetSpec
	// HostNetwork gives the pods the network of their node.
	HostNetwork bool
	// OnlyTolerations has the pods without DefaultTolerations.
	OnlyTolerations bool
	// Sidecars are further containers, Volumes further volumes, and Mounts those of the container of the component.
	Sidecars []corev1.Container
	Volumes  []corev1.Volume
	Mounts   []corev1.VolumeMount
	PodSettings
}

// Encryption names the file with an EncryptionConfiguration: a key of a Secret.
type Encryption struct{ Secret, Key string }

// Await is the release of the static resources of a control plane, as the ConfigMap of names.VersionConfigMap has it.
type Await struct{ Version, Settings string }

// EtcdConfig is the store of a control plane.
type EtcdConfig struct {
	StorageMode, DataPath string
	// NodeSelector is for hostPath.
	NodeSelector map[string]string
	// StorageClass and Size are for PVC, or Claim.
	StorageClass, Size string
	Claim              *corev1.PersistentVolumeClaimTemplate
	// Kept reports whether the StatefulSet that is there stays as it is: Karmada's operator made it.
	Kept bool
	// PodManagement of the StatefulSet that is there; it cannot be changed. Empty is
	// Parallel, with which any number of members comes up.
	PodManagement appsv1.PodManagementPolicyType
	// ContentHash of the pods that run, if they would lose their data by being replaced; it is kept. Empty if there are none.
	ContentHash string
	// ExternalServers are the URLs of an etcd that is there already; then no other
	// is installed.
	ExternalServers string
	// KeyPrefix of the keys in the external etcd.
	KeyPrefix string
}

// External reports whether etcd exists already.
func (e EtcdConfig) External() bool { return e.ExternalServers != "" }

// Name returns the name of an object in the host cluster by the one that init gives it.
func (c *Config) Name(name string) string {
	if c.Names == nil {
		return name
	}
	return c.Names(name)
}

// System is the namespace of the control plane in its own API.
func (c *Config) System() string { return cmp.Or(c.SystemNamespace, c.Namespace) }

// Host returns the DNS name of a Service of the control plane.
func (c *Config) Host(service string) string {
	return fmt.Sprintf("%s.%s.svc.%s", c.Name(service), c.Namespace, c.Domain)
}

// InternalServer is the URL of the API server inside the host cluster.
func (c *Config) InternalServer() string {
	return fmt.Sprintf("https://%s:%d", c.Host(APIServer), apiServerPort)
}

// ServerURL is the URL of an API server at a host.
func ServerURL(host string) string {
	return "https://" + net.JoinHostPort(host, strconv.Itoa(apiServerPort))
}

// WebhookURL is where the API server finds the webhook server.
func (c *Config) WebhookURL() string {
	return fmt.Sprintf("https://%s.%s.svc:%d", c.Name(Webhook), c.Namespace, httpsPort)
}

// EtcdHosts are the names of the pods of etcd.
func (c *Config) EtcdHosts(replicas int32) []string {
	var out []string
	for i := range replicas {
		out = append(out, fmt.Sprintf("%s-%d.%s", c.Name(Etcd), i, c.Host(Etcd)))
	}
	return out
}

// meta returns the metadata of an object in the host cluster.
func (c *Config) meta(name, kind string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: c.Name(name), Namespace: c.Namespace, Labels: c.labels(kind)}
}

// labels are on every object in the host cluster.
func (c *Config) labels(kind string) map[string]string {
	if c.Labels != nil {
		return maps.Clone(c.Labels)
	}
	return map[string]string{BootstrapLabel: kind}
}

// IPv6 reports whether pods have only IPv6 addresses.
type IPv6 bool

// podIP is how a pod writes its address before a port.
func (v6 IPv6) podIP() string {
	if v6 {
		return "[$(POD_IP)]"
	}
	return "$(POD_IP)"
}

// metricsAddress is the flag with the address of the metrics of a pod.
func (v6 IPv6) metricsAddress() string {
	return fmt.Sprintf("--metrics-bind-address=%s:%d", v6.podIP(), metricsPort)
}

// anyIP is the address that listens everywhere.
func (v6 IPv6) anyIP() string {
	if v6 {
		return "::"
	}
	return "0.0.0.0"
}

// serviceRange and podRange are of the control plane's own API; no pod and no
// Service of it runs anywhere.
func (v6 IPv6) serviceRange() string {
	if v6 {
		return "fd00:10:96::/112"
	}
	return "10.96.0.0/12"
}

func (v6 IPv6) podRange() (cidr, maskSize string) {
	if v6 {
		return "fd00:10:244::/56", "64"
	}
	return "10.244.0.0/16", "24"
}

// hash is of the values of the given keys, and of which keys there are.
func hash(data map[string][]byte, keys []string) string {
	h := sha256.New()
	for _, key := range slices.Sorted(slices.Values(keys)) {
		_, _ = fmt.Fprintf(h, "%s %d\n", key, len(data[key])) // a hash never fails
		_, _ = h.Write(data[key])
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}

func keysOf(data map[string][]byte) []string { return slices.Sorted(maps.Keys(data)) }
