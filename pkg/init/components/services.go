package components

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// EtcdService gives the members of the store names, also before they are ready.
func EtcdService(c *Config) client.Object {
	s := c.service(Etcd, servicePort("client", etcdClientPort, etcdClientPort), servicePort("server", etcdPeerPort, etcdPeerPort))
	s.Spec.ClusterIP = corev1.ClusterIPNone
	s.Spec.PublishNotReadyAddresses = true
	return s
}

// APIServerService opens the API server on every node.
func APIServerService(c *Config) client.Object {
	p := servicePort("server", apiServerPort, apiServerPort)
	p.NodePort = c.NodePort
	s := c.service(APIServer, p)
	s.Annotations = c.ServiceAnnotations
	s.Spec.Type = corev1.ServiceTypeNodePort
	return s
}

// AggregatedHostService is how the API server finds the aggregated one.
func AggregatedHostService(c *Config) client.Object {
	s := c.service(AggregatedAPIServer, servicePort("server", httpsPort, httpsPort))
	s.Spec.Selector["apiserver"] = "true"
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
	meta.Labels["app"] = name
	return &corev1.Service{
		ObjectMeta: meta,
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, Selector: map[string]string{"app": name}, Ports: ports},
	}
}

func servicePort(name string, number, target int32) corev1.ServicePort {
	return corev1.ServicePort{Name: name, Port: number, TargetPort: intstr.FromInt32(target), Protocol: corev1.ProtocolTCP}
}
