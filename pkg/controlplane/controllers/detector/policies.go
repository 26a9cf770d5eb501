package detector

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/patch"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/policy"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/scope"
)

// releases is how many templates of a policy are released at the same time.
const releases = 8

// policyReconciler passes the changes of a policy on to its templates.
type policyReconciler struct {
	*detector
	scope      *scope.Policy
	priorities *priorities
}

func setupPolicies(mgr manager.Manager, d *detector, s *scope.Policy, deps Deps) error {
	workers := deps.ClusterPolicySyncs
	if s.Namespaced {
		workers = deps.PolicySyncs
	}
	r := &policyReconciler{detector: d, scope: s, priorities: newPriorities()}
	err := builder.ControllerManagedBy(mgr).Named(s.Controller).
		For(s.New(), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(s.NewOverride(), handler.EnqueueRequestsFromMapFunc(r.dependants), builder.WithPredicates(controllers.Created())).
		WithOptions(controllers.Options(workers, 1, deps.Retry)).
		Complete(r)
	if err != nil {
		return fmt.Errorf("adding %s: %w", s.Controller, err)
	}
	return nil
}

// dependants returns the policies that wait for an override policy.
func (r *policyReconciler) dependants(ctx context.Context, override client.Object) []reconcile.Request {
	list := r.scope.NewList()
	err := r.client.List(ctx, list, client.InNamespace(override.GetNamespace()),
		client.MatchingFields{dependsIndex: override.GetName()}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil
	}
	return controllers.Requests(list.Policies())
}

// Reconcile passes the changes of a policy on to its templates.
func (r *policyReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	p := r.scope.New()
	if err := r.client.Get(ctx, req.NamespacedName, p); err != nil {
		if apierrors.IsNotFound(err) {
			r.priorities.forget(req.NamespacedName)
			r.held.forget(!r.scope.Namespaced, req.NamespacedName)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if err := r.queue.wait(ctx); err != nil {
		return reconcile.Result{}, err
	}
	if err := r.store.WaitForSync(ctx); err != nil {
		return reconcile.Result{}, err
	}
	if p.GetDeletionTimestamp() != nil {
		return reconcile.Result{}, r.retire(ctx, p)
	}
	if err := r.spread(ctx, p); err != nil {
		return reconcile.Result{}, err
	}
	if r.gates.Preemption {
		if err := r.preemption(ctx, p); err != nil {
			return reconcile.Result{}, err
		}
	}
	r.reportHeld(ctx, p)
	return reconcile.Result{}, nil
}

// retire releases what a policy that is being deleted holds. Bindings and what
// they brought to the members stay.
func (r *policyReconciler) retire(ctx context.Context, p policyv1alpha1.Policy) error {
	drop, held, err := patch.RemoveFinalizer(p, r.scope.Finalizer)
	if err != nil || !held {
		return err
	}
	claim := policy.For(p)
	claimed, err := r.claimed(claim)
	if err != nil {
		return err
	}
	if err := r.releaseAll(ctx, claimed, claim); err != nil {
		return err
	}
	if err := r.client.Patch(ctx, p, drop); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("removing the finalizer of %s: %w", describe(claim), err))
	}
	return nil
}

// spread releases the templates that a policy no longer selects and has the
// others, and those that wait for a policy like it, looked at again.
func (r *policyReconciler) spread(ctx context.Context, p policyv1alpha1.Policy) error {
	claim := policy.For(p)
	claimed, err := r.claimed(claim)
	if err != nil {
		return err
	}
	var lost []*unstructured.Unstructured
	lazy := policy.IsLazy(p)
	for _, obj := range claimed {
		if !policy.Matches(obj, p) {
			lost = append(lost, obj)
			continue
		}
		r.queue.addLowPriority(templateKey{objectKey: keyOf(obj), byPolicy: lazy})
	}
	for _, key := range r.waiting.candidates(p) {
		r.queue.addLowPriority(templateKey{objectKey: key, byPolicy: lazy})
	}
	return r.releaseAll(ctx, lost, claim)
}

func (r *policyReconciler) claimed(claim policy.Claim) ([]*unstructured.Unstructured, error) {
	if claim.ID == "" {
		return nil, nil
	}
	return r.store.Claimed(claim.ID)
}

func (r *policyReconciler) releaseAll(ctx context.Context, objs []*unstructured.Unstructured, claim policy.Claim) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(releases)
	for _, obj := range objs {
		g.Go(func() error { return r.release(ctx, obj, claim) })
	}
	return g.Wait()
}
