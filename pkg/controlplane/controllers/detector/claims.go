package detector

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/patch"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/templates"
	"github.com/karmada-toolkit/karmada/pkg/domain/manifest"
	"github.com/karmada-toolkit/karmada/pkg/domain/policy"
)

// parallelReleases is the number of templates of a policy that are released at the
// same time.
const parallelReleases = 8

// claims writes and removes the claims of policies on templates and their bindings.
type claims struct {
	client   client.Client
	live     client.Reader
	store    *templates.Store
	bindings *bindings
}

// take writes a claim on the template unless it has it, and returns the template as
// written; nil means that it was deleted.
func (c *claims) take(ctx context.Context, obj *unstructured.Unstructured, claim policy.Claim) (*unstructured.Unstructured, error) {
	change := claim.Take(obj)
	if change.Empty() {
		return obj, nil
	}
	written, err := c.patch(ctx, obj, change, "")
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return written, err
}

func (c *claims) patch(ctx context.Context, obj *unstructured.Unstructured, change policy.Change, resourceVersion string) (*unstructured.Unstructured, error) {
	client, err := c.store.Live(obj.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	data, err := patch.Metadata(change.Metadata(), obj.GetUID(), resourceVersion).Data(nil)
	if err != nil {
		return nil, fmt.Errorf("encoding a patch: %w", err)
	}
	written, err := client.Namespace(obj.GetNamespace()).
		Patch(ctx, obj.GetName(), types.MergePatchType, data, metav1.PatchOptions{})
	if err != nil {
		return nil, fmt.Errorf("writing the claim on %s %s/%s: %w", obj.GetKind(), obj.GetNamespace(), obj.GetName(), err)
	}
	return written, nil
}

// setActive activates or deactivates a template on the API server of the control plane, and returns it as written; nil means that it was
// deleted.
func (c *claims) setActive(ctx context.Context, obj *unstructured.Unstructured, active bool) (*unstructured.Unstructured, error) {
	if !manifest.MayAct(obj.GroupVersionKind().GroupKind()) || !active && manifest.CannotDeactivate(obj) != "" { // its binding has the condition Deliverable
		return obj, nil
	}
	change, after := manifest.Deactivate, obj.DeepCopy()
	if active {
		change = manifest.Reactivate
	}
	if !change(after) {
		return obj, nil
	}
	difference, _, err := patch.DiffLocked(obj, after)
	if err != nil {
		return nil, err
	}
	data, err := difference.Data(after)
	if err != nil {
		return nil, fmt.Errorf("encoding a patch: %w", err)
	}
	client, err := c.store.Live(obj.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	written, err := client.Namespace(obj.GetNamespace()).Patch(ctx, obj.GetName(), types.MergePatchType, data, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("activating or deactivating %s %s in the control plane: %w", obj.GetKind(), obj.GetName(), err)
	}
	return written, nil
}

// releaseOwn takes the claim off an object of the control plane itself, and deletes the binding that an earlier version made.
func (c *claims) releaseOwn(ctx context.Context, obj *unstructured.Unstructured) error {
	if claim, claimed := policy.Of(obj); claimed {
		if err := c.release(ctx, obj, claim); err != nil {
			return err
		}
	}
	binding, err := c.bindings.get(ctx, obj)
	if err != nil || binding == nil || len(binding.GetSpec().RequiredBy) > 0 || binding.GetDeletionTimestamp() != nil {
		return err
	}
	uid := binding.GetUID()
	if err := c.client.Delete(ctx, binding, client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting binding %s/%s: %w", binding.GetNamespace(), binding.GetName(), err)
	}
	return nil
}

// releaseAll releases templates.
func (c *claims) releaseAll(ctx context.Context, objs []*unstructured.Unstructured, claim policy.Claim) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallelReleases)
	for _, obj := range objs {
		g.Go(func() error { return c.release(ctx, obj, claim) })
	}
	return g.Wait()
}

// release takes the claim off the binding of a template and then off the
// template, each only while it is held by the same policy. The spec of the
// binding stays, and so does what is in the members.
func (c *claims) release(ctx context.Context, obj *unstructured.Unstructured, claim policy.Claim) error {
	if err := c.releaseBinding(ctx, obj, claim); err != nil {
		return err
	}
	return c.releaseTemplate(ctx, obj, claim)
}

func (c *claims) releaseTemplate(ctx context.Context, obj *unstructured.Unstructured, claim policy.Claim) error {
	gvk, namespace, name := obj.GroupVersionKind(), obj.GetNamespace(), obj.GetName()
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		change := claim.Drop(obj)
		if change.Empty() {
			return nil
		}
		_, err := c.patch(ctx, obj, change, obj.GetResourceVersion())
		if apierrors.IsConflict(err) {
			latest, getErr := c.store.GetLive(ctx, gvk, namespace, name)
			if getErr != nil {
				return getErr
			}
			obj = latest
		}
		return err
	})
	return client.IgnoreNotFound(err)
}

func (c *claims) releaseBinding(ctx context.Context, obj *unstructured.Unstructured, claim policy.Claim) error {
	binding, err := c.bindings.get(ctx, obj)
	if err != nil || binding == nil {
		return err
	}
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		err := c.dropFromBinding(ctx, binding, claim)
		if apierrors.IsConflict(err) {
			if getErr := c.live.Get(ctx, client.ObjectKeyFromObject(binding), binding); getErr != nil {
				return fmt.Errorf("getting binding %s: %w", binding.GetName(), getErr)
			}
		}
		return err
	})
	return client.IgnoreNotFound(err)
}

func (c *claims) dropFromBinding(ctx context.Context, binding workv1alpha2.Binding, claim policy.Claim) error {
	change := claim.Drop(binding)
	if change.Empty() {
		return nil
	}
	if err := c.client.Patch(ctx, binding, patch.Metadata(change.Metadata(), binding.GetUID(), binding.GetResourceVersion())); err != nil {
		return fmt.Errorf("taking the claim off binding %s/%s: %w", binding.GetNamespace(), binding.GetName(), err)
	}
	return nil
}
