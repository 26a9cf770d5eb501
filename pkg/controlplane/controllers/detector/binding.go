package detector

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/patch"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/policy"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/scope"
)

// bind makes the binding say what the policy wants. It reports whether it wrote.
func (d *detector) bind(ctx context.Context, obj *unstructured.Unstructured, p policyv1alpha1.Policy) (bool, error) {
	want, err := d.wanted(ctx, obj, p)
	if err != nil {
		return false, err
	}
	name, existing, err := d.resolve(ctx, obj, d.client)
	if err != nil {
		return false, err
	}
	if known, ok := d.records.get(keyOf(obj)); existing == nil && ok && known.uid == obj.GetUID() {
		// It was written a moment ago; memory is behind.
		if name, existing, err = d.resolve(ctx, obj, d.live); err != nil {
			return false, err
		}
	}
	if existing == nil {
		err = d.create(ctx, obj, name, p, want)
		if !apierrors.IsAlreadyExists(err) {
			return err == nil, err
		}
		if _, existing, err = d.resolve(ctx, obj, d.live); err != nil {
			return false, err
		}
		if existing == nil {
			return false, fmt.Errorf("binding of %s %s/%s exists but cannot be found", obj.GetKind(), obj.GetNamespace(), obj.GetName())
		}
	}
	return d.update(ctx, obj, existing, p, want)
}

// binding returns the binding of a template, or nil.
func (d *detector) binding(ctx context.Context, obj *unstructured.Unstructured) (workv1alpha2.Binding, error) {
	_, existing, err := d.resolve(ctx, obj, d.client)
	return existing, err
}

// resolve returns the name of the template's binding, and the binding if it exists.
// Names leave out the API group, and case; a template whose name is taken by another
// one's binding gets a name with a suffix.
func (d *detector) resolve(ctx context.Context, obj *unstructured.Unstructured, from client.Reader) (string, workv1alpha2.Binding, error) {
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

func (d *detector) create(ctx context.Context, obj *unstructured.Unstructured, name string, p policyv1alpha1.Policy, want *wanted) error {
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
	want.apply(binding.GetSpec(), obj.GetResourceVersion())
	if err := d.client.Create(ctx, binding); err != nil {
		return fmt.Errorf("creating binding %s: %w", name, err)
	}
	d.records.set(keyOf(obj), written{uid: obj.GetUID(), content: want.content, version: obj.GetResourceVersion()})
	return nil
}

func (d *detector) update(ctx context.Context, obj *unstructured.Unstructured, existing workv1alpha2.Binding, p policyv1alpha1.Policy, want *wanted) (bool, error) {
	if err := scope.CheckOwner(existing, obj); err != nil {
		return false, err
	}
	key := keyOf(obj)
	known, remembered := d.records.get(key)
	version := obj.GetResourceVersion()
	switch {
	case remembered && known.uid == obj.GetUID() && known.content == want.content:
		version = known.version
	case !remembered && existing.GetSpec().Resource.UID == obj.GetUID():
		// Nothing is known of what was propagated. If all else is equal, nothing is
		// written: whoever makes Works compares them with the template anyway.
		version = existing.GetSpec().Resource.ResourceVersion
	}
	change, differs, err := d.difference(obj, existing, p, want, version)
	if err != nil {
		return false, err
	}
	if differs && version != obj.GetResourceVersion() && !remembered {
		version = obj.GetResourceVersion()
		if change, differs, err = d.difference(obj, existing, p, want, version); err != nil {
			return false, err
		}
	}
	if differs {
		if err := d.client.Patch(ctx, existing, change); err != nil {
			return false, fmt.Errorf("patching binding %s: %w", existing.GetName(), err)
		}
	}
	d.records.set(key, written{uid: obj.GetUID(), content: want.content, version: version})
	return differs, nil
}

// difference returns the patch that makes the binding what is wanted.
func (d *detector) difference(obj *unstructured.Unstructured, existing workv1alpha2.Binding, p policyv1alpha1.Policy, want *wanted, version string) (client.Patch, bool, error) {
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
	want.apply(next.GetSpec(), version)
	return patch.Diff(existing, next)
}
