package forward

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/fake"
)

// hostPod is a pod of the Service est in a host cluster.
func hostPod(name string, ready corev1.ConditionStatus) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-system", Name: name, Labels: map[string]string{"app": "est"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Ports: []corev1.ContainerPort{{Name: "grpc", ContainerPort: 7}}}}},
		Status:     corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}},
	}
}

// Names of Services are those of the host cluster and lead to a pod that is ready; all else is an address of the network.
func TestHost_Dial(t *testing.T) {
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-system", Name: "est"},
		Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "est"}, Ports: []corev1.ServicePort{
			{Port: 80, TargetPort: intstr.FromInt32(8080)}, {Port: 10352, TargetPort: intstr.FromString("grpc")}, {Port: 9},
		}},
	}
	empty := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-system", Name: "empty"}, Spec: corev1.ServiceSpec{
		Selector: map[string]string{"app": "none"}, Ports: []corev1.ServicePort{{Port: 80}},
	}}
	var pod, address string
	var port int32
	h := &Host{
		client: fake.NewClientset(service, empty, hostPod("a", corev1.ConditionFalse), hostPod("b", corev1.ConditionTrue)),
		network: func(_ context.Context, a string) (net.Conn, error) {
			address = a
			return &net.TCPConn{}, nil
		},
		forward: func(_ context.Context, p *corev1.Pod, n int32) (net.Conn, error) {
			pod, port = p.Name, n
			return &net.TCPConn{}, nil
		},
	}
	for target, want := range map[string]int32{"est.karmada-system.svc:80": 8080, "est.karmada-system.svc.cluster.local:10352": 7, "est.karmada-system.svc:9": 9} {
		if _, err := h.Dial(t.Context(), target); err != nil || pod != "b" || port != want {
			t.Errorf("%s leads to port %d of pod %q, want %d of b: %v", target, port, pod, want, err)
		}
	}
	if address != "" {
		t.Errorf("a Service is dialed over the network, at %s", address)
	}
	if _, err := h.Dial(t.Context(), "10.0.0.1:5"); err != nil || address != "10.0.0.1:5" {
		t.Errorf("the address is %q, %v", address, err)
	}
	_, err := h.Dial(t.Context(), "none.karmada-system.svc:80")
	if dns, ok := errors.AsType[*net.DNSError](err); !ok || !dns.IsNotFound {
		t.Errorf("a Service that does not exist: %v", err)
	}
	for target, want := range map[string]string{"empty.karmada-system.svc:80": "none of its pods is ready", "est.karmada-system.svc:5": "it has no port 5"} {
		if _, err := h.Dial(t.Context(), target); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", target, err, want)
		}
	}
}
