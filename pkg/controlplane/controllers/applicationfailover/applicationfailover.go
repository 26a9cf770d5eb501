// Package applicationfailover evicts applications from clusters in which they are unhealthy for longer than their
// policies tolerate.
package applicationfailover

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/events"
	"github.com/karmada-toolkit/karmada/internal/gates"
	"github.com/karmada-toolkit/karmada/internal/patch"
	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/env"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/evictions"
	"github.com/karmada-toolkit/karmada/pkg/domain/eviction"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

// minRequeue is the delay before a toleration of zero seconds is over.
const minRequeue = 100 * time.Millisecond

type reconciler struct {
	scope  *scope.Binding
	client client.Client
	events *events.Recorder
	env    *env.Env
	limits evictions.Limits
	times  *times
}

// Producer returns the name of the controller of a scope. It is the producer of its tasks and the source of its events.
func Producer(s *scope.Binding) string {
	return scope.Pick(s.Namespaced, eviction.ProducerResourceBindingFailover, eviction.ProducerClusterResourceBindingFailover)
}

// Setup adds a controller for each kind of binding to the manager.
func Setup(_ context.Context, e *env.Env, limits evictions.Limits) error {
	for _, s := range scope.Bindings() {
		options := e.Options(scope.Pick(s.Namespaced, e.BindingSyncs, e.ClusterBindingSyncs), 5)
		r := &reconciler{scope: s, client: e.Client, events: events.ForManager(e.Manager, Producer(s), events.Transitions), env: e, limits: limits, times: newTimes()}
		if err := controllers.Add(e.Manager, Producer(s), s.New(), failsOver(), options, r); err != nil {
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
	now := r.env.Clock.Now()
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
	if v.Spec == nil {
		return 0, nil
	}
	return r.limits.Take(ctx)
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
		HasHealth:         r.env.Interpreter.HookEnabled(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind), configv1alpha1.InterpreterOperationInterpretHealth),
		NeedsDependencies: r.scope.Namespaced, GracefulEviction: r.env.Gates.Enabled(gates.GracefulEviction), PreserveState: r.env.Gates.Enabled(gates.StatefulFailoverInjection),
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
	var out []string
	for i := range b.GetStatus().AggregatedStatus {
		item := &b.GetStatus().AggregatedStatus[i]
		if item.Health != workv1alpha2.ResourceUnhealthy {
			continue
		}
		held, err := r.limits.Held(ctx, item.ClusterName)
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
	if evicts {
		r.limits.Return()
	}
	if evicts && !apierrors.IsConflict(err) {
		for _, task := range tasks[len(before.GetSpec().GracefulEvictionTasks):] {
			evictions.Failed(r.events, before, task.FromCluster, err)
		}
	}
	return fmt.Errorf("writing the eviction tasks of %s %q: %w", r.scope.Kind, client.ObjectKeyFromObject(b), err)
}
