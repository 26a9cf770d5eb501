package components

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
)

// AggregatedService is the name of the Service of the aggregated API server.
const AggregatedService = "karmada-aggregated-apiserver"

// Serving is where the servers of a control plane without a host cluster are.
type Serving struct {
	// WebhookURL is the URL of the webhook server, without a path.
	WebhookURL string
	// AggregatedHost and AggregatedPort are where the aggregated API server
	// listens. The host is a DNS name.
	AggregatedHost string
	AggregatedPort int
	// CABundle is the authority of both servers, PEM.
	CABundle []byte
	// FeatureGates are the values of the flag of the controller-manager.
	FeatureGates []string
}

// LocalServing are the objects by which the API server finds the servers of a
// control plane without a host cluster.
func LocalServing(s Serving) []client.Object {
	return append(WebhookConfigurations(s.WebhookURL, s.CABundle, s.FeatureGates),
		AggregatedAPI(clusterv1alpha1.NamespaceKarmadaSystem, s.AggregatedHost, int32(s.AggregatedPort), s.CABundle)...)
}

// WebhookConfigurations make the API server call the webhook server at url, refuse quantities that no webhook checks, keep no record of
// the fields of bindings and Works, and warn of kinds that have no effect with the feature gates of the controller-manager, values of its flag.
func WebhookConfigurations(url string, caBundle []byte, featureGates []string) []client.Object {
	return slices.Concat([]client.Object{MutatingWebhooks(url, caBundle), ValidatingWebhooks(url, caBundle)}, quantityPolicy(), namespacePolicy(), fieldsPolicy(), gateWarnings(featureGates))
}

// AggregatedAPI makes the API server pass requests for clusters on to the
// aggregated one at host, under the name of a Service in the namespace.
func AggregatedAPI(namespace, host string, port int32, caBundle []byte) []client.Object {
	return []client.Object{
		externalService(AggregatedService, namespace, host),
		apiService(clusterv1alpha1.GroupVersion, 2000, 10, namespacedService{AggregatedService, namespace, port}, caBundle),
	}
}

func externalService(name, namespace, host string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: names.SystemLabels()},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: host},
	}
}

// namespacedService is a port of a Service.
type namespacedService struct {
	name, namespace string
	port            int32
}

// APIServiceName returns the name of the APIService of a group and version.
func APIServiceName(gv schema.GroupVersion) string { return gv.Version + "." + gv.Group }

// apiService makes the API server pass requests for a version of a group on to a Service.
func apiService(gv schema.GroupVersion, groupPriority, versionPriority int32, s namespacedService, caBundle []byte) *apiregistrationv1.APIService {
	return &apiregistrationv1.APIService{
		ObjectMeta: metav1.ObjectMeta{
			Name:   APIServiceName(gv),
			Labels: map[string]string{"app": s.name, "apiserver": "true"},
		},
		Spec: apiregistrationv1.APIServiceSpec{
			Group: gv.Group, Version: gv.Version,
			GroupPriorityMinimum: groupPriority, VersionPriority: versionPriority,
			CABundle: caBundle,
			Service:  &apiregistrationv1.ServiceReference{Namespace: s.namespace, Name: s.name, Port: &s.port},
		},
	}
}

// EtcdService gives the members of the store names, also before they are ready.
func EtcdService(c *Config) client.Object {
	s := c.service(Etcd, servicePort("client", etcdClientPort, etcdClientPort), servicePort("server", etcdPeerPort, etcdPeerPort))
	s.Spec.ClusterIP = corev1.ClusterIPNone
	s.Spec.PublishNotReadyAddresses = true
	return s
}

// EtcdClientService is a name for the members of the store that are ready.
func EtcdClientService(c *Config) client.Object {
	s := c.service(EtcdClient, servicePort("client", etcdClientPort, etcdClientPort))
	s.Spec.Selector = c.selects(Etcd, nil)
	return s
}

// APIServerService opens the API server on every node.
func APIServerService(c *Config) client.Object {
	p := servicePort("server", apiServerPort, apiServerPort)
	p.NodePort = c.NodePort
	s := c.service(APIServer, p)
	s.Annotations = c.ServiceAnnotations
	s.Spec.Type, s.Spec.LoadBalancerClass = cmp.Or(c.ServiceType, corev1.ServiceTypeNodePort), c.LoadBalancerClass
	return s
}

// AggregatedHostService is how the API server finds the aggregated one.
func AggregatedHostService(c *Config) client.Object {
	s := c.service(AggregatedAPIServer, servicePort("server", httpsPort, httpsPort))
	if !c.Compact {
		s.Spec.Selector = c.selects(AggregatedAPIServer, map[string]string{"apiserver": "true"})
	}
	return s
}

// KubeControllerManagerService opens the metrics of Kubernetes' controllers.
func KubeControllerManagerService(c *Config) client.Object {
	return c.service(KubeControllerManager, servicePort("server", kcmPort, kcmPort))
}

// WebhookService is how the API server finds the webhook server.
func WebhookService(c *Config) client.Object {
	return c.service(Webhook, servicePort("webhook", httpsPort, webhookPort))
}

func (c *Config) service(name string, ports ...corev1.ServicePort) *corev1.Service {
	meta := c.meta(name, ServiceDefaults)
	meta.Labels["app"] = c.Name(name)
	return &corev1.Service{
		ObjectMeta: meta,
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, Selector: c.selects(c.Workload(name), nil), Ports: ports},
	}
}

func servicePort(name string, number, target int32) corev1.ServicePort {
	return corev1.ServicePort{Name: name, Port: number, TargetPort: intstr.FromInt32(target), Protocol: corev1.ProtocolTCP}
}
