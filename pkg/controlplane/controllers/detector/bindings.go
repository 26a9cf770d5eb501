package detector

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/patch"
	"github.com/karmada-toolkit/karmada/internal/status"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/env"
	"github.com/karmada-toolkit/karmada/pkg/domain/policy"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

// bindings reads and writes the bindings of templates.
type bindings struct {
	client client.Client
	live   client.Reader
	specs  *specBuilder
	// scheduler is optional.
	scheduler env.Scheduler
	// records holds for each template the resource version that its binding carries and
	// the content it stands for, so that the version in the binding changes only when
	// something that is propagated does.
	records *status.Memory[objectKey, propagated]
	// removed holds the bindings that were deleted, until the next one is created or the
	// template is gone.
	removed *status.Memory[objectKey, predecessor]
}

// propagated is what the binding of a template was last written for.
type propagated struct {
	uid     types.UID
	content uint64
	version string
	// written is the resource version of the binding as it was last written; empty if it
	// did not have to be.
	written string
}

// wrote reports whether a version of a binding is the one that was written last.
func (b *bindings) wrote(key objectKey, binding workv1alpha2.Binding) bool {
	known, ok := b.records.Get(key)
	return ok && known.written != "" && known.written == binding.GetResourceVersion()
}

// forget drops the record of a template that was deleted.
func (b *bindings) forget(key objectKey) {
	b.records.Delete(key)
	b.removed.Delete(key)
}

// write makes the binding of a template what the policy wants. It reports whether it
// wrote.
func (b *bindings) write(ctx context.Context, obj *unstructured.Unstructured, p policyv1alpha1.Policy) (bool, error) {
	want, err := b.specs.build(ctx, obj, p)
	if err != nil {
		return false, err
	}
	name, existing, err := b.find(ctx, obj, false)
	if err != nil {
		return false, err
	}
	if existing == nil && b.recorded(obj) {
		if gone, err := b.gone(ctx, obj); gone || err != nil {
			return false, err
		}
	}
	if existing == nil {
		err = b.create(ctx, obj, name, p, want)
		if !apierrors.IsAlreadyExists(err) {
			return err == nil, err
		}
		if _, existing, err = b.find(ctx, obj, true); err != nil {
			return false, err
		}
	}
	return b.update(ctx, obj, existing, p, want)
}

// recorded reports whether a binding of a template was written here.
func (b *bindings) recorded(obj *unstructured.Unstructured) bool {
	known, ok := b.records.Get(keyOf(obj))
	return ok && known.uid == obj.GetUID()
}

// find returns the name of a template's binding, and the binding if it exists. The cache may not show the last write yet: the API server is read
// if the cache has no binding although one was written here, and if it is known that one exists.
func (b *bindings) find(ctx context.Context, obj *unstructured.Unstructured, exists bool) (name string, binding workv1alpha2.Binding, err error) {
	if !exists {
		if name, binding, err = b.resolve(ctx, obj, b.client); err != nil || binding != nil || !b.recorded(obj) {
			return name, binding, err
		}
	}
	name, binding, err = b.resolve(ctx, obj, b.live)
	if err == nil && binding == nil && exists {
		err = fmt.Errorf("binding of %s %s/%s exists but cannot be found", obj.GetKind(), obj.GetNamespace(), obj.GetName())
	}
	return name, binding, err
}

// gone reports whether a template is deleted or being deleted: its binding is deleted
// with it, possibly before it.
func (b *bindings) gone(ctx context.Context, obj *unstructured.Unstructured) (bool, error) {
	latest, err := b.specs.store.GetLive(ctx, obj.GroupVersionKind(), obj.GetNamespace(), obj.GetName())
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return latest.GetDeletionTimestamp() != nil || latest.GetUID() != obj.GetUID(), nil
}

// get returns the binding of a template, or nil.
func (b *bindings) get(ctx context.Context, obj *unstructured.Unstructured) (workv1alpha2.Binding, error) {
	_, existing, err := b.resolve(ctx, obj, b.client)
	return existing, err
}

// resolve returns the name of the template's binding, and the binding if it exists.
// Names leave out the API group, and case; a template whose name is taken by another
// one's binding gets a name with a suffix.
func (b *bindings) resolve(ctx context.Context, obj *unstructured.Unstructured, from client.Reader) (string, workv1alpha2.Binding, error) {
	get := func(name string) (workv1alpha2.Binding, error) {
		binding := scope.BindingIn(obj.GetNamespace()).New()
		err := from.Get(ctx, client.ObjectKey{Namespace: obj.GetNamespace(), Name: name}, binding)
		switch {
		case apierrors.IsNotFound(err):
			return nil, nil
		case err != nil:
			return nil, fmt.Errorf("getting binding %s: %w", name, err)
		}
		return binding, nil
	}
	name := names.Binding(obj.GetKind(), obj.GetName())
	binding, err := get(name)
	if err == nil && binding != nil && !scope.RefersTo(&binding.GetSpec().Resource, obj) {
		name = names.SuffixedBinding(obj.GroupVersionKind().Group, obj.GetKind(), obj.GetName())
		binding, err = get(name)
	}
	return name, binding, err
}

func (b *bindings) create(ctx context.Context, obj *unstructured.Unstructured, name string, p policyv1alpha1.Policy, want *wanted) error {
	s := scope.BindingIn(obj.GetNamespace())
	claim := policy.For(p)
	binding := s.New()
	binding.SetName(name)
	binding.SetNamespace(obj.GetNamespace())
	binding.SetLabels(claim.Labels())
	binding.GetLabels()[s.IDLabel] = uuid.NewString()
	binding.SetAnnotations(claim.Annotations())
	binding.SetFinalizers([]string{s.Finalizer})
	binding.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(obj, obj.GroupVersionKind())})
	want.Apply(binding.GetSpec(), obj.GetResourceVersion())
	if err := b.inherit(ctx, keyOf(obj), binding); err != nil {
		return err
	}
	created, err := false, error(nil)
	if b.scheduler != nil {
		created, err = b.scheduler.Create(ctx, s, binding)
	}
	if !created && err == nil {
		err = b.client.Create(ctx, binding)
	}
	if err != nil {
		return fmt.Errorf("creating binding %s: %w", name, err)
	}
	b.removed.Delete(keyOf(obj))
	b.records.Set(keyOf(obj), propagated{
		uid: obj.GetUID(), content: want.content, version: obj.GetResourceVersion(), written: binding.GetResourceVersion(),
	})
	return nil
}

func (b *bindings) update(ctx context.Context, obj *unstructured.Unstructured, existing workv1alpha2.Binding, p policyv1alpha1.Policy, want *wanted) (bool, error) {
	if err := scope.CheckOwner(existing, obj); err != nil {
		return false, err
	}
	if existing.GetDeletionTimestamp() != nil {
		return false, nil // the template is enqueued when the binding is gone
	}
	key := keyOf(obj)
	known, remembered := b.records.Get(key)
	version := obj.GetResourceVersion()
	switch {
	case remembered && known.uid == obj.GetUID() && known.content == want.content:
		version = known.version
	case !remembered && existing.GetSpec().Resource.UID == obj.GetUID():
		// After a restart it is unknown what was propagated. If all else is equal, nothing
		// is written: the binding controller compares Works with the template anyway.
		version = existing.GetSpec().Resource.ResourceVersion
	}
	change, differs, err := b.difference(obj, existing, p, want, version)
	if err != nil {
		return false, err
	}
	if differs && version != obj.GetResourceVersion() && !remembered {
		version = obj.GetResourceVersion()
		if change, differs, err = b.difference(obj, existing, p, want, version); err != nil {
			return false, err
		}
	}
	written := known.written
	if differs {
		if err := b.client.Patch(ctx, existing, change); err != nil {
			return false, fmt.Errorf("patching binding %s: %w", existing.GetName(), err)
		}
		written = existing.GetResourceVersion()
	}
	b.records.Set(key, propagated{uid: obj.GetUID(), content: want.content, version: version, written: written})
	return differs, nil
}

// difference returns the patch from the binding to the wanted one.
func (b *bindings) difference(obj *unstructured.Unstructured, existing workv1alpha2.Binding, p policyv1alpha1.Policy, want *wanted, version string) (client.Patch, bool, error) {
	s := scope.BindingIn(obj.GetNamespace())
	next := existing.DeepCopyObject().(workv1alpha2.Binding)
	policy.For(p).Take(next).Apply(next)
	if !slices.Contains(next.GetFinalizers(), s.Finalizer) {
		// Lists are patched as a whole: refuse to undo what another writer added.
		next.SetFinalizers(append(next.GetFinalizers(), s.Finalizer))
		existing = existing.DeepCopyObject().(workv1alpha2.Binding)
		existing.SetResourceVersion("")
	}
	if next.GetLabels()[s.IDLabel] == "" {
		labels := next.GetLabels()
		labels[s.IDLabel] = uuid.NewString()
		next.SetLabels(labels)
	}
	next.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(obj, obj.GroupVersionKind())})
	want.Apply(next.GetSpec(), version)
	return patch.Diff(existing, next)
}
