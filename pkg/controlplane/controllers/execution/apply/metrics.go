package apply

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/karmada-toolkit/karmada/internal/metrics"
)

// The results of an update.
const (
	operationNone      = "none"
	operationUnchanged = "unchanged"
	operationUpdated   = "updated"
)

// Metrics count the writes to members.
type Metrics struct {
	create, update, remove *prometheus.CounterVec
}

// NewMetrics returns registered metrics.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	counter := func(name, help string, label ...string) *prometheus.CounterVec {
		labels := append([]string{"result", "apiversion", "kind", "member_cluster"}, label...)
		return metrics.Register(registry, prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels))
	}
	return &Metrics{
		create: counter("create_resource_to_cluster", "Objects created in a member cluster.", "recreate"),
		update: counter("update_resource_to_cluster", "Objects updated, or found to be as wanted, in a member cluster.", "operationResult"),
		remove: counter("delete_resource_from_cluster", "Objects deleted from a member cluster."),
	}
}

func (m *Metrics) created(gvk schema.GroupVersionKind, cluster string, err error) {
	m.create.WithLabelValues(metrics.Result(err), gvk.GroupVersion().String(), gvk.Kind, cluster, "false").Inc()
}

func (m *Metrics) updated(gvk schema.GroupVersionKind, cluster, operation string, err error) {
	m.update.WithLabelValues(metrics.Result(err), gvk.GroupVersion().String(), gvk.Kind, cluster, operation).Inc()
}

func (m *Metrics) deleted(gvk schema.GroupVersionKind, cluster string, err error) {
	m.remove.WithLabelValues(metrics.Result(err), gvk.GroupVersion().String(), gvk.Kind, cluster).Inc()
}

func operationOf(before, after *unstructured.Unstructured) string {
	switch {
	case after == nil:
		return operationNone
	case after.GetResourceVersion() == before.GetResourceVersion():
		return operationUnchanged
	}
	return operationUpdated
}
