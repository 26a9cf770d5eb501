// Package applicationfailover evicts applications from clusters in which they are unhealthy for longer than their
// policies tolerate.
package applicationfailover

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/events"
	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/eviction"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/eviction/evictionevent"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/scope"
)

// minRequeue is the delay before a toleration of zero seconds is over.
const minRequeue = 100 * time.Millisecond

// Interpreter reports what is known about kinds.
type Interpreter interface {
	// HookEnabled reports whether there is a rule for an operation on a kind.
	HookEnabled(schema.GroupVersionKind, configv1alpha1.InterpreterOperation) bool
}

// Deps are the dependencies of the controllers beside a manager.
type Deps struct {
	Interpreter Interpreter
	// GracefulEviction and PreserveState are the feature gates GracefulEviction and StatefulFailoverInjection.
	GracefulEviction, PreserveState bool
	// BindingSyncs and ClusterBindingSyncs are the numbers of bindings that are reconciled at a time. Default 5.
	BindingSyncs, ClusterBindingSyncs int
	// Retry bounds the delay between attempts.
	Retry controllers.Retry
	// Clock is the real clock by default.
	Clock clock.PassiveClock
}

type reconciler struct {
	scope  *scope.Binding
	client client.Client
	events *events.Recorder
	deps   Deps

	// unhealthySince is when applications were first observed unhealthy, by binding and cluster.
	mu             sync.Mutex
	unhealthySince map[types.NamespacedName]map[string]time.Time
}

// Producer returns the name of the controller of a scope. It is the producer of its tasks and the source of its events.
func Producer(s *scope.Binding) string {
	if s.Namespaced {
		return eviction.ProducerResourceBindingFailover
	}
	return eviction.ProducerClusterResourceBindingFailover
}

// Setup adds a controller for each kind of binding to the manager.
func Setup(_ context.Context, mgr manager.Manager, d Deps) error {
	if d.Clock == nil {
		d.Clock = clock.RealClock{}
	}
	for _, s := range scope.Bindings() {
		workers := d.ClusterBindingSyncs
		if s.Namespaced {
			workers = d.BindingSyncs
		}
		r := &reconciler{
			scope: s, client: mgr.GetClient(), events: events.ForManager(mgr, Producer(s), events.Transitions), deps: d,
			unhealthySince: map[types.NamespacedName]map[string]time.Time{},
		}
		err := builder.ControllerManagedBy(mgr).Named(Producer(s)).
			For(s.New(), builder.WithPredicates(failsOver())).
			WithOptions(controllers.Options(workers, 5, d.Retry)).
			Complete(r)
		if err != nil {
			return fmt.Errorf("adding %s: %w", Producer(s), err)
		}
	}
	return nil
}

// failsOver passes changes of bindings that have an application failover behavior, or had one.
func failsOver() predicate.Predicate {
	has := func(obj client.Object) bool {
		b, ok := obj.(workv1alpha2.Binding)
		return ok && b.GetSpec().Failover != nil && b.GetSpec().Failover.Application != nil
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return has(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok1 := e.ObjectOld.(workv1alpha2.Binding)
			after, ok2 := e.ObjectNew.(workv1alpha2.Binding)
			if !ok1 || !ok2 || !has(before) && !has(after) {
				return false
			}
			return before.GetGeneration() != after.GetGeneration() ||
				!equality.Semantic.DeepEqual(before.GetStatus().AggregatedStatus, after.GetStatus().AggregatedStatus)
		},
		DeleteFunc: func(e event.DeleteEvent) bool { return has(e.Object) },
	}
}

// Reconcile evicts one application from the clusters in which it is unhealthy for too long.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	b := r.scope.New()
	if err := r.client.Get(ctx, req.NamespacedName, b); err != nil {
		if apierrors.IsNotFound(err) {
			r.store(req.NamespacedName, nil)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	ref := &b.GetSpec().Resource
	since := r.load(req.NamespacedName)
	verdict, err := eviction.Application(eviction.ApplicationFacts{
		Now: r.deps.Clock.Now(), Binding: b, Producer: Producer(r.scope),
		HasHealth:         r.deps.Interpreter.HookEnabled(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind), configv1alpha1.InterpreterOperationInterpretHealth),
		NeedsDependencies: r.scope.Namespaced, GracefulEviction: r.deps.GracefulEviction, PreserveState: r.deps.PreserveState,
		UnhealthySince: since,
	})
	if err != nil {
		r.events.Warning(b, evictionevent.ReasonFailed, fmt.Sprintf("Evict the application failed: %v", err))
		if errors.Is(err, eviction.ErrGracefulEvictionOff) {
			err = reconcile.TerminalError(fmt.Errorf("feature gate GracefulEviction: %w", err)) // only a restart changes it
		}
		return reconcile.Result{}, fmt.Errorf("application failover of %s %q: %w", r.scope.Kind, req, err)
	}
	if verdict.Spec != nil {
		if err := r.evict(ctx, b, verdict.Spec); err != nil {
			return reconcile.Result{}, err
		}
	}
	r.store(req.NamespacedName, verdict.UnhealthySince)
	if verdict.Requeue {
		return reconcile.Result{RequeueAfter: max(verdict.RequeueAfter, minRequeue)}, nil
	}
	return reconcile.Result{}, nil
}

// evict writes the tasks. Until it succeeds, the application counts as unhealthy since the same time.
func (r *reconciler) evict(ctx context.Context, b workv1alpha2.Binding, spec *workv1alpha2.ResourceBindingSpec) error {
	before := b.DeepCopyObject().(workv1alpha2.Binding)
	*b.GetSpec() = *spec
	err := r.client.Patch(ctx, b, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if err == nil {
		return nil
	}
	if !apierrors.IsConflict(err) {
		for _, task := range spec.GracefulEvictionTasks[len(before.GetSpec().GracefulEvictionTasks):] {
			evictionevent.Failed(r.events, before, task.FromCluster, err)
		}
	}
	return fmt.Errorf("writing the eviction tasks of %s %q: %w", r.scope.Kind, client.ObjectKeyFromObject(b), err)
}

func (r *reconciler) load(key types.NamespacedName) map[string]time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.unhealthySince[key]
}

// store replaces the times of a binding; none forgets it.
func (r *reconciler) store(key types.NamespacedName, since map[string]time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(since) == 0 {
		delete(r.unhealthySince, key)
		return
	}
	r.unhealthySince[key] = since
}
