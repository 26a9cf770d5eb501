package execution

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// What an update did.
const (
	operationNone      = "none"
	operationUnchanged = "unchanged"
	operationUpdated   = "updated"
)

// metrics are the figures of the controller.
type metrics struct {
	duration               *prometheus.HistogramVec
	create, update, remove *prometheus.CounterVec
}

func newMetrics(registry prometheus.Registerer) (*metrics, error) {
	object := []string{"result", "apiversion", "kind", "member_cluster"}
	m := &metrics{
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "work_sync_workload_duration_seconds", Help: "Time to apply the objects of a Work.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 12),
		}, []string{"result"}),
		create: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "create_resource_to_cluster", Help: "Objects created in a member cluster.",
		}, append(object[:4:4], "recreate")),
		update: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "update_resource_to_cluster", Help: "Objects updated, or found to be as wanted, in a member cluster.",
		}, append(object[:4:4], "operationResult")),
		remove: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "delete_resource_from_cluster", Help: "Objects deleted from a member cluster.",
		}, object),
	}
	err := errors.Join(register(registry, &m.duration), register(registry, &m.create), register(registry, &m.update), register(registry, &m.remove))
	if err != nil {
		return nil, fmt.Errorf("registering metrics: %w", err)
	}
	return m, nil
}

// register adds a collector, or takes the one that is there already.
func register[C prometheus.Collector](registry prometheus.Registerer, c *C) error {
	err := registry.Register(*c)
	if there, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		if same, ok := there.ExistingCollector.(C); ok {
			*c = same
			return nil
		}
	}
	return err
}

func (m *metrics) synced(took time.Duration, err error) {
	m.duration.WithLabelValues(outcome(err)).Observe(took.Seconds())
}

func (m *metrics) created(gvk schema.GroupVersionKind, cluster string, err error) {
	m.create.WithLabelValues(outcome(err), gvk.GroupVersion().String(), gvk.Kind, cluster, "false").Inc()
}

func (m *metrics) updated(gvk schema.GroupVersionKind, cluster, operation string, err error) {
	m.update.WithLabelValues(outcome(err), gvk.GroupVersion().String(), gvk.Kind, cluster, operation).Inc()
}

func (m *metrics) removed(gvk schema.GroupVersionKind, cluster string, err error) {
	m.remove.WithLabelValues(outcome(err), gvk.GroupVersion().String(), gvk.Kind, cluster).Inc()
}

func outcome(err error) string {
	if err != nil {
		return "error"
	}
	return "success"
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
