// Package binding writes the Works of bindings: one for each target cluster, with the
// replicas and the overrides of that cluster.
package binding

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/events"
	"github.com/karmada-toolkit/karmada/internal/metrics"
	"github.com/karmada-toolkit/karmada/internal/status"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/interpretation/notify"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/templates"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/works"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

// Interpreter divides replicas and returns dependencies. ReviseReplica may change the
// object it gets.
type Interpreter interface {
	HookEnabled(gvk schema.GroupVersionKind, op configv1alpha1.InterpreterOperation) bool
	ReviseReplica(obj *unstructured.Unstructured, replicas int64) (*unstructured.Unstructured, error)
	GetReplicas(obj *unstructured.Unstructured) (int32, *workv1alpha2.ReplicaRequirements, error)
	GetDependencies(obj *unstructured.Unstructured) ([]configv1alpha1.DependentObjectReference, error)
}

// Deps are the dependencies of the controllers beside a manager.
type Deps struct {
	Store       *templates.Store
	Interpreter Interpreter
	// StatefulFailover is the gate StatefulFailoverInjection.
	StatefulFailover bool
	// EnforceQuotas is the gate FederatedQuotaEnforcement.
	EnforceQuotas bool
	// Workers and ClusterWorkers are the numbers of bindings of each scope reconciled at
	// the same time. Default: 5.
	Workers, ClusterWorkers int
	// Events selects the successes that are recorded. Default: events.Transitions.
	Events events.Mode
	// Retry bounds the delay between attempts.
	Retry controllers.Retry
}

// statusWriter writes the status of bindings.
type statusWriter = status.Writer[workv1alpha2.Binding, *workv1alpha2.ResourceBindingStatus]

// reconciler writes the Works of the bindings of one scope.
type reconciler struct {
	scope    *scope.Binding
	client   client.Client
	store    *templates.Store
	guard    *guard
	keeper   *keeper
	owned    *ownedWorks
	writer   *workWriter
	status   *statusWriter
	events   *recorder
	clock    clock.PassiveClock
	duration *prometheus.HistogramVec
}

// recorders record the events of the controller, and those about overrides.
type recorders struct{ bindings, overrides *events.Recorder }

func newReconciler(s *scope.Binding, c client.Client, live client.Reader, d Deps, r recorders, registry prometheus.Registerer) *reconciler {
	bindingEvents := &recorder{scope: s, events: r.bindings}
	owned := &ownedWorks{scope: s, client: c, created: status.NewMemory[string, sets.Set[types.NamespacedName]](0)}
	return &reconciler{
		scope: s, client: c, store: d.Store, owned: owned,
		keeper: &keeper{client: c, live: live, store: d.Store},
		guard:  &guard{scope: s, client: c, store: d.Store, interpreter: d.Interpreter},
		writer: &workWriter{
			scope: s, client: c, interpreter: d.Interpreter, works: works.NewWriter(c, live), owned: owned,
			overrides: &works.Overrides{Events: r.overrides}, statefulFailover: d.StatefulFailover, enforceQuotas: d.EnforceQuotas,
			events: bindingEvents, clock: clock.RealClock{}, next: status.NewMemory[types.NamespacedName, string](0),
		},
		status: status.For(c, live, clock.RealClock{}, workv1alpha2.Binding.GetStatus, "conditions"),
		events: bindingEvents,
		clock:  clock.RealClock{}, duration: newDuration(registry),
	}
}

// newDuration registers the metric; one that is registered already is shared.
func newDuration(r prometheus.Registerer) *prometheus.HistogramVec {
	return metrics.Histogram(r, "binding_sync_work_duration_seconds", "Time to bring the works of a binding in line with it.",
		prometheus.ExponentialBuckets(0.001, 2, 12), "result")
}

// Setup adds the controllers of both scopes to the manager.
func Setup(ctx context.Context, mgr manager.Manager, d Deps) error {
	if err := mgr.GetFieldIndexer().IndexField(ctx, &workv1alpha1.Work{}, workIndex, workKeys); err != nil {
		return fmt.Errorf("indexing works: %w", err)
	}
	overrides := events.ForManager(mgr, works.OverrideComponent, d.Events)
	if err := mgr.GetFieldIndexer().IndexField(ctx, &workv1alpha1.Work{}, nameIndex, nameKeys); err != nil {
		return fmt.Errorf("indexing works: %w", err)
	}
	for _, s := range scope.Bindings() {
		rec := recorders{bindings: events.ForManager(mgr, s.Controller, d.Events), overrides: overrides}
		if err := newReconciler(s, mgr.GetClient(), mgr.GetAPIReader(), d, rec, ctrlmetrics.Registry).register(ctx, mgr, d); err != nil {
			return err
		}
	}
	return nil
}

func (r *reconciler) register(ctx context.Context, mgr manager.Manager, d Deps) error {
	for name, keys := range map[string]func(workv1alpha2.Binding) []string{kindIndex: kindKeys, clusterIndex: clusterKeys} {
		if err := mgr.GetFieldIndexer().IndexField(ctx, r.scope.New(), name, controllers.Index(keys)); err != nil {
			return fmt.Errorf("indexing bindings: %w", err)
		}
	}
	m := &mapper{scope: r.scope, client: r.client}
	generation := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	b := builder.ControllerManagedBy(mgr).Named(r.scope.Controller).
		For(r.scope.New(), generation).
		Watches(&workv1alpha1.Work{}, controllers.EnqueueKey(r.scope.KeyOf), builder.WithPredicates(foreignChange(r.writer.works))).
		Watches(&policyv1alpha1.ClusterOverridePolicy{}, m.overrides(), generation).
		Watches(&clusterv1alpha1.Cluster{}, controllers.Enqueue(m.targeting), builder.WithPredicates(selectorsChanged())).
		WatchesRawSource(templates.Source{Store: d.Store, Requests: m.ended}).
		WatchesRawSource(notify.Bindings(d.Interpreter, r.client, r.scope.NewList, nil)).
		WithOptions(controllers.OptionsOf(scope.Pick(r.scope.Namespaced, d.Workers, d.ClusterWorkers), 5, d.Retry,
			func(req reconcile.Request) string { return r.tenant(ctx, req.NamespacedName) }))
	if r.scope.Namespaced {
		b = b.Watches(&policyv1alpha1.OverridePolicy{}, m.overrides(), generation)
	}
	return b.Complete(r)
}

// tenant returns whose share of the workers a binding uses: wide ones have a share of their own.
func (r *reconciler) tenant(ctx context.Context, key types.NamespacedName) string {
	b := r.scope.New()
	if err := r.client.Get(ctx, key, b, client.UnsafeDisableDeepCopy); err == nil && len(b.GetSpec().Clusters) > slice {
		return controllers.Bulk(key.Namespace)
	}
	return key.Namespace
}
