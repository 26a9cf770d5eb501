package certs

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/karmada-toolkit/karmada/internal/wait"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
)

// serials returns the serial numbers of the certificates that the process of a pod uses.
func (s *workloadUpdate) serials(ctx context.Context, pod *corev1.Pod) ([]string, error) {
	switch s.component() {
	case components.Etcd:
		return s.handshake(ctx, pod, portOf(pod, "client", 0))
	case components.APIServer:
		return s.handshake(ctx, pod, portOf(pod, "server", 0))
	case components.KubeControllerManager:
		return nil, nil // it is restarted for every change
	}
	return s.metric(ctx, pod)
}

// handshake returns the serial number of the certificate of the server of a pod.
func (s *workloadUpdate) handshake(ctx context.Context, pod *corev1.Pod, port int32) ([]string, error) {
	conn, err := s.forward.Pod(ctx, pod, port)
	if err != nil {
		return nil, fmt.Errorf("forwarding a port: %w", err)
	}
	return servedSerial(ctx, conn)
}

// servedSerial returns the serial number of the certificate of a server, and closes the connection. Nothing is sent.
func servedSerial(ctx context.Context, raw net.Conn) ([]string, error) {
	var out []string
	conn := tls.Client(raw, &tls.Config{
		MinVersion: tls.VersionTLS12, InsecureSkipVerify: true, //nolint:gosec // the certificate is read, and not relied on
		VerifyConnection: func(state tls.ConnectionState) error {
			out = append(out, state.PeerCertificates[0].SerialNumber.Text(16))
			return nil
		},
	})
	defer func() { _ = conn.Close() }()
	if err := conn.HandshakeContext(ctx); err != nil && len(out) == 0 {
		return nil, fmt.Errorf("reading the certificate of the server: %w", err)
	}
	return out, nil
}

// serialLabel is the label of the metric with the serial number.
var serialLabel = regexp.MustCompile(`(?m)^karmada_certificate_not_after_seconds\{[^}]*serial="([0-9a-f]+)"`)

// metricsPort is that of the metrics of every role unless the container names another.
const metricsPort = 8080

// portOf returns the port of a container with a name, or another if it has none.
func portOf(pod *corev1.Pod, name string, other int32) int32 {
	for _, p := range pod.Spec.Containers[0].Ports {
		if p.Name == name {
			return p.ContainerPort
		}
	}
	return other
}

// metric returns the serial numbers in the metrics of a role.
func (s *workloadUpdate) metric(ctx context.Context, pod *corev1.Pod) ([]string, error) {
	port := portOf(pod, "metrics", metricsPort)
	text, err := s.api.CoreV1().Pods(pod.Namespace).ProxyGet("http", pod.Name, fmt.Sprint(port), "metrics", nil).DoRaw(ctx)
	if notFound(err) {
		return nil, wait.Terminal(fmt.Errorf("%w: %w", errSilent, err))
	}
	if err != nil {
		return nil, err
	}
	out := serialsOf(text)
	if len(out) == 0 {
		return nil, wait.Terminal(errSilent)
	}
	return out, nil
}

// serialsOf returns the serial numbers in the metrics of a process.
func serialsOf(metrics []byte) []string {
	var out []string
	for _, match := range serialLabel.FindAllSubmatch(metrics, -1) {
		out = append(out, string(match[1]))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// serialsIn returns the serial numbers of the certificates in contents that are no authorities.
func serialsIn(contents []*content) map[string]bool {
	out := map[string]bool{}
	for p := range pieces(contents) {
		if p.cert != nil && !p.cert.IsCA {
			out[p.cert.SerialNumber.Text(16)] = true
		}
	}
	return out
}
