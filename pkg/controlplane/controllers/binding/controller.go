// Package binding makes the Works of bindings: one per cluster, with the replicas
// and the overrides of that cluster.
package binding

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/events"
	"github.com/karmada-toolkit/karmada/internal/metrics"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/interpreter/notify"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/scope"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/templates"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/works"
)

// Interpreter divides replicas and names dependencies. ReviseReplica may change
// the object it gets.
type Interpreter interface {
	HookEnabled(gvk schema.GroupVersionKind, op configv1alpha1.InterpreterOperation) bool
	ReviseReplica(obj *unstructured.Unstructured, replicas int64) (*unstructured.Unstructured, error)
	GetDependencies(obj *unstructured.Unstructured) ([]configv1alpha1.DependentObjectReference, error)
}

// Deps is what the controllers need beside a manager.
type Deps struct {
	Store       *templates.Store
	Interpreter Interpreter
	// StatefulFailover is the gate StatefulFailoverInjection.
	StatefulFailover bool
	// BindingSyncs and ClusterBindingSyncs are the numbers of workers; 0 means 5.
	BindingSyncs, ClusterBindingSyncs int
	// Events selects which successes are recorded. Default: events.Transitions.
	Events events.Mode
	// Retry bounds the delay between attempts.
	Retry controllers.Retry
}

// reconciler brings the Works of one binding in line with it.
type reconciler struct {
	scope            *scope.Binding
	client           client.Client
	store            *templates.Store
	interpreter      Interpreter
	works            *works.Writer
	events           *events.Recorder
	overrides        *works.Overrides
	ledger           *ledger
	statefulFailover bool
	clock            clock.PassiveClock
	duration         *prometheus.HistogramVec
}

// newDuration registers the metric; one that is there already is shared.
func newDuration(r prometheus.Registerer) *prometheus.HistogramVec {
	return metrics.Register(r, prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "binding_sync_work_duration_seconds", Help: "Time to bring the works of a binding in line with it.",
		Buckets: prometheus.ExponentialBuckets(0.001, 2, 12),
	}, []string{"result"}))
}

// Setup adds the controllers of both kinds of binding to the manager.
func Setup(ctx context.Context, mgr manager.Manager, d Deps) error {
	if err := mgr.GetFieldIndexer().IndexField(ctx, &workv1alpha1.Work{}, workIndex, workKeys); err != nil {
		return fmt.Errorf("indexing works: %w", err)
	}
	duration := newDuration(ctrlmetrics.Registry)
	overrides := &works.Overrides{Events: events.ForManager(mgr, works.OverrideComponent, d.Events)}
	for _, s := range scope.Bindings() {
		r := &reconciler{
			scope: s, client: mgr.GetClient(), store: d.Store, interpreter: d.Interpreter,
			works:  works.NewWriter(mgr.GetClient(), mgr.GetAPIReader()),
			events: events.ForManager(mgr, s.Controller, d.Events), overrides: overrides,
			ledger: newLedger(), statefulFailover: d.StatefulFailover,
			clock: clock.RealClock{}, duration: duration,
		}
		if err := r.register(ctx, mgr, d); err != nil {
			return err
		}
	}
	return nil
}

func (r *reconciler) register(ctx context.Context, mgr manager.Manager, d Deps) error {
	if err := mgr.GetFieldIndexer().IndexField(ctx, r.scope.New(), kindIndex, kindKeys); err != nil {
		return fmt.Errorf("indexing bindings: %w", err)
	}
	if err := mgr.GetFieldIndexer().IndexField(ctx, r.scope.New(), clusterIndex, clusterKeys); err != nil {
		return fmt.Errorf("indexing bindings: %w", err)
	}
	workers := d.ClusterBindingSyncs
	if r.scope.Namespaced {
		workers = d.BindingSyncs
	}
	generation := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	b := builder.ControllerManagedBy(mgr).Named(r.scope.Controller).
		For(r.scope.New(), generation).
		Watches(&workv1alpha1.Work{}, handler.EnqueueRequestsFromMapFunc(r.bindingOfWork), builder.WithPredicates(r.tampered())).
		Watches(&policyv1alpha1.ClusterOverridePolicy{}, handler.EnqueueRequestsFromMapFunc(r.overridden), generation).
		Watches(&clusterv1alpha1.Cluster{}, handler.EnqueueRequestsFromMapFunc(r.targeting), builder.WithPredicates(reshaped())).
		WatchesRawSource(d.Store.Gate()).
		WatchesRawSource(notify.Bindings(d.Interpreter, r.client, r.scope.NewList, nil)).
		WithOptions(controllers.Options(workers, 5, d.Retry))
	if r.scope.Namespaced {
		b = b.Watches(&policyv1alpha1.OverridePolicy{}, handler.EnqueueRequestsFromMapFunc(r.overridden), generation)
	}
	if err := b.Complete(r); err != nil {
		return fmt.Errorf("adding %s: %w", r.scope.Controller, err)
	}
	return nil
}
