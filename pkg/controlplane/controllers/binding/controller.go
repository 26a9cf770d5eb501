// Package binding writes the Works of bindings: one for each target cluster, with the
// replicas and the overrides of that cluster.
package binding

import (
	"context"
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/events"
	"github.com/karmada-toolkit/karmada/internal/gates"
	"github.com/karmada-toolkit/karmada/internal/metrics"
	"github.com/karmada-toolkit/karmada/internal/status"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/delivery"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/env"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/interpretation/notify"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/templates"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/works"
	"github.com/karmada-toolkit/karmada/pkg/domain/dependency"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

// reconciler writes the Works of the bindings of one scope.
type reconciler struct {
	scope    *scope.Binding
	client   client.Client
	store    *templates.Store
	guard    *guard
	keeper   *keeper
	owned    *ownedWorks
	writer   *workWriter
	status   *delivery.StatusWriter
	events   *recorder
	pending  *delivery.Pending
	clock    clock.PassiveClock
	duration *prometheus.HistogramVec
}

// recorders record the events of the controller, and those about overrides.
type recorders struct{ bindings, overrides *events.Recorder }

func newReconciler(e *env.Env, s *scope.Binding, r recorders) *reconciler {
	c, live := e.Client, e.Live
	bindingEvents := &recorder{scope: s, events: r.bindings}
	owned := &ownedWorks{scope: s, client: c, created: status.NewMemory[string, sets.Set[types.NamespacedName]](0)}
	return &reconciler{
		scope: s, client: c, store: e.Store, owned: owned,
		keeper: &keeper{client: c, live: live, store: e.Store},
		guard:  &guard{scope: s, client: c, store: e.Store, interpreter: e.Interpreter},
		writer: &workWriter{
			scope: s, client: c, interpreter: e.Interpreter, works: e.Works(), owned: owned,
			overrides: &works.Overrides{Events: r.overrides}, statefulFailover: e.Gates.Enabled(gates.StatefulFailoverInjection), enforceQuotas: e.Gates.Enabled(gates.FederatedQuotaEnforcement),
			events: bindingEvents, clock: e.Clock, next: status.NewMemory[types.NamespacedName, string](0),
		},
		status: delivery.NewStatusWriter(c, live, e.Clock),
		events: bindingEvents, pending: delivery.NewPending(e.Clock),
		clock: e.Clock, duration: newDuration(e.Metrics),
	}
}

// newDuration registers the metric; one that is registered already is shared.
func newDuration(r prometheus.Registerer) *prometheus.HistogramVec {
	return metrics.Histogram(r, "binding_sync_work_duration_seconds", "Time to bring the works of a binding in line with it.",
		prometheus.ExponentialBuckets(0.001, 2, 12), "result")
}

// Setup adds the controllers of both scopes to the manager.
func Setup(ctx context.Context, e *env.Env) error {
	if err := errors.Join(e.Index(ctx, &workv1alpha1.Work{}, workIndex, workKeys), e.Index(ctx, &workv1alpha1.Work{}, nameIndex, nameKeys)); err != nil {
		return err
	}
	overrides := e.Recorder(works.OverrideComponent)
	for _, s := range scope.Bindings() {
		rec := recorders{bindings: e.Recorder(s.Controller), overrides: overrides}
		if err := newReconciler(e, s, rec).register(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

func (r *reconciler) register(ctx context.Context, e *env.Env) error {
	for name, keys := range map[string]func(workv1alpha2.Binding) []string{kindIndex: kindKeys, clusterIndex: clusterKeys} {
		if err := e.Index(ctx, r.scope.New(), name, controllers.Index(keys)); err != nil {
			return err
		}
	}
	m := &mapper{scope: r.scope, client: r.client}
	generation := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	b := builder.ControllerManagedBy(e.Manager).Named(r.scope.Controller).
		For(r.scope.New(), builder.WithPredicates(predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, controllers.Changed(delivery.PlacementApplied), controllers.Changed(func(before, after client.Object) bool { return dependency.PreservesOtherwise(before, after) })))).
		Watches(&workv1alpha1.Work{}, controllers.EnqueueKey(r.scope.KeyOf), builder.WithPredicates(r.writer.works.ChangedByOthers())).
		Watches(&policyv1alpha1.ClusterOverridePolicy{}, m.overrides(), generation).
		Watches(&clusterv1alpha1.Cluster{}, controllers.Enqueue(m.targeting), builder.WithPredicates(selectorsChanged())).
		WatchesRawSource(templates.Source{Store: e.Store, Requests: m.ended}).
		WatchesRawSource(notify.Bindings(e.Interpreter, r.client, r.scope.NewList, nil)).
		WithOptions(controllers.OptionsOf(scope.Pick(r.scope.Namespaced, e.BindingSyncs, e.ClusterBindingSyncs), 5, e.Retry,
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
