package dependencies

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/scope"
)

// distribute attaches bindings to the dependencies and detaches those that are
// none any more. It reports whether anything was written.
func (r *reconciler) distribute(ctx context.Context, b *workv1alpha2.ResourceBinding, deps []configv1alpha1.DependentObjectReference) (bool, error) {
	attached, err := r.attachedTo(ctx, b)
	if err != nil {
		return false, err
	}
	objs, err := r.resolve(ctx, deps)
	if err != nil {
		return false, err
	}
	var changed bool
	var errs []error
	for i := range attached {
		if r.wanted(ctx, &attached[i].Spec.Resource, deps) {
			continue
		}
		wrote, err := r.detach(ctx, b, client.ObjectKeyFromObject(&attached[i]))
		changed, errs = changed || wrote, append(errs, err)
	}
	for _, obj := range objs {
		wrote, err := r.attach(ctx, b, obj)
		changed, errs = changed || wrote, append(errs, err)
	}
	return changed, errors.Join(errs...)
}

// wanted says whether the template of an attached binding is still a dependency.
func (r *reconciler) wanted(ctx context.Context, ref *workv1alpha2.ObjectReference, deps []configv1alpha1.DependentObjectReference) bool {
	gvk := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	for i := range deps {
		if !refersTo(&deps[i], ref.APIVersion, ref.Kind, ref.Namespace) {
			continue
		}
		if deps[i].Name != "" {
			if deps[i].Name == ref.Name {
				return true
			}
			continue
		}
		obj, err := r.store.Get(ctx, gvk, ref.Namespace, ref.Name)
		if err == nil && selects(&deps[i], obj.GetLabels()) {
			return true
		}
	}
	return false
}

// resolve returns the objects that dependencies name or select. Missing ones are
// left out.
func (r *reconciler) resolve(ctx context.Context, deps []configv1alpha1.DependentObjectReference) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	seen := map[types.UID]bool{}
	add := func(obj *unstructured.Unstructured, dep *configv1alpha1.DependentObjectReference) {
		// A list without a namespace would be one of all namespaces.
		if !seen[obj.GetUID()] && obj.GetNamespace() == dep.Namespace {
			seen[obj.GetUID()] = true
			out = append(out, obj)
		}
	}
	for i := range deps {
		dep := &deps[i]
		gvk := schema.FromAPIVersionAndKind(dep.APIVersion, dep.Kind)
		if dep.Name != "" {
			obj, err := r.store.Get(ctx, gvk, dep.Namespace, dep.Name)
			if apierrors.IsNotFound(err) {
				continue
			}
			if err != nil {
				return nil, err
			}
			add(obj, dep)
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(dep.LabelSelector)
		if err != nil {
			return nil, fmt.Errorf("dependency on %s: %w", dep.Kind, err)
		}
		objs, err := r.store.List(ctx, gvk, dep.Namespace, selector)
		if err != nil {
			return nil, err
		}
		for _, obj := range objs {
			add(obj, dep)
		}
	}
	return out, nil
}

// attach makes the binding of one dependency follow b.
func (r *reconciler) attach(ctx context.Context, b *workv1alpha2.ResourceBinding, obj *unstructured.Unstructured) (bool, error) {
	key := client.ObjectKey{Namespace: b.Namespace, Name: names.Binding(obj.GetKind(), obj.GetName())}
	wrote, err := r.attachBy(ctx, b, obj, key)
	if errors.Is(err, errTaken) {
		key.Name = names.SuffixedBinding(obj.GroupVersionKind().Group, obj.GetKind(), obj.GetName())
		wrote, err = r.attachBy(ctx, b, obj, key)
	}
	if err != nil {
		return false, err
	}
	return wrote, r.versions.remember(key, obj)
}

// errTaken says that a name is that of another template's binding: names leave
// out the API group, and case.
var errTaken = errors.New("the binding is that of another template")

// attachBy is attach for a binding by name.
func (r *reconciler) attachBy(ctx context.Context, b *workv1alpha2.ResourceBinding, obj *unstructured.Unstructured, key types.NamespacedName) (bool, error) {
	return r.retry(ctx, key, func(existing *workv1alpha2.ResourceBinding) (bool, error) {
		if existing == nil {
			return true, r.create(ctx, b, obj, key)
		}
		if !scope.RefersTo(&existing.Spec.Resource, obj) {
			return false, fmt.Errorf("binding %s of %s %s: %w", key, existing.Spec.Resource.Kind, existing.Spec.Resource.Name, errTaken)
		}
		if err := scope.CheckOwner(existing, obj); err != nil {
			return false, err
		}
		next := existing.DeepCopy()
		follow(next, b)
		if next.Spec.Placement == nil {
			next.Spec.Resource = r.reference(obj, key, existing)
			r.settle(ctx, next, b)
		}
		return r.write(ctx, existing, next)
	})
}

func (r *reconciler) create(ctx context.Context, b *workv1alpha2.ResourceBinding, obj *unstructured.Unstructured, key types.NamespacedName) error {
	created := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{
		Namespace: key.Namespace, Name: key.Name,
		Labels:          map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: uuid.NewString()},
		Finalizers:      []string{workv1alpha2.BindingControllerFinalizer},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(obj, obj.GroupVersionKind())},
	}}
	created.Spec.Resource = r.reference(obj, key, nil)
	follow(created, b)
	r.settle(ctx, created, b)
	if err := r.client.Create(ctx, created); err != nil {
		return fmt.Errorf("creating binding %s: %w", key, err)
	}
	return nil
}

// detach makes a binding not follow b any more. The binding stays.
func (r *reconciler) detach(ctx context.Context, b *workv1alpha2.ResourceBinding, key types.NamespacedName) (bool, error) {
	return r.retry(ctx, key, func(existing *workv1alpha2.ResourceBinding) (bool, error) {
		if existing == nil {
			return false, nil
		}
		next := existing.DeepCopy()
		unfollow(next, b)
		if next.Spec.Placement == nil {
			r.settle(ctx, next, b)
		}
		return r.write(ctx, existing, next)
	})
}

// settle decides, for a binding without a policy, what its referrers ask for
// together. b is read as it is given, the others from memory; those that are gone
// do not count.
func (r *reconciler) settle(ctx context.Context, attached, b *workv1alpha2.ResourceBinding) {
	var referrers []*workv1alpha2.ResourceBinding
	for _, by := range attached.Spec.RequiredBy {
		if by.Namespace == b.Namespace && by.Name == b.Name {
			referrers = append(referrers, b)
			continue
		}
		other := &workv1alpha2.ResourceBinding{}
		if r.client.Get(ctx, client.ObjectKey{Namespace: by.Namespace, Name: by.Name}, other, client.UnsafeDisableDeepCopy) == nil {
			referrers = append(referrers, other)
		}
	}
	agreed := agree(referrers)
	attached.Spec.ConflictResolution = agreed.conflictResolution
	attached.Spec.PreserveResourcesOnDeletion = agreed.preserve
	scheduling := (*bool)(nil)
	if attached.Spec.Suspension != nil {
		scheduling = attached.Spec.Suspension.Scheduling
	}
	attached.Spec.Suspension = suspension(attached.Spec.RequiredBy, referrers, scheduling)
	if agreed.conflicts != "" && attached.UID != "" {
		r.events.Warning(attached, ReasonPolicyConflict, "Dependency policy conflict detected: "+agreed.conflicts+".")
	}
}

// retry runs a read and write until nobody else wrote in between.
func (r *reconciler) retry(ctx context.Context, key types.NamespacedName, once func(*workv1alpha2.ResourceBinding) (bool, error)) (bool, error) {
	var wrote bool
	var from client.Reader = r.client
	err := retry.OnError(retry.DefaultRetry, func(err error) bool {
		return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)
	}, func() error {
		existing := &workv1alpha2.ResourceBinding{}
		err := from.Get(ctx, key, existing)
		if apierrors.IsNotFound(err) {
			existing, err = nil, nil
		}
		if err != nil {
			return fmt.Errorf("getting binding %s: %w", key, err)
		}
		from = r.live
		wrote, err = once(existing)
		return err
	})
	return wrote, err
}

// reference returns the reference of an attached binding to its template. The
// version in it changes only with what is propagated.
func (r *reconciler) reference(obj *unstructured.Unstructured, key types.NamespacedName, existing *workv1alpha2.ResourceBinding) workv1alpha2.ObjectReference {
	ref := workv1alpha2.ObjectReference{
		APIVersion: obj.GetAPIVersion(), Kind: obj.GetKind(), Namespace: obj.GetNamespace(), Name: obj.GetName(),
		UID: obj.GetUID(), ResourceVersion: obj.GetResourceVersion(),
	}
	if existing != nil && existing.Spec.Resource.UID == obj.GetUID() && r.versions.same(key, obj) {
		ref.ResourceVersion = existing.Spec.Resource.ResourceVersion
	}
	return ref
}

// attachedTo returns the bindings that follow b. They are shared and read-only.
func (r *reconciler) attachedTo(ctx context.Context, b *workv1alpha2.ResourceBinding) ([]workv1alpha2.ResourceBinding, error) {
	id := b.Labels[workv1alpha2.ResourceBindingPermanentIDLabel]
	list := &workv1alpha2.ResourceBindingList{}
	err := r.client.List(ctx, list, client.InNamespace(b.Namespace), client.MatchingFields{followsIndex: id}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("listing attached bindings: %w", err)
	}
	return list.Items, nil
}

// refersTo says whether a dependency is on objects of a kind in a namespace.
func refersTo(dep *configv1alpha1.DependentObjectReference, apiVersion, kind, namespace string) bool {
	return dep.APIVersion == apiVersion && dep.Kind == kind && dep.Namespace == namespace
}

// selects says whether a dependency by labels selects an object.
func selects(dep *configv1alpha1.DependentObjectReference, have map[string]string) bool {
	if dep.LabelSelector == nil {
		return false
	}
	selector, err := metav1.LabelSelectorAsSelector(dep.LabelSelector)
	return err == nil && selector.Matches(labels.Set(have))
}

// normalized is the conflict resolution that the API server gives an empty one.
const normalized = policyv1alpha1.ConflictAbort
