package dependencies

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/status"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/templates"
	"github.com/karmada-toolkit/karmada/pkg/domain/dependency"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

// attacher makes bindings follow the bindings whose templates depend on theirs.
type attacher struct {
	bindings *bindings
	events   *recorder
	// contents holds the content of the objects that bindings are attached to, by
	// binding.
	contents *status.Memory[types.NamespacedName, content]
}

// content identifies what is propagated of an object.
type content struct {
	uid  types.UID
	hash uint64
}

// attach makes the binding of one dependency follow b.
func (a *attacher) attach(ctx context.Context, b *workv1alpha2.ResourceBinding, obj *unstructured.Unstructured) (bool, error) {
	key := client.ObjectKey{Namespace: b.Namespace, Name: names.Binding(obj.GetKind(), obj.GetName())}
	wrote, err := a.attachBy(ctx, b, obj, key)
	if errors.Is(err, errTaken) {
		key.Name = names.SuffixedBinding(obj.GroupVersionKind().Group, obj.GetKind(), obj.GetName())
		wrote, err = a.attachBy(ctx, b, obj, key)
	}
	if err != nil {
		return false, err
	}
	return wrote, a.remember(key, obj)
}

// errTaken is returned for the name of another template's binding: names leave out the
// API group, and case.
var errTaken = errors.New("the binding is that of another template")

// attachBy is attach for a binding by name.
func (a *attacher) attachBy(ctx context.Context, b *workv1alpha2.ResourceBinding, obj *unstructured.Unstructured, key types.NamespacedName) (bool, error) {
	return a.bindings.update(ctx, key, func(existing *workv1alpha2.ResourceBinding) (bool, error) {
		if existing == nil {
			return true, a.create(ctx, b, obj, key)
		}
		if !scope.RefersTo(&existing.Spec.Resource, obj) {
			return false, fmt.Errorf("binding %s of %s %s: %w", key, existing.Spec.Resource.Kind, existing.Spec.Resource.Name, errTaken)
		}
		if err := scope.CheckOwner(existing, obj); err != nil {
			return false, err
		}
		next := existing.DeepCopy()
		dependency.Follow(next, b, kept(b))
		if !scope.Claimed(existing) { // also one that a policy released: nothing else has it follow its template
			next.Spec.Resource = a.reference(obj, key, existing)
		}
		a.agree(ctx, next, b)
		return a.bindings.write(ctx, existing, next)
	})
}

func (a *attacher) create(ctx context.Context, b *workv1alpha2.ResourceBinding, obj *unstructured.Unstructured, key types.NamespacedName) error {
	created := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{
		Namespace: key.Namespace, Name: key.Name,
		Labels:          map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: uuid.NewString()},
		Finalizers:      []string{workv1alpha2.BindingControllerFinalizer},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(obj, obj.GroupVersionKind())},
	}}
	created.Spec.Resource = a.reference(obj, key, nil)
	dependency.Follow(created, b, kept(b))
	a.agree(ctx, created, b)
	if err := a.bindings.client.Create(ctx, created); err != nil {
		return fmt.Errorf("creating binding %s: %w", key, err)
	}
	return nil
}

// detach makes a binding not follow b any more. The binding stays.
func (a *attacher) detach(ctx context.Context, b *workv1alpha2.ResourceBinding, key types.NamespacedName) (bool, error) {
	return a.bindings.update(ctx, key, func(existing *workv1alpha2.ResourceBinding) (bool, error) {
		if existing == nil {
			return false, nil
		}
		next := existing.DeepCopy()
		dependency.Unfollow(next, b)
		a.agree(ctx, next, b)
		return a.bindings.write(ctx, existing, next)
	})
}

// kept are the clusters in which b requires what it depends on.
func kept(b *workv1alpha2.ResourceBinding) []workv1alpha2.TargetCluster {
	return scope.Kept(b.Spec.Clusters, b.Spec.GracefulEvictionTasks)
}

// agree sets, on an attached binding, the fields that its referrers determine together. b is read as it is given, the others from the
// cache; those that do not exist are ignored.
func (a *attacher) agree(ctx context.Context, attached, b *workv1alpha2.ResourceBinding) {
	var referrers []*workv1alpha2.ResourceBinding
	for _, by := range attached.Spec.RequiredBy {
		if by.Namespace == b.Namespace && by.Name == b.Name {
			referrers = append(referrers, b)
			continue
		}
		other := &workv1alpha2.ResourceBinding{}
		if a.bindings.client.Get(ctx, client.ObjectKey{Namespace: by.Namespace, Name: by.Name}, other, client.UnsafeDisableDeepCopy) == nil {
			referrers = append(referrers, other)
		}
	}
	conflicts := dependency.Agree(attached, referrers)
	dependency.Forget(attached, func(cluster string) bool {
		return !apierrors.IsNotFound(a.bindings.client.Get(ctx, client.ObjectKey{Name: cluster}, &clusterv1alpha1.Cluster{}, client.UnsafeDisableDeepCopy))
	})
	if conflicts != "" && attached.UID != "" {
		a.events.conflict(attached, conflicts)
	}
}

// reference returns the reference of an attached binding to its template. The
// version in it changes only with what is propagated.
func (a *attacher) reference(obj *unstructured.Unstructured, key types.NamespacedName, existing *workv1alpha2.ResourceBinding) workv1alpha2.ObjectReference {
	ref := workv1alpha2.ObjectReference{
		APIVersion: obj.GetAPIVersion(), Kind: obj.GetKind(), Namespace: obj.GetNamespace(), Name: obj.GetName(),
		UID: obj.GetUID(), ResourceVersion: obj.GetResourceVersion(),
	}
	if existing != nil && existing.Spec.Resource.UID == obj.GetUID() && a.unchanged(key, obj) {
		ref.ResourceVersion = existing.Spec.Resource.ResourceVersion
	}
	return ref
}

// unchanged reports whether the object has, as far as is known, the same content as
// when it was last attached.
func (a *attacher) unchanged(key types.NamespacedName, obj *unstructured.Unstructured) bool {
	hash, err := templates.Hash(obj)
	known, ok := a.contents.Get(key)
	return err == nil && (!ok || known == content{uid: obj.GetUID(), hash: hash})
}

// remember records the content of an object that was attached.
func (a *attacher) remember(key types.NamespacedName, obj *unstructured.Unstructured) error {
	hash, err := templates.Hash(obj)
	if err != nil {
		return err
	}
	a.contents.Set(key, content{uid: obj.GetUID(), hash: hash})
	return nil
}
