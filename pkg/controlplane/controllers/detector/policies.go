package detector

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/patch"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/env"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/templates"
	"github.com/karmada-toolkit/karmada/pkg/domain/policy"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

// policyReconciler enqueues the templates of a policy that changed, and releases those
// that it no longer selects.
type policyReconciler struct {
	scope     *scope.Policy
	client    client.Client
	store     *templates.Store
	queue     *queue
	waiting   *waiting
	claims    *claims
	preemptor *preemptor
	held      *heldReporter
}

// register adds the reconciler to the manager.
func (r *policyReconciler) register(e *env.Env) error {
	return e.Controller(r.scope.Controller, scope.Pick(r.scope.Namespaced, e.PolicySyncs, e.ClusterPolicySyncs), 1).
		For(r.scope.New(), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(r.scope.NewOverride(), controllers.Enqueue(r.dependants), builder.WithPredicates(controllers.Created())).
		Complete(r)
}

// dependants returns the policies that depend on an override policy.
func (r *policyReconciler) dependants(ctx context.Context, override client.Object) []reconcile.Request {
	return controllers.Requests(controllers.Listed(ctx, r.client, r.scope.NewList(), client.InNamespace(override.GetNamespace()),
		client.MatchingFields{dependsIndex: override.GetName()}).Policies())
}

// Reconcile enqueues the templates of a policy.
func (r *policyReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	p := r.scope.New()
	if err := r.client.Get(ctx, req.NamespacedName, p); err != nil {
		if apierrors.IsNotFound(err) {
			r.preemptor.priorities.Delete(req.NamespacedName)
			r.held.reported.Delete(req.NamespacedName)
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
		return reconcile.Result{}, r.finalize(ctx, p)
	}
	if err := r.enqueue(ctx, p); err != nil {
		return reconcile.Result{}, err
	}
	if err := r.preemptor.run(ctx, p); err != nil {
		return reconcile.Result{}, err
	}
	r.held.report(ctx, p)
	return reconcile.Result{}, nil
}

// finalize releases the templates of a policy that is being deleted. Their bindings,
// and the objects in the members, are kept.
func (r *policyReconciler) finalize(ctx context.Context, p policyv1alpha1.Policy) error {
	if !slices.Contains(p.GetFinalizers(), r.scope.Finalizer) {
		return nil
	}
	claim := policy.For(p)
	claimed, err := r.claimed(claim)
	if err != nil {
		return err
	}
	if err := r.claims.releaseAll(ctx, claimed, claim); err != nil {
		return err
	}
	return patch.RemoveFinalizer(ctx, r.client, p, r.scope.Finalizer)
}

// enqueue releases the templates that a policy no longer selects, and enqueues its
// other templates and those without a policy that it may select.
func (r *policyReconciler) enqueue(ctx context.Context, p policyv1alpha1.Policy) error {
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
	if claim.Cluster {
		if err := r.enqueueClusterFirst(ctx, p, lazy); err != nil {
			return err
		}
	}
	return r.claims.releaseAll(ctx, lost, claim)
}

// enqueueClusterFirst enqueues the templates that a ClusterPropagationPolicy takes over from
// PropagationPolicies.
func (r *policyReconciler) enqueueClusterFirst(ctx context.Context, p policyv1alpha1.Policy, lazy bool) error {
	for _, rs := range p.PropagationSpec().ResourceSelectors {
		gvk := schema.FromAPIVersionAndKind(rs.APIVersion, rs.Kind)
		if !policy.ClusterFirst(gvk.GroupKind()) {
			continue
		}
		objs, err := r.store.List(ctx, gvk, rs.Namespace, labels.Everything())
		if err != nil {
			return err
		}
		for _, obj := range objs {
			if holder, held := policy.Of(obj); held && !holder.Cluster && policy.Matches(obj, p) {
				r.queue.addLowPriority(templateKey{objectKey: keyOf(obj), byPolicy: lazy})
			}
		}
	}
	return nil
}

// claimed returns the templates with a claim.
func (r *policyReconciler) claimed(claim policy.Claim) ([]*unstructured.Unstructured, error) {
	if claim.ID == "" {
		return nil, nil
	}
	return r.store.Claimed(claim.ID)
}
