// Package taintmanager evicts workloads from clusters with NoExecute taints that they do not tolerate.
package taintmanager

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/events"
	"github.com/karmada-toolkit/karmada/internal/metrics"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/env"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/evictions"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

// Component is the name of the controller and the source of its events.
const Component = "taint-manager"

// resync is the time between two searches for the bindings of a tainted cluster.
const (
	resync = 10 * time.Second
	// heldResync is the same for a cluster that must not be evicted now.
	heldResync = time.Second
)

// Options are the options of the controller.
type Options struct {
	// Evict turns evictions on. Without it, NoExecute taints have no effect.
	Evict bool
	// PurgeMode is the purge mode of bindings without a cluster failover behavior. Default Gracefully.
	PurgeMode policyv1alpha1.PurgeMode
	// Rate is the number of evictions per second of each of the three workers per kind of binding. With 0, a worker
	// waits for 30 min after an eviction.
	Rate float32
	evictions.Limits
}

// reconciler enqueues the bindings of tainted clusters.
type reconciler struct {
	client  client.Client
	options Options
	queues  []*queue
}

// Setup adds the controller to the manager.
func Setup(_ context.Context, e *env.Env, o Options) error {
	r := &reconciler{client: e.Client, options: o}
	recorder, measured := events.ForManager(e.Manager, Component, events.Transitions), newMetrics(e.Metrics)
	for _, s := range scope.Bindings() {
		q := newQueue(e, s, recorder, measured, o)
		r.queues = append(r.queues, q)
		if err := e.Manager.Add(q); err != nil {
			return fmt.Errorf("adding the eviction queue of %s: %w", s.Kind, err)
		}
	}
	return controllers.Add(e.Manager, Component, &clusterv1alpha1.Cluster{}, taintsChanged(), e.Options(e.ClusterSyncs, 5), r)
}

// taintsChanged passes new clusters and those whose taints changed.
func taintsChanged() predicate.Predicate {
	return controllers.Changed(func(before, after *clusterv1alpha1.Cluster) bool {
		return !equality.Semantic.DeepEqual(before.Spec.Taints, after.Spec.Taints)
	})
}

// Reconcile enqueues the bindings of one cluster while it has NoExecute taints. While evictions are off it does nothing.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	if !r.options.Evict {
		return reconcile.Result{}, nil
	}
	cluster := &clusterv1alpha1.Cluster{}
	if err := r.client.Get(ctx, req.NamespacedName, cluster); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, err
	}
	// A cluster that was deleted has no taints.
	if !slices.ContainsFunc(cluster.Spec.Taints, func(t corev1.Taint) bool { return t.Effect == corev1.TaintEffectNoExecute }) {
		for _, q := range r.queues {
			q.metrics.untainted(req.Name)
		}
		return reconcile.Result{}, nil
	}
	if held, err := r.options.Held(ctx, cluster.Name); err != nil || held {
		return controllers.After(heldResync, err)
	}
	for _, q := range r.queues {
		if err := q.enqueue(ctx, cluster.Name); err != nil {
			return reconcile.Result{}, err
		}
	}
	return reconcile.Result{RequeueAfter: resync}, nil
}

// evictionMetrics are the metrics of both queues.
type evictionMetrics struct {
	depth   *prometheus.GaugeVec
	kinds   *prometheus.GaugeVec
	latency *prometheus.HistogramVec
	total   *prometheus.CounterVec
}

func newMetrics(r prometheus.Registerer) *evictionMetrics {
	return &evictionMetrics{
		depth: metrics.Register(r, prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "eviction_queue_depth", Help: "Number of bindings that wait for a decision about their eviction.",
		}, []string{"name"})),
		kinds: metrics.Register(r, prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "eviction_kind_total", Help: "Number of bindings in a cluster with NoExecute taints.",
		}, []string{"member_cluster", "resource_kind"})),
		latency: metrics.Histogram(r, "eviction_processing_latency_seconds", "Duration of a decision about an eviction and its write.",
			prometheus.ExponentialBuckets(0.001, 2, 15), "name"),
		total: metrics.Counter(r, "eviction_processing_total", "Number of decisions about evictions.", "name", "result"),
	}
}

func (m *evictionMetrics) queue(name, kind string) *queueMetrics {
	return &queueMetrics{all: m, name: name, kind: kind}
}

// queueMetrics are the metrics of one queue.
type queueMetrics struct {
	all        *evictionMetrics
	name, kind string
}

func (m *queueMetrics) enqueued(cluster string, bindings, depth int) {
	m.all.kinds.WithLabelValues(cluster, m.kind).Set(float64(bindings))
	m.all.depth.WithLabelValues(m.name).Set(float64(depth))
}

// untainted removes what was counted of a cluster that has no NoExecute taint any longer.
func (m *queueMetrics) untainted(cluster string) { m.all.kinds.DeleteLabelValues(cluster, m.kind) }

func (m *queueMetrics) processed(took time.Duration, err error, depth int) {
	m.all.latency.WithLabelValues(m.name).Observe(took.Seconds())
	m.all.total.WithLabelValues(m.name, metrics.Result(err)).Inc()
	m.all.depth.WithLabelValues(m.name).Set(float64(depth))
}
