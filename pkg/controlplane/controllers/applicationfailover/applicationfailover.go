// Package applicationfailover evicts applications from clusters in which they are unhealthy for longer than their
// policies tolerate.
package applicationfailover

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/events"
	"github.com/karmada-toolkit/karmada/internal/patch"
	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/evictions"
	"github.com/karmada-toolkit/karmada/pkg/domain/eviction"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
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
	// Hold reports whether a cluster must not be evicted now, because many clusters failed at once. Optional.
	Hold func(ctx context.Context, cluster string) (bool, error)
	// Budget limits the evictions of the whole federation. Optional.
	Budget Budget
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
	times  *times
}

// Budget limits the evictions of the whole federation.
type Budget interface {
	// Take takes one eviction from the budget, or returns the time until there is one.
	Take(ctx context.Context) (after time.Duration, err error)
	// Return gives one back that was not used.
	Return()
}

// Producer returns the name of the controller of a scope. It is the producer of its tasks and the source of its events.
func Producer(s *scope.Binding) string {
	return scope.Pick(s.Namespaced, eviction.ProducerResourceBindingFailover, eviction.ProducerClusterResourceBindingFailover)
}

// Setup adds a controller for each kind of binding to the manager.
func Setup(_ context.Context, mgr manager.Manager, d Deps) error {
	d.Clock = cmp.Or[clock.PassiveClock](d.Clock, clock.RealClock{})
	for _, s := range scope.Bindings() {
		workers := scope.Pick(s.Namespaced, d.BindingSyncs, d.ClusterBindingSyncs)
		r := &reconciler{scope: s, client: mgr.GetClient(), events: events.ForManager(mgr, Producer(s), events.Transitions), deps: d, times: newTimes()}
		if err := controllers.Add(mgr, Producer(s), s.New(), failsOver(), controllers.Options(workers, 5, d.Retry), r); err != nil {
			return err
		}
	}
	return nil
}

// failsOver passes changes of bindings that have an application failover behavior, or had one.
func failsOver() predicate.Predicate {
	has := func(b workv1alpha2.Binding) bool {
		return b.GetSpec().Failover != nil && b.GetSpec().Failover.Application != nil
	}
	return controllers.Filter[workv1alpha2.Binding]{
		Created: has,
		Updated: func(before, after workv1alpha2.Binding) bool {
			return (has(before) || has(after)) && (before.GetGeneration() != after.GetGeneration() || scope.Claimed(before) != scope.Claimed(after) ||
				!equality.Semantic.DeepEqual(before.GetStatus().AggregatedStatus, after.GetStatus().AggregatedStatus))
		},
		Deleted: has,
	}
}

// Reconcile evicts one application from the clusters in which it is unhealthy for too long.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	b := r.scope.New()
	if err := r.client.Get(ctx, req.NamespacedName, b); err != nil {
		if apierrors.IsNotFound(err) {
			r.times.forget(req.NamespacedName)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	now := r.deps.Clock.Now()
	verdict, err := r.decide(ctx, b, now)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("application failover of %s %q: %w", r.scope.Kind, req, err)
	}
	if after, err := r.take(ctx, &verdict); err != nil || after > 0 { // the times of what is due are kept
		return controllers.After(after, err)
	}
	before := b.DeepCopyObject().(workv1alpha2.Binding)
	if verdict.Spec != nil {
		*b.GetSpec() = *verdict.Spec
		eviction.Stamp(b.GetSpec().GracefulEvictionTasks, now)
	}
	lasting, next := persistent(verdict.UnhealthySince, now)
	if b.GetDeletionTimestamp() == nil && annotate(b, lasting) || verdict.Spec != nil {
		if err := r.write(ctx, before, b, verdict.Spec != nil); err != nil {
			return reconcile.Result{}, err
		}
	}
	r.times.store(req.NamespacedName, verdict.UnhealthySince)
	if verdict.Requeue && (next == 0 || verdict.RequeueAfter < next) {
		next = max(verdict.RequeueAfter, minRequeue)
	}
	return reconcile.Result{RequeueAfter: next}, nil
}

// take takes an eviction from the budget if the verdict needs one, or returns the time until there is one.
func (r *reconciler) take(ctx context.Context, v *eviction.ApplicationVerdict) (after time.Duration, err error) {
	if v.Spec == nil || r.deps.Budget == nil {
		return 0, nil
	}
	return r.deps.Budget.Take(ctx)
}

// decide returns what becomes of an application, and records why it cannot be evicted.
func (r *reconciler) decide(ctx context.Context, b workv1alpha2.Binding, now time.Time) (eviction.ApplicationVerdict, error) {
	held, err := r.held(ctx, b)
	if err != nil {
		return eviction.ApplicationVerdict{}, err
	}
	ref := &b.GetSpec().Resource
	verdict, err := eviction.Application(eviction.ApplicationFacts{
		Now: now, Binding: b, Producer: Producer(r.scope),
		HasHealth:         r.deps.Interpreter.HookEnabled(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind), configv1alpha1.InterpreterOperationInterpretHealth),
		NeedsDependencies: r.scope.Namespaced, GracefulEviction: r.deps.GracefulEviction, PreserveState: r.deps.PreserveState,
		UnhealthySince: r.times.load(b, now), Held: held, KeepUnclaimed: true,
	})
	if err != nil {
		r.times.store(client.ObjectKeyFromObject(b), verdict.UnhealthySince)
		r.events.Warning(b, evictions.ReasonFailed, fmt.Sprintf("Evict the application failed: %v", err))
		if errors.Is(err, eviction.ErrGracefulEvictionOff) {
			err = reconcile.TerminalError(fmt.Errorf("feature gate GracefulEviction: %w", err)) // only a restart changes it
		}
	}
	return verdict, err
}

// held returns the clusters with an unhealthy application that it must not leave now.
func (r *reconciler) held(ctx context.Context, b workv1alpha2.Binding) ([]string, error) {
	if r.deps.Hold == nil {
		return nil, nil
	}
	var out []string
	for i := range b.GetStatus().AggregatedStatus {
		item := &b.GetStatus().AggregatedStatus[i]
		if item.Health != workv1alpha2.ResourceUnhealthy {
			continue
		}
		held, err := r.deps.Hold(ctx, item.ClusterName)
		if err != nil {
			return nil, err
		}
		if held {
			out = append(out, item.ClusterName)
		}
	}
	return out, nil
}

// write writes tasks and times. Until it succeeds, the application counts as unhealthy since the same time.
func (r *reconciler) write(ctx context.Context, before, b workv1alpha2.Binding, evicts bool) error {
	tasks := b.GetSpec().GracefulEvictionTasks
	err := r.client.Patch(ctx, b, patch.Locked(before))
	if err == nil {
		return nil
	}
	if evicts && r.deps.Budget != nil {
		r.deps.Budget.Return()
	}
	if evicts && !apierrors.IsConflict(err) {
		for _, task := range tasks[len(before.GetSpec().GracefulEvictionTasks):] {
			evictions.Failed(r.events, before, task.FromCluster, err)
		}
	}
	return fmt.Errorf("writing the eviction tasks of %s %q: %w", r.scope.Kind, client.ObjectKeyFromObject(b), err)
}
