package detector

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/patch"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/policy"
)

// release takes the claim off the binding of a template and then off the
// template, each only while it is held by the same policy. The spec of the
// binding stays, and so does what is in the members.
func (d *detector) release(ctx context.Context, obj *unstructured.Unstructured, claim policy.Claim) error {
	if err := d.releaseBinding(ctx, obj, claim); err != nil {
		return err
	}
	return d.releaseTemplate(ctx, obj, claim)
}

func (d *detector) releaseTemplate(ctx context.Context, obj *unstructured.Unstructured, claim policy.Claim) error {
	gvk, namespace, name := obj.GroupVersionKind(), obj.GetNamespace(), obj.GetName()
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		change := claim.Drop(obj)
		if change.Empty() {
			return nil
		}
		_, err := d.patchTemplate(ctx, obj, change, obj.GetResourceVersion())
		if apierrors.IsConflict(err) {
			latest, getErr := d.store.GetLive(ctx, gvk, namespace, name)
			if getErr != nil {
				return getErr
			}
			obj = latest
		}
		return err
	})
	return client.IgnoreNotFound(err)
}

func (d *detector) releaseBinding(ctx context.Context, obj *unstructured.Unstructured, claim policy.Claim) error {
	binding, err := d.binding(ctx, obj)
	if err != nil || binding == nil {
		return err
	}
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		err := d.dropFromBinding(ctx, binding, claim)
		if apierrors.IsConflict(err) {
			if getErr := d.live.Get(ctx, client.ObjectKeyFromObject(binding), binding); getErr != nil {
				return fmt.Errorf("getting binding %s: %w", binding.GetName(), getErr)
			}
		}
		return err
	})
	return client.IgnoreNotFound(err)
}

func (d *detector) dropFromBinding(ctx context.Context, binding workv1alpha2.Binding, claim policy.Claim) error {
	change := claim.Drop(binding)
	if change.Empty() {
		return nil
	}
	data, err := patch.Metadata(change.Metadata(), binding.GetUID(), binding.GetResourceVersion())
	if err != nil {
		return err
	}
	if err := d.client.Patch(ctx, binding, client.RawPatch(types.MergePatchType, data)); err != nil {
		return fmt.Errorf("taking the claim off binding %s/%s: %w", binding.GetNamespace(), binding.GetName(), err)
	}
	return nil
}
