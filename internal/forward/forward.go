// Package forward connects to pods and Services of a cluster through its API server.
package forward

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/httpstream" //nolint:staticcheck // the dialers of client-go have its types
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"

	"github.com/karmada-toolkit/karmada/internal/plaintext"
)

// Host reaches Services of the host cluster through its API server, from where the network of its pods is not reachable.
type Host struct {
	config *rest.Config
	client kubernetes.Interface
	// network connects to what is no Service, forward to a port of a pod.
	network func(ctx context.Context, address string) (net.Conn, error)
	forward func(ctx context.Context, pod *corev1.Pod, port int32) (net.Conn, error)
}

// NewHost returns the host cluster with an API server. Network connects to addresses that are no Service.
func NewHost(config *rest.Config, network func(ctx context.Context, address string) (net.Conn, error)) (*Host, error) {
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the host cluster: %w", err)
	}
	h := &Host{config: config, client: c, network: network}
	h.forward = h.forwardPort
	return h, nil
}

// Dial connects to an address. The name of a Service, such as NAME.NAMESPACE.svc, is that of the host cluster, and the
// connection goes to one of its pods that is ready; a Service that does not exist is a net.DNSError.
func (h *Host) Dial(ctx context.Context, address string) (net.Conn, error) {
	host, portText, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("connecting to %q: %w", address, err)
	}
	labels := strings.SplitN(host, ".", 4)
	port, err := strconv.ParseInt(portText, 10, 32)
	if err != nil || len(labels) < 3 || labels[2] != "svc" {
		return h.network(ctx, address)
	}
	name, namespace := labels[0], labels[1]
	service, err := h.client.CoreV1().Services(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, &net.DNSError{Err: "the host cluster has no such Service", Name: host, IsNotFound: true}
	}
	if err != nil {
		return nil, fmt.Errorf("getting Service %s/%s of the host cluster: %w", namespace, name, err)
	}
	pod, target, err := h.backend(ctx, service, int32(port))
	if err != nil {
		return nil, fmt.Errorf("service %s/%s of the host cluster: %w", namespace, name, err)
	}
	conn, err := h.forward(ctx, pod, target)
	if err != nil {
		return nil, fmt.Errorf("forwarding a port to pod %s/%s of the host cluster: %w", namespace, pod.Name, err)
	}
	return conn, nil
}

// Pod connects to a port of a pod.
func (h *Host) Pod(ctx context.Context, pod *corev1.Pod, port int32) (net.Conn, error) {
	return h.forward(ctx, pod, port)
}

// backend returns a pod of a Service that is ready, and its port.
func (h *Host) backend(ctx context.Context, service *corev1.Service, port int32) (*corev1.Pod, int32, error) {
	i := slices.IndexFunc(service.Spec.Ports, func(p corev1.ServicePort) bool { return p.Port == port })
	if i < 0 {
		return nil, 0, fmt.Errorf("it has no port %d", port)
	}
	if len(service.Spec.Selector) == 0 {
		return nil, 0, errors.New("it selects no pods")
	}
	wanted := &service.Spec.Ports[i]
	selector := metav1.FormatLabelSelector(&metav1.LabelSelector{MatchLabels: service.Spec.Selector})
	pods, err := h.client.CoreV1().Pods(service.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, 0, fmt.Errorf("listing its pods: %w", err)
	}
	for i := range pods.Items {
		if target := targetPort(&pods.Items[i], wanted); target > 0 && isReady(&pods.Items[i]) {
			return &pods.Items[i], target, nil
		}
	}
	return nil, 0, errors.New("none of its pods is ready")
}

// targetPort returns the port of a pod for one of a Service; 0 if the pod has none.
func targetPort(pod *corev1.Pod, port *corev1.ServicePort) int32 {
	switch {
	case port.TargetPort.Type == intstr.String:
		for i := range pod.Spec.Containers {
			for _, p := range pod.Spec.Containers[i].Ports {
				if p.Name == port.TargetPort.StrVal {
					return p.ContainerPort
				}
			}
		}
		return 0
	case port.TargetPort.IntVal > 0:
		return port.TargetPort.IntVal
	}
	return port.Port
}

func isReady(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// forwardPort connects to a port of a pod through the API server: over a websocket, or SPDY where that is not served.
func (h *Host) forwardPort(ctx context.Context, pod *corev1.Pod, port int32) (net.Conn, error) {
	url := h.client.CoreV1().RESTClient().Post().Resource("pods").Namespace(pod.Namespace).Name(pod.Name).SubResource("portforward").URL()
	transport, upgrader, err := spdy.RoundTripperFor(h.config)
	if err != nil {
		return nil, err
	}
	websocket, err := portforward.NewSPDYOverWebsocketDialer(url, h.config)
	if err != nil {
		return nil, err
	}
	dialer := portforward.NewFallbackDialer(websocket, spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, url), func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
	type result struct {
		conn net.Conn
		err  error
	}
	done := make(chan result, 1)
	go func() { // dialers have no context
		conn, err := open(dialer, port)
		done <- result{conn, err}
	}()
	select {
	case r := <-done:
		return r.conn, r.err
	case <-ctx.Done():
		go func() {
			if r := <-done; r.err == nil {
				_ = r.conn.Close()
			}
		}()
		return nil, context.Cause(ctx)
	}
}

// open connects to the port of a pod that a dialer leads to.
func open(dialer httpstream.Dialer, port int32) (net.Conn, error) {
	streams, _, err := dialer.Dial(portforward.PortForwardProtocolV1Name)
	if err != nil {
		return nil, err
	}
	header := func(of string) http.Header {
		h := http.Header{}
		h.Set(corev1.StreamType, of)
		h.Set(corev1.PortHeader, strconv.Itoa(int(port)))
		h.Set(corev1.PortForwardRequestIDHeader, "0")
		return h
	}
	problems, err := streams.CreateStream(header(corev1.StreamTypeError))
	if err != nil {
		return nil, errors.Join(err, streams.Close())
	}
	data, err := streams.CreateStream(header(corev1.StreamTypeData))
	if err != nil {
		return nil, errors.Join(err, streams.Close())
	}
	_ = problems.Close() // nothing is sent on it
	// A pipe has the deadlines that streams lack.
	near, far := net.Pipe()
	out := &forwarded{Conn: near}
	end := func() {
		_ = streams.Close()
		_ = far.Close()
	}
	go func() {
		defer end()
		_, _ = io.Copy(data, far)
	}()
	go func() {
		defer end()
		_, _ = io.Copy(far, data)
	}()
	go func() {
		// The kubelet reports here that nothing listens on the port.
		text, err := io.ReadAll(io.LimitReader(problems, maxProblem))
		if len(text) > 0 {
			err = errors.New(plaintext.Line(string(text), maxProblem))
		}
		if err != nil {
			out.problem.Store(&err)
			end()
		}
	}()
	return out, nil
}

// forwarded is a connection that ends with the reason that the kubelet gives.
type forwarded struct {
	net.Conn
	problem atomic.Pointer[error]
}

// Read implements io.Reader.
func (c *forwarded) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if p := c.problem.Load(); err != nil && p != nil {
		err = *p
	}
	return n, err
}

// maxProblem is how much of the kubelet's error is read, in bytes.
const maxProblem = 4096
