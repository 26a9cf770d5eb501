// Package federatedhpa scales templates by the metrics of their pods in all clusters.
package federatedhpa

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/events"
	"github.com/karmada-toolkit/karmada/internal/metrics"
	"github.com/karmada-toolkit/karmada/internal/status"
	autoscalingv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/autoscaling/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/env"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/templates"
	"github.com/karmada-toolkit/karmada/pkg/domain/autoscaling"
)

// Component is the name of the controller in events and metrics.
const Component = "federatedHPA-controller"

const (
	// workers is the number of objects that are reconciled at a time.
	workers = 10
	// minRetry is the least time between a failed pass and the next.
	minRetry = time.Second
)

// Options are the options of the controller.
type Options struct {
	Settings autoscaling.Settings
	// SyncPeriod is the time between two passes over an object. A failed pass is repeated no later.
	SyncPeriod time.Duration
	// CacheSyncTimeout bounds the wait for the first list of a member's pods; no pass waits longer than 5 s.
	CacheSyncTimeout time.Duration
}

type reconciler struct {
	client  client.Client
	reader  client.Reader
	members *members
	metrics metricsSource
	status  *status.Writer[*autoscalingv1alpha1.FederatedHPA, *autoscalingv2.HorizontalPodAutoscalerStatus]
	events  *events.Recorder
	observe *metricsSet
	// template returns an object of the control plane.
	template func(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) (*unstructured.Unstructured, error)
	// hpas returns the HorizontalPodAutoscalers of a namespace.
	hpas     func(ctx context.Context, namespace string) ([]*unstructured.Unstructured, error)
	settings autoscaling.Settings
	period   time.Duration
	clock    clock.PassiveClock

	mu     sync.Mutex
	states map[types.NamespacedName]*state
}

// state is what is kept of an object between passes. Only its selector is read by passes over other objects.
type state struct {
	uid     types.UID
	history autoscaling.History
	// resumed is true once the history is that of this process.
	resumed bool
	written status.Written[*autoscalingv2.HorizontalPodAutoscalerStatus]
	// selector is that of the target, nil if it is not known.
	selector labels.Selector
}

// Setup adds the controller to the manager.
func Setup(_ context.Context, e *env.Env, o Options) error {
	source, err := newMetricsSource(e.Manager, o.SyncPeriod)
	if err != nil {
		return err
	}
	r := &reconciler{
		client: e.Client, reader: e.Client, metrics: source,
		events: events.ForManager(e.Manager, Component, events.Transitions), observe: newMetrics(e.Metrics),
		settings: o.Settings, period: o.SyncPeriod, clock: e.Clock, states: map[types.NamespacedName]*state{},
		template: func(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) (*unstructured.Unstructured, error) {
			return template(ctx, e.Store, gvk, namespace, name)
		},
		hpas: func(ctx context.Context, namespace string) ([]*unstructured.Unstructured, error) {
			return e.Store.List(ctx, autoscalingv2.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler"), namespace, labels.Everything())
		},
		members: newMembers(e.Members, e.Manager.GetRESTMapper(), o.CacheSyncTimeout, e.Clock),
		status:  newStatusWriter(e.Client, e.Live, e.Clock),
	}
	for _, runnable := range []manager.Runnable{r.members, source} {
		if err := e.Manager.Add(runnable); err != nil {
			return err
		}
	}
	return builder.ControllerManagedBy(e.Manager).Named(Component).
		For(&autoscalingv1alpha1.FederatedHPA{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(controllers.Options(workers, workers, controllers.Retry{BaseDelay: minRetry, MaxDelay: o.SyncPeriod})).
		Complete(r)
}

func newStatusWriter(c client.Client, live client.Reader, clk clock.PassiveClock) *status.Writer[*autoscalingv1alpha1.FederatedHPA, *autoscalingv2.HorizontalPodAutoscalerStatus] {
	return status.NewWriter(status.Options[*autoscalingv1alpha1.FederatedHPA, *autoscalingv2.HorizontalPodAutoscalerStatus]{
		Client: c, Live: live, Clock: clk,
		Get: func(h *autoscalingv1alpha1.FederatedHPA) *autoscalingv2.HorizontalPodAutoscalerStatus {
			return &h.Status
		},
		// The schema requires desiredReplicas, which an object without a status lacks: the first patch has it.
		Fields: func(s *autoscalingv2.HorizontalPodAutoscalerStatus) any {
			if len(s.Conditions) == 0 {
				return map[string]any{}
			}
			return s
		},
	})
}

// template returns an object from memory, or else from the API server with that server's error.
func template(ctx context.Context, store *templates.Store, gvk schema.GroupVersionKind, namespace, name string) (*unstructured.Unstructured, error) {
	if obj := store.Cached(gvk, namespace, name); obj != nil {
		return obj, nil
	}
	live, err := store.Live(gvk)
	if err != nil {
		return nil, err
	}
	return live.Namespace(namespace).Get(ctx, name, getOptions())
}

// Reconcile makes one pass over a FederatedHPA.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	obj := &autoscalingv1alpha1.FederatedHPA{}
	if err := r.reader.Get(ctx, req.NamespacedName, obj); err != nil || obj.DeletionTimestamp != nil {
		if client.IgnoreNotFound(err) == nil {
			r.forget(req.NamespacedName)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	began := r.clock.Now()
	err := r.pass(ctx, obj, r.stateOf(obj))
	r.observe.pass(r.clock.Since(began), err)
	if err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: r.period}, nil
}

func (r *reconciler) stateOf(obj *autoscalingv1alpha1.FederatedHPA) *state {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := client.ObjectKeyFromObject(obj)
	s := r.states[key]
	if s == nil || s.uid != obj.UID {
		s = &state{uid: obj.UID}
		r.states[key] = s
	}
	return s
}

func (r *reconciler) forget(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.states, key)
}

// others stores the selector of an object and returns those of the others in its namespace.
func (r *reconciler) others(obj *autoscalingv1alpha1.FederatedHPA, s *state, selector labels.Selector) []autoscaling.Other {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.selector = selector
	var out []autoscaling.Other
	for key, other := range r.states {
		if key.Namespace == obj.Namespace && other != s && other.selector != nil {
			out = append(out, autoscaling.Other{Key: key, Selector: other.selector})
		}
	}
	return out
}

// The values of the label metricType.
const (
	typeResource = "ResourceMetric"
	typeRaw      = "RawMetric"
	typeObject   = "ObjectMetric"
)

// metricsSet are the metrics of the controller.
type metricsSet struct {
	passes, pulls *prometheus.HistogramVec
	omissions     *prometheus.CounterVec
}

func newMetrics(registry prometheus.Registerer) *metricsSet {
	buckets := prometheus.ExponentialBuckets(0.01, 2, 12)
	return &metricsSet{
		passes: metrics.Histogram(registry, "federatedhpa_process_duration_seconds", "Time of a pass over a FederatedHPA.", buckets, "result"),
		pulls: metrics.Histogram(registry, "federatedhpa_pull_metrics_duration_seconds", "Time to read metrics for a FederatedHPA.", buckets,
			"result", "metricType"),
		omissions: metrics.Counter(registry, "federatedhpa_clusters_left_out_total",
			"Passes over FederatedHPAs that left out a target cluster, because it is not ready or did not answer.", "member_cluster"),
	}
}

func (m *metricsSet) pass(took time.Duration, err error) {
	m.passes.WithLabelValues(metrics.Result(err)).Observe(took.Seconds())
}

func (m *metricsSet) pull(kind string, took time.Duration, err error) {
	m.pulls.WithLabelValues(metrics.Result(err), kind).Observe(took.Seconds())
}

func (m *metricsSet) leftOut(cluster string) { m.omissions.WithLabelValues(cluster).Inc() }
