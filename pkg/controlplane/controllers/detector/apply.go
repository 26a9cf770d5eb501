package detector

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/karmada-toolkit/karmada/internal/patch"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/policy"
)

// Reasons of events on templates.
const (
	ReasonApplyPolicySucceed   = "ApplyPolicySucceed"
	ReasonApplyPolicyFailed    = "ApplyPolicyFailed"
	ReasonGetReplicasSucceed   = "GetReplicasSucceed"
	ReasonGetReplicasFailed    = "GetReplicasFailed"
	ReasonGetComponentsSucceed = "GetComponentsSucceed"
	ReasonGetComponentsFailed  = "GetComponentsFailed"
	ReasonPreemptPolicySucceed = "PreemptPolicySucceed"
	ReasonPreemptPolicyFailed  = "PreemptPolicyFailed"
)

// applyAndReport applies a policy and publishes what came of it, if anything.
func (d *detector) applyAndReport(ctx context.Context, obj *unstructured.Unstructured, p policyv1alpha1.Policy, byPolicy bool) error {
	began := d.measures.clock.Now()
	changed, err := d.apply(ctx, obj, p, byPolicy)
	d.measures.applied(began, err)
	claim := policy.For(p)
	switch {
	case apierrors.IsConflict(err):
	case err != nil:
		d.events.Warning(obj, ReasonApplyPolicyFailed, fmt.Sprintf("Apply %s failed: %v", describe(claim), err))
	case changed:
		d.events.Normal(obj, ReasonApplyPolicySucceed, fmt.Sprintf("Apply %s succeed", describe(claim)))
	default:
		d.events.Recovered(obj)
	}
	return err
}

// apply writes the claim on the template and what the policy wants in the
// binding. It reports whether the binding was written.
func (d *detector) apply(ctx context.Context, obj *unstructured.Unstructured, p policyv1alpha1.Policy, byPolicy bool) (bool, error) {
	obj, err := d.claim(ctx, obj, policy.For(p))
	if err != nil || obj == nil {
		return false, err
	}
	if byPolicy && policy.IsLazy(p) {
		return false, nil
	}
	return d.bind(ctx, obj, p)
}

// claim writes a claim on the template unless it is there, and returns the
// template as it is then; nil means that it is gone.
func (d *detector) claim(ctx context.Context, obj *unstructured.Unstructured, claim policy.Claim) (*unstructured.Unstructured, error) {
	change := claim.Take(obj)
	if change.Empty() {
		return obj, nil
	}
	written, err := d.patchTemplate(ctx, obj, change, "")
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return written, nil
}

func (d *detector) patchTemplate(ctx context.Context, obj *unstructured.Unstructured, change policy.Change, resourceVersion string) (*unstructured.Unstructured, error) {
	gvr, err := d.store.GVR(obj.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	data, err := patch.Metadata(change.Metadata(), obj.GetUID(), resourceVersion)
	if err != nil {
		return nil, err
	}
	written, err := d.store.Dynamic().Resource(gvr).Namespace(obj.GetNamespace()).
		Patch(ctx, obj.GetName(), types.MergePatchType, data, metav1.PatchOptions{})
	if err != nil {
		return nil, fmt.Errorf("writing the claim on %s %s/%s: %w", obj.GetKind(), obj.GetNamespace(), obj.GetName(), err)
	}
	return written, nil
}
