// Package rebalancer triggers a fresh schedule of the workloads that WorkloadRebalancers name, writes the results into
// their status, and deletes them when their time to live is over.
package rebalancer

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/patch"
	appsv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/apps/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/env"
	"github.com/karmada-toolkit/karmada/pkg/domain/eviction"
)

// Component is the name of the controller.
const Component = "workload-rebalancer"

// minRequeue gives the cache time to observe the status that was just written.
const minRequeue = 100 * time.Millisecond

type reconciler struct {
	client client.Client
	live   client.Reader
	clock  clock.PassiveClock
}

// Setup adds the controller to the manager.
func Setup(_ context.Context, e *env.Env) error {
	return controllers.Add(e.Manager, Component, &appsv1alpha1.WorkloadRebalancer{}, predicate.GenerationChangedPredicate{}, e.Options(1, 1),
		&reconciler{client: e.Client, live: e.Live, clock: e.Clock})
}

// Reconcile triggers the workloads without a result, and finishes the rebalancer.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	obj := &appsv1alpha1.WorkloadRebalancer{}
	if err := r.client.Get(ctx, req.NamespacedName, obj); err != nil || obj.DeletionTimestamp != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	workloads := eviction.RebalancedWorkloads(obj)
	var errs []error
	for i := range workloads {
		if workloads[i].Result == "" {
			errs = append(errs, r.trigger(ctx, obj, &workloads[i]))
		}
	}
	verdict := eviction.FinishRebalance(obj, workloads, r.clock.Now())
	if verdict.Changed {
		locked := patch.Locked(obj)
		obj.Status = verdict.Status
		if err := r.client.Status().Patch(ctx, obj, locked); err != nil {
			return reconcile.Result{}, errors.Join(append(errs, fmt.Errorf("writing the status: %w", err))...)
		}
	}
	switch {
	case verdict.Retry > 0:
		return reconcile.Result{}, fmt.Errorf("%d resource reschedule triggered failed and need retry: %w", verdict.Retry, errors.Join(errs...))
	case verdict.Delete:
		// A changed spec adds workloads; the version makes sure that they are not lost.
		err := r.client.Delete(ctx, obj, client.Preconditions{UID: &obj.UID, ResourceVersion: &obj.ResourceVersion})
		return reconcile.Result{}, client.IgnoreNotFound(err)
	case verdict.Requeue:
		return reconcile.Result{RequeueAfter: max(verdict.RequeueAfter, minRequeue)}, nil
	}
	return reconcile.Result{}, nil
}

// trigger makes the scheduler schedule a workload anew and sets the result. A failed request leaves it without one.
func (r *reconciler) trigger(ctx context.Context, rebalancer *appsv1alpha1.WorkloadRebalancer, w *appsv1alpha1.ObservedWorkload) error {
	namespace, name := eviction.RebalancedBinding(w.Workload)
	var binding workv1alpha2.Binding = &workv1alpha2.ClusterResourceBinding{}
	if namespace != "" {
		binding = &workv1alpha2.ResourceBinding{}
	}
	key := client.ObjectKey{Namespace: namespace, Name: name}
	err := r.client.Get(ctx, key, binding)
	if apierrors.IsNotFound(err) {
		// The result is final, so the cache must not be the reason for it.
		err = r.live.Get(ctx, key, binding)
	}
	if apierrors.IsNotFound(err) {
		w.Result, w.Reason = appsv1alpha1.RebalanceFailed, appsv1alpha1.RebalanceObjectNotFound
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the binding %q: %w", key, err)
	}
	if eviction.RebalanceDue(binding.GetSpec().RescheduleTriggeredAt, rebalancer.CreationTimestamp) {
		trigger := func() { binding.GetSpec().RescheduleTriggeredAt = &rebalancer.CreationTimestamp }
		if err := patch.ChangeLocked(ctx, r.client, binding, trigger); err != nil {
			return fmt.Errorf("triggering the binding %q: %w", key, err)
		}
	}
	w.Result = appsv1alpha1.RebalanceSuccessful
	return nil
}
