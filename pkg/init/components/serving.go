package components

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
}

// LocalServing are the objects by which the API server finds the servers of a
// control plane without a host cluster.
func LocalServing(s Serving) []client.Object {
	return append(WebhookConfigurations(s.WebhookURL, s.CABundle),
		AggregatedAPI(clusterv1alpha1.NamespaceKarmadaSystem, s.AggregatedHost, int32(s.AggregatedPort), s.CABundle)...)
}

// WebhookConfigurations make the API server call the webhook server at url, and warn
// of kinds that no webhook is for.
func WebhookConfigurations(url string, caBundle []byte) []client.Object {
	return append([]client.Object{MutatingWebhooks(url, caBundle), ValidatingWebhooks(url, caBundle)}, unbuiltPolicies()...)
}

// AggregatedAPI makes the API server pass requests for clusters on to the
// aggregated one at host, under the name of a Service in the namespace.
func AggregatedAPI(namespace, host string, port int32, caBundle []byte) []client.Object {
	return []client.Object{externalService(namespace, host), clusterAPIService(namespace, port, caBundle)}
}

func externalService(namespace, host string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: AggregatedService, Namespace: namespace, Labels: names.SystemLabels()},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: host},
	}
}

func clusterAPIService(namespace string, port int32, caBundle []byte) *apiregistrationv1.APIService {
	gv := clusterv1alpha1.GroupVersion
	return &apiregistrationv1.APIService{
		ObjectMeta: metav1.ObjectMeta{
			Name:   fmt.Sprintf("%s.%s", gv.Version, gv.Group),
			Labels: map[string]string{"app": AggregatedService, "apiserver": "true"},
		},
		Spec: apiregistrationv1.APIServiceSpec{
			Group: gv.Group, Version: gv.Version,
			GroupPriorityMinimum: 2000, VersionPriority: 10,
			CABundle: caBundle,
			Service: &apiregistrationv1.ServiceReference{
				Namespace: namespace, Name: AggregatedService, Port: &port,
			},
		},
	}
}
