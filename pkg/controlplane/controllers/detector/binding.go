package detector

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/patch"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/policy"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/templates"
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

// resolve returns the name of the template's binding, and the binding if it is
// there. Names leave out the API group, and case; a template whose name is taken
// by another one's binding gets a name with a suffix.
func (d *detector) resolve(ctx context.Context, obj *unstructured.Unstructured, from client.Reader) (string, workv1alpha2.Binding, error) {
	name := names.Binding(obj.GetKind(), obj.GetName())
	suffixed := names.SuffixedBinding(obj.GroupVersionKind().Group, obj.GetKind(), obj.GetName())
	for _, candidate := range []string{name, suffixed} {
		binding := bindingScopeOf(obj.GetNamespace()).newBinding()
		err := from.Get(ctx, client.ObjectKey{Namespace: obj.GetNamespace(), Name: candidate}, binding)
		if apierrors.IsNotFound(err) {
			return candidate, nil, nil
		}
		if err != nil {
			return "", nil, fmt.Errorf("getting binding %s: %w", candidate, err)
		}
		if candidate == suffixed || sameTemplate(obj, &binding.GetSpec().Resource) {
			return candidate, binding, nil
		}
	}
	return "", nil, nil // not reached: the loop ends at the suffixed name
}

func sameTemplate(obj *unstructured.Unstructured, ref *workv1alpha2.ObjectReference) bool {
	gvk := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	return gvk.GroupKind() == obj.GroupVersionKind().GroupKind() && ref.Name == obj.GetName()
}

func (d *detector) create(ctx context.Context, obj *unstructured.Unstructured, name string, p policyv1alpha1.Policy, want *wanted) error {
	scope := bindingScopeOf(obj.GetNamespace())
	claim := policy.For(p)
	binding := scope.newBinding()
	binding.SetName(name)
	binding.SetNamespace(obj.GetNamespace())
	binding.SetLabels(claim.Labels())
	binding.GetLabels()[scope.idLabel] = uuid.NewString()
	binding.SetAnnotations(claim.Annotations())
	binding.SetFinalizers([]string{scope.finalizer})
	binding.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(obj, obj.GroupVersionKind())})
	want.spec.Resource.ResourceVersion = obj.GetResourceVersion()
	want.into(binding.GetSpec())
	if err := d.client.Create(ctx, binding); err != nil {
		return fmt.Errorf("creating binding %s: %w", name, err)
	}
	d.records.set(keyOf(obj), written{uid: obj.GetUID(), content: want.content, version: obj.GetResourceVersion()})
	return nil
}

func (d *detector) update(ctx context.Context, obj *unstructured.Unstructured, existing workv1alpha2.Binding, p policyv1alpha1.Policy, want *wanted) (bool, error) {
	if owner := metav1.GetControllerOf(existing); owner != nil && owner.UID != obj.GetUID() {
		return false, fmt.Errorf("binding %s belongs to an object with owner reference UID %s, not %s; garbage collection must run first",
			existing.GetName(), owner.UID, obj.GetUID())
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
	scope := bindingScopeOf(obj.GetNamespace())
	next := existing.DeepCopyObject().(workv1alpha2.Binding)
	policy.For(p).Take(next).Apply(next)
	if !slices.Contains(next.GetFinalizers(), scope.finalizer) {
		// Lists are patched as a whole: refuse to undo what another writer added.
		next.SetFinalizers(append(next.GetFinalizers(), scope.finalizer))
		existing = existing.DeepCopyObject().(workv1alpha2.Binding)
		existing.SetResourceVersion("")
	}
	if next.GetLabels()[scope.idLabel] == "" {
		labels := next.GetLabels()
		labels[scope.idLabel] = uuid.NewString()
		next.SetLabels(labels)
	}
	next.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(obj, obj.GroupVersionKind())})
	want.spec.Resource.ResourceVersion = version
	want.into(next.GetSpec())
	return patch.Diff(existing, next)
}

// hash returns the hash of what is propagated of a template.
func hash(obj *unstructured.Unstructured) (uint64, error) { return templates.Hash(obj) }
