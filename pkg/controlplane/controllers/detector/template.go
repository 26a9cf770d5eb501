package detector

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/templates"
	"github.com/karmada-toolkit/karmada/pkg/domain/policy"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

// errDependentOverrides is returned while an override policy does not exist that a
// policy depends on.
var errDependentOverrides = errors.New("waiting for dependent overrides")

// errPolicyDeleted is returned while the policy that claims a template is being
// deleted. Releasing the template enqueues it again.
var errPolicyDeleted = errors.New("is being deleted")

// policyDeletedRetry is the time after which a template is reconciled again whose
// policy is being deleted but keeps a finalizer.
const policyDeletedRetry = 5 * time.Second

// templateReconciler applies to a template the policy that claims or selects it.
type templateReconciler struct {
	store     *templates.Store
	policies  *policyReader
	bindings  *bindings
	claims    *claims
	waiting   *waiting
	unmatched *unmatchedReporter
	events    *recorder
	metrics   *metrics
}

// Reconcile applies to a template the policy that claims or selects it.
func (r *templateReconciler) Reconcile(ctx context.Context, key templateKey) (reconcile.Result, error) {
	obj, err := r.store.Get(ctx, key.gvk, key.namespace, key.name)
	if apierrors.IsNotFound(err) {
		r.waiting.remove(key.objectKey)
		r.bindings.forget(key.objectKey)
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	if obj.GetLabels()[workv1alpha2.ResourceTemplateClaimedByLabel] != "" {
		r.waiting.remove(key.objectKey)
		return reconcile.Result{}, nil
	}
	if policy.Own(obj) != "" {
		return reconcile.Result{}, r.claims.releaseOwn(ctx, obj)
	}
	claim, claimed := policy.Of(obj)
	var p policyv1alpha1.Policy
	if claimed {
		p, err = r.claimant(ctx, obj, claim)
	} else {
		p, err = r.match(ctx, obj)
	}
	if err == nil && p == nil && !claimed {
		if _, err := r.claims.setActive(ctx, obj, true); err != nil {
			return reconcile.Result{}, err
		}
		return reconcile.Result{}, r.unmatched.report(ctx, obj)
	}
	if errors.Is(err, errPolicyDeleted) {
		log.FromContext(ctx).V(2).Info("Waiting for the deletion of a policy", "template", klog.KObj(obj), "policy", claim.Name)
		r.unmatched.queue.addAfter(templateKey{objectKey: key.objectKey, byPolicy: true}, policyDeletedRetry)
		return reconcile.Result{}, nil
	}
	if err != nil || p == nil {
		return reconcile.Result{}, err
	}
	r.waiting.remove(key.objectKey)
	return reconcile.Result{}, r.apply(ctx, obj, p, key.byPolicy)
}

// claimant returns the policy that claims the template, or nil if there is nothing to
// apply.
func (r *templateReconciler) claimant(ctx context.Context, obj *unstructured.Unstructured, claim policy.Claim) (policyv1alpha1.Policy, error) {
	p, err := r.policies.get(ctx, claim)
	if apierrors.IsNotFound(err) {
		log.FromContext(ctx).Info("Releasing a template whose policy does not exist", "template", klog.KObj(obj), "policy", claim.Name)
		return nil, r.claims.release(ctx, obj, claim)
	}
	if err != nil {
		return nil, err
	}
	if p.GetDeletionTimestamp() != nil {
		return nil, fmt.Errorf("%s %w", describe(claim), errPolicyDeleted)
	}
	if !policy.Matches(obj, p) {
		return nil, nil
	}
	if !claim.Cluster && policy.ClusterFirst(obj.GroupVersionKind().GroupKind()) {
		candidates, err := r.policies.candidates(ctx, scope.ClusterPolicy(), obj)
		if err != nil {
			return nil, err
		}
		if policy.Best(obj, candidates) != nil { // it is claimed by the best one when the release is observed
			return nil, r.claims.release(ctx, obj, claim)
		}
	}
	return p, r.policies.dependentOverrides(ctx, p)
}

// match returns the policy that selects an unclaimed template, or nil.
func (r *templateReconciler) match(ctx context.Context, obj *unstructured.Unstructured) (policyv1alpha1.Policy, error) {
	// A policy that is created from here on finds the template among those that wait.
	r.waiting.update(keyOf(obj), func(t *waitingTemplate) { t.waits = true })
	defer r.metrics.matched(r.metrics.clock.Now())
	for _, s := range policy.Scopes(obj) {
		candidates, err := r.policies.candidates(ctx, s, obj)
		if err != nil {
			return nil, err
		}
		if best := policy.Best(obj, candidates); best != nil {
			if err := r.policies.dependentOverrides(ctx, best); err != nil {
				return best, err
			}
			return best, r.reportOutranked(ctx, obj, best, candidates)
		}
	}
	return nil, nil
}

// reportOutranked records an event on each policy that selects a template and has a
// lower rank than the best one.
func (r *templateReconciler) reportOutranked(ctx context.Context, obj *unstructured.Unstructured, best policyv1alpha1.Policy, candidates []policyv1alpha1.Policy) error {
	winner := policy.For(best)
	if !winner.Cluster {
		others, err := r.policies.candidates(ctx, scope.ClusterPolicy(), obj)
		if err != nil {
			return err
		}
		candidates = append(slices.Clone(candidates), others...)
	}
	for _, p := range candidates {
		if p.GetDeletionTimestamp() == nil && !policy.For(p).SamePolicy(winner) && policy.Matches(obj, p) {
			r.events.claimedByOther(p, claimedBy(obj, winner))
		}
	}
	return nil
}

// apply applies a policy to a template and records the outcome.
func (r *templateReconciler) apply(ctx context.Context, obj *unstructured.Unstructured, p policyv1alpha1.Policy, byPolicy bool) error {
	start := r.metrics.clock.Now()
	changed, err := r.write(ctx, obj, p, byPolicy)
	r.metrics.applied(start, err)
	switch {
	case apierrors.IsConflict(err):
	case err != nil:
		r.events.notApplied(obj, policy.For(p), err)
	case changed:
		r.events.applied(obj, policy.For(p))
	default:
		r.events.recovered(obj)
	}
	return err
}

// write writes the claim of a policy on the template and then the binding. It reports
// whether it wrote the binding.
func (r *templateReconciler) write(ctx context.Context, obj *unstructured.Unstructured, p policyv1alpha1.Policy, byPolicy bool) (bool, error) {
	obj, err := r.claims.take(ctx, obj, policy.For(p))
	if err == nil && obj != nil {
		obj, err = r.claims.setActive(ctx, obj, false)
	}
	if err != nil || obj == nil || byPolicy && policy.IsLazy(p) {
		return false, err
	}
	return r.bindings.write(ctx, obj, p)
}
