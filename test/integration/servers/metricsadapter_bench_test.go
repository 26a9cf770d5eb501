//go:build integration

package servers_test

import (
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	metricsclient "k8s.io/metrics/pkg/client/clientset/versioned"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/internal/testenv"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/planetest"
	"github.com/karmada-toolkit/karmada/pkg/member/access/accesstest"
)

const (
	benchMembers     = 5
	adapterBenchPods = 2000
	benchLists       = 20
)

// BenchmarkAdapter_Memory measures the adapter as a process, with the metrics of all pods of five members.
func BenchmarkAdapter_Memory(b *testing.B) {
	plane := testenv.Start(b, testenv.ControlPlane())
	c, err := client.New(plane.Config, client.Options{Scheme: kube.NewScheme()})
	if err != nil {
		b.Fatal(err)
	}
	planetest.Install(b, c)
	for i := range benchMembers {
		adapterJoin(b, c, fmt.Sprintf("m%d", i))
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	_ = listener.Close()
	adapter := exec.Command(testenv.Binary(b, "karmada"), "metrics-adapter", "--kubeconfig", plane.Kubeconfig, "--authentication-kubeconfig", plane.Kubeconfig,
		"--authorization-kubeconfig", plane.Kubeconfig, "--bind-address=127.0.0.1", "--secure-port="+strconv.Itoa(port), "--metrics-bind-address=0")
	adapter.Stderr = os.Stderr
	if err := adapter.Start(); err != nil {
		b.Fatal(err)
	}
	defer func() {
		_ = adapter.Process.Kill()
		_ = adapter.Wait()
	}()
	cfg := rest.CopyConfig(plane.Config)
	cfg.Host, cfg.Insecure, cfg.CAData, cfg.CAFile = "https://127.0.0.1:"+strconv.Itoa(port), true, nil, ""
	usage, err := metricsclient.NewForConfig(cfg)
	if err != nil {
		b.Fatal(err)
	}
	list := func(ctx context.Context) error {
		pods, err := usage.MetricsV1beta1().PodMetricses("").List(ctx, metav1.ListOptions{})
		if err == nil && len(pods.Items) != benchMembers*adapterBenchPods {
			err = fmt.Errorf("%d pods have metrics", len(pods.Items))
		}
		return err
	}
	testenv.Eventually(b, 3*time.Minute, list)
	time.Sleep(time.Minute) // until unused memory is returned
	b.ReportMetric(resident(b, adapter.Process.Pid), "MB-idle")
	for range benchLists {
		if err := list(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(resident(b, adapter.Process.Pid), "MB-after-lists")
	b.ReportMetric(0, "ns/op")
}

// adapterJoin adds a member with pods and their usage.
func adapterJoin(b *testing.B, c client.Client, name string) {
	b.Helper()
	server := accesstest.New(b)
	server.Require("token")
	server.Put("/api/v1/namespaces/kube-system", object("v1", "Namespace", map[string]any{"name": "kube-system"}, nil))
	for i := range adapterBenchPods {
		ns, pod := fmt.Sprintf("team-%d", i%20), fmt.Sprintf("web-%d-7d8b49557c-%05d", i%100, i)
		meta := map[string]any{"namespace": ns, "name": pod, "labels": map[string]any{"app": fmt.Sprintf("web-%d", i%100), "pod-template-hash": "7d8b49557c", "tier": "front"}}
		path := "/namespaces/" + ns + "/pods/" + pod
		server.Put("/api/v1"+path, object("v1", "Pod", meta, nil))
		used := map[string]any{"name": "app", "usage": map[string]any{"cpu": "12345678n", "memory": "12345Ki"}}
		server.Put("/apis/metrics.k8s.io/v1beta1"+path, object("metrics.k8s.io/v1beta1", "PodMetrics", meta, map[string]any{
			"timestamp": "2026-01-01T00:00:00Z", "window": "15.043s", "containers": []any{used, used},
		}))
	}
	const ns = "default"
	cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1alpha1.ClusterSpec{
		APIEndpoint: server.URL, SyncMode: clusterv1alpha1.Push, SecretRef: &clusterv1alpha1.LocalSecretReference{Namespace: ns, Name: name},
	}}
	for _, obj := range []client.Object{
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Data: map[string][]byte{"token": []byte("token"), "caBundle": server.CA()}}, cluster,
	} {
		if err := c.Create(b.Context(), obj); err != nil {
			b.Fatal(err)
		}
	}
	ready := `{"status":{"conditions":[{"type":"Ready","status":"True","reason":"R","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`
	if err := c.Status().Patch(b.Context(), cluster, client.RawPatch("application/merge-patch+json", []byte(ready))); err != nil {
		b.Fatal(err)
	}
}

func object(apiVersion, kind string, meta, rest map[string]any) *unstructured.Unstructured {
	out := map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": meta}
	maps.Copy(out, rest)
	return &unstructured.Unstructured{Object: out}
}

// resident returns the resident memory of a process in MB.
func resident(b *testing.B, pid int) float64 {
	b.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if value, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, err := strconv.ParseFloat(strings.Fields(value)[0], 64)
			if err != nil {
				b.Fatal(err)
			}
			return kb / 1000
		}
	}
	b.Fatal("no resident memory")
	return 0
}
