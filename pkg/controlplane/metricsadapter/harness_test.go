package metricsadapter

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/utils/clock"

	"github.com/karmada-toolkit/karmada/internal/metricsapi"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
	"github.com/karmada-toolkit/karmada/pkg/member/access/accesstest"
)

// federation is some members with their objects and usage.
type federation struct {
	*requester
	servers map[string]*accesstest.Server

	mu sync.Mutex
	// requests counts requests for metrics by cluster.
	requests map[string]int
	// fail returns what a cluster answers to a request for metrics: a code, or -1 for none.
	fail map[string]int
}

func newFederation(t *testing.T, names ...string) *federation {
	t.Helper()
	ctx := t.Context()
	f := &federation{
		requester: &requester{members: newMembers(ctx, clock.RealClock{}, access.NewPool(access.Options{}), nil), timeout: time.Minute},
		servers:   map[string]*accesstest.Server{}, requests: map[string]int{}, fail: map[string]int{},
	}
	for _, name := range names {
		server := accesstest.New(t)
		server.Fail(func(r *http.Request) int { return f.intercept(name, r) })
		f.servers[name] = server
	}
	t.Cleanup(func() {
		f.members.clusters.End()
	})
	return f
}

func (f *federation) intercept(name string, r *http.Request) int {
	if !strings.Contains(r.URL.Path, "metrics.k8s.io") {
		return 0
	}
	f.mu.Lock()
	f.requests[name]++
	code := f.fail[name]
	f.mu.Unlock()
	if code < 0 {
		<-r.Context().Done()
		return http.StatusTeapot
	}
	return code
}

func named(name string) *clusterv1alpha1.Cluster {
	return &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// open opens the members and waits until their pods and nodes are listed.
func (f *federation) open(t *testing.T) {
	t.Helper()
	f.connect(t)
	f.await(t)
}

// connect opens the members.
func (f *federation) connect(t *testing.T) {
	t.Helper()
	for name, server := range f.servers {
		member, err := access.NewMember(name, server.Config(), nil)
		if err != nil {
			t.Fatal(err)
		}
		f.members.open(t.Context(), named(name), member)
	}
}

// await waits until the pods and nodes of the members are listed.
func (f *federation) await(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
		opened, _ := f.members.snapshot()
		if !slices.ContainsFunc(opened, func(c *cluster) bool { return !c.objects().pods.HasSynced() || !c.objects().nodes.HasSynced() }) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the members are not listed")
		}
	}
}

// pod adds a pod with usage. Its labels are app=<name before the last dash>.
func (f *federation) pod(cluster, namespace, name, cpu string) {
	app, _, _ := strings.Cut(name, "-")
	meta := map[string]any{"namespace": namespace, "name": name, "labels": map[string]any{"app": app}}
	path := "/namespaces/" + namespace + "/pods/" + name
	f.servers[cluster].Put("/api/v1"+path, object("v1", "Pod", meta, nil))
	f.servers[cluster].Put("/apis/metrics.k8s.io/v1beta1"+path, object("metrics.k8s.io/v1beta1", "PodMetrics", meta, map[string]any{
		"timestamp": "2026-01-01T00:00:00Z", "window": "15s",
		"containers": []any{map[string]any{"name": "c", "usage": map[string]any{"cpu": cpu, "memory": "1Mi"}}},
	}))
}

func (f *federation) node(cluster, name, cpu string) {
	meta := map[string]any{"name": name}
	f.servers[cluster].Put("/api/v1/nodes/"+name, object("v1", "Node", meta, nil))
	f.servers[cluster].Put("/apis/metrics.k8s.io/v1beta1/nodes/"+name, object("metrics.k8s.io/v1beta1", "NodeMetrics", meta, map[string]any{
		"timestamp": "2026-01-01T00:00:00Z", "window": "15s", "usage": map[string]any{"cpu": cpu, "memory": "1Mi"},
	}))
}

func object(apiVersion, kind string, meta, rest map[string]any) *unstructured.Unstructured {
	out := map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": meta}
	maps.Copy(out, rest)
	return &unstructured.Unstructured{Object: out}
}

// warnings records the warnings of a request.
type warnings []string

// AddWarning implements warning.Recorder.
func (w *warnings) AddWarning(_, text string) { *w = append(*w, text) }

func warned(t *testing.T) (context.Context, *warnings) {
	t.Helper()
	w := &warnings{}
	return warning.WithWarningRecorder(t.Context(), w), w
}

func selection(namespace, selector string) metricsapi.Selection {
	parsed, err := labels.Parse(selector)
	if err != nil {
		panic(err)
	}
	return metricsapi.Selection{Namespace: namespace, Labels: parsed, Fields: fields.Everything()}
}

// clusterOf returns the cluster of a metric.
func clusterOf(m metav1.ObjectMeta) string {
	return m.Annotations["resource.karmada.io/query-from-cluster"]
}
