package detector

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/policy"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/scope"
)

// errDependentOverrides is returned while override policies are missing that a
// policy waits for.
var errDependentOverrides = errors.New("waiting for dependent overrides")

// errPolicyLeaves is returned while the policy that claims a template is being
// deleted. Releasing the template enqueues it again.
var errPolicyLeaves = errors.New("is being deleted")

// policyLeavesRetry is the time after which a template is reconciled again whose
// policy is being deleted but keeps a finalizer.
const policyLeavesRetry = 5 * time.Second

// templateReconciler brings one template under its policy.
type templateReconciler struct{ *detector }

// Reconcile brings one template under its policy.
func (r *templateReconciler) Reconcile(ctx context.Context, key templateKey) (reconcile.Result, error) {
	obj, err := r.store.Get(ctx, key.gvk, key.namespace, key.name)
	if apierrors.IsNotFound(err) {
		r.matched(key.objectKey)
		r.records.remove(key.objectKey)
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	if obj.GetLabels()[workv1alpha2.ResourceTemplateClaimedByLabel] != "" {
		r.matched(key.objectKey)
		return reconcile.Result{}, nil
	}
	claim, claimed := policy.Of(obj)
	var p policyv1alpha1.Policy
	if claimed {
		p, err = r.claimant(ctx, obj, claim)
	} else {
		p, err = r.match(ctx, obj)
	}
	if err == nil && p == nil && !claimed {
		return r.reportUnmatched(ctx, obj)
	}
	if errors.Is(err, errPolicyLeaves) {
		log.FromContext(ctx).V(2).Info("Waiting for a policy to be gone", "template", klog.KObj(obj), "policy", claim.Name)
		return reconcile.Result{RequeueAfter: policyLeavesRetry}, nil
	}
	if err != nil || p == nil {
		return reconcile.Result{}, err
	}
	r.matched(key.objectKey)
	return reconcile.Result{}, r.applyAndReport(ctx, obj, p, key.byPolicy)
}

// matched records that the template does not wait for a policy any more.
func (d *detector) matched(key objectKey) {
	d.waiting.remove(key)
	d.unmatched.remove(key)
}

// claimant returns the policy that holds the template, or nil when there is
// nothing to apply.
func (r *templateReconciler) claimant(ctx context.Context, obj *unstructured.Unstructured, claim policy.Claim) (policyv1alpha1.Policy, error) {
	p, err := r.policy(ctx, claim)
	if apierrors.IsNotFound(err) {
		log.FromContext(ctx).Info("Releasing a template whose policy is gone", "template", klog.KObj(obj), "policy", claim.Name)
		return nil, r.release(ctx, obj, claim)
	}
	if err != nil {
		return nil, err
	}
	if p.GetDeletionTimestamp() != nil {
		return nil, fmt.Errorf("%s %w", describe(claim), errPolicyLeaves)
	}
	if !policy.Matches(obj, p) {
		return nil, nil
	}
	return p, r.dependentOverrides(ctx, p)
}

// policy returns the policy that a claim names. One that memory lacks is looked
// for at the API server, for it may be new.
func (d *detector) policy(ctx context.Context, claim policy.Claim) (policyv1alpha1.Policy, error) {
	p := claim.Scope().New()
	key := client.ObjectKey{Namespace: claim.Namespace, Name: claim.Name}
	err := d.client.Get(ctx, key, p)
	if apierrors.IsNotFound(err) {
		err = d.live.Get(ctx, key, p)
	}
	if err != nil {
		return nil, fmt.Errorf("getting %s: %w", describe(claim), err)
	}
	return p, nil
}

// match returns the policy that gets an unclaimed template, or nil.
func (r *templateReconciler) match(ctx context.Context, obj *unstructured.Unstructured) (policyv1alpha1.Policy, error) {
	// A policy that appears from here on finds the template among those that wait.
	r.waiting.add(keyOf(obj))
	defer r.measures.matched(r.measures.clock.Now())
	for _, s := range scope.Policies() {
		if s.Namespaced && obj.GetNamespace() == "" {
			continue
		}
		candidates, err := r.candidates(ctx, s, obj)
		if err != nil {
			return nil, err
		}
		if best := policy.Best(obj, candidates); best != nil {
			if err := r.dependentOverrides(ctx, best); err != nil {
				return best, err
			}
			return best, r.reportOutranked(ctx, obj, best, candidates)
		}
	}
	return nil, nil
}

// candidates returns the policies that name the kind, and the name if any, of
// the template.
func (d *detector) candidates(ctx context.Context, s *scope.Policy, obj *unstructured.Unstructured) ([]policyv1alpha1.Policy, error) {
	var out []policyv1alpha1.Policy
	for _, name := range []string{anyName, obj.GetName()} {
		list := s.NewList()
		opts := []client.ListOption{
			client.MatchingFields{selectorIndex: selectorKey(obj.GetAPIVersion(), obj.GetKind(), name)},
			client.UnsafeDisableDeepCopy,
		}
		if s.Namespaced {
			opts = append(opts, client.InNamespace(obj.GetNamespace()))
		}
		if err := d.client.List(ctx, list, opts...); err != nil {
			return nil, fmt.Errorf("listing policies: %w", err)
		}
		out = append(out, list.Policies()...)
	}
	return out, nil
}

// dependentOverrides returns an error unless every override policy is there that
// the policy waits for.
func (d *detector) dependentOverrides(ctx context.Context, p policyv1alpha1.Policy) error {
	override := scope.PolicyOf(p).NewOverride
	for _, name := range p.PropagationSpec().DependentOverrides {
		key := client.ObjectKey{Namespace: p.GetNamespace(), Name: name}
		err := d.client.Get(ctx, key, override(), client.UnsafeDisableDeepCopy)
		if apierrors.IsNotFound(err) {
			return errDependentOverrides
		}
		if err != nil {
			return fmt.Errorf("getting override policy %q: %w", name, err)
		}
	}
	return nil
}

func describe(c policy.Claim) string {
	return fmt.Sprintf("%spolicy(%s)", c.Scope().EventPrefix, c.Key())
}
