package dependencies

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/delivery"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/templates"
	"github.com/karmada-toolkit/karmada/pkg/domain/dependency"
)

// followsIndex finds attached bindings by the ids of those they follow,
// dependsIndex bindings by what their templates refer to.
const (
	followsIndex = "dependencies.follows"
	dependsIndex = "dependencies.depends"
)

func follows(obj client.Object) []string {
	var out []string
	for key, id := range obj.GetLabels() {
		if strings.HasPrefix(key, workv1alpha2.BindingDependedByLabelPrefix) && !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	return out
}

func depends(obj client.Object) []string {
	var out []string
	for _, dep := range recorded(obj) {
		if key := dependencyKey(dep.APIVersion, dep.Kind, dep.Namespace, dep.Name); !slices.Contains(out, key) {
			out = append(out, key)
		}
	}
	return out
}

// dependencyKey is the value of an index; a dependency by labels has no name.
func dependencyKey(apiVersion, kind, namespace, name string) string {
	return strings.Join([]string{apiVersion, kind, namespace, name}, ",")
}

func recorded(obj client.Object) []configv1alpha1.DependentObjectReference {
	var deps []configv1alpha1.DependentObjectReference
	if data := obj.GetAnnotations()[workv1alpha2.BindingDependenciesAnnotation]; data != "" {
		if err := json.Unmarshal([]byte(data), &deps); err != nil {
			return nil
		}
	}
	return deps
}

// propagating passes bindings that propagate dependencies, or did.
func propagating() predicate.Predicate {
	concerned := func(b *workv1alpha2.ResourceBinding) bool { return b.Spec.PropagateDeps || dependency.Held(b) }
	return controllers.Filter[*workv1alpha2.ResourceBinding]{
		Created: concerned,
		Updated: func(before, after *workv1alpha2.ResourceBinding) bool {
			return (before.Generation != after.Generation || delivery.PlacementApplied(before, after)) && (concerned(before) || concerned(after))
		},
		Deleted: controllers.Never[*workv1alpha2.ResourceBinding],
	}
}

// detached passes attached bindings that are gone, or no longer follow a binding that
// they followed.
func detached() predicate.Predicate {
	return controllers.Filter[*workv1alpha2.ResourceBinding]{
		Created: controllers.Never[*workv1alpha2.ResourceBinding],
		Updated: func(before, after *workv1alpha2.ResourceBinding) bool {
			if slices.ContainsFunc(follows(before), func(id string) bool { return !slices.Contains(follows(after), id) }) {
				return true
			}
			return before.Generation != after.Generation && slices.ContainsFunc(before.Spec.RequiredBy, func(b workv1alpha2.BindingSnapshot) bool {
				return !slices.ContainsFunc(after.Spec.RequiredBy, func(a workv1alpha2.BindingSnapshot) bool {
					return a.Namespace == b.Namespace && a.Name == b.Name
				})
			})
		},
	}
}

// referrersOf returns the bindings that an attached binding follows.
func referrersOf(_ context.Context, b *workv1alpha2.ResourceBinding) []reconcile.Request {
	var out []reconcile.Request
	for _, by := range b.Spec.RequiredBy {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: by.Namespace, Name: by.Name}})
	}
	return out
}

// changed returns the bindings whose templates refer to an object that changed.
func (r *reconciler) changed(ctx context.Context, e templates.Event) []reconcile.Request {
	if e.New == nil {
		obj := e.Old
		r.attacher.contents.Delete(client.ObjectKey{Namespace: obj.GetNamespace(), Name: names.Binding(obj.GetKind(), obj.GetName())})
	}
	if e.Initial {
		return nil // every binding is reconciled at the start
	}
	return referrers(ctx, r.client, e)
}

// referrers returns the bindings whose templates refer to an object, as it is or
// as it was.
func referrers(ctx context.Context, cached client.Reader, e templates.Event) []reconcile.Request {
	obj := e.Object()
	var out []reconcile.Request
	for _, name := range []string{obj.GetName(), ""} {
		list := &workv1alpha2.ResourceBindingList{}
		key := dependencyKey(obj.GetAPIVersion(), obj.GetKind(), obj.GetNamespace(), name)
		err := cached.List(ctx, list, client.InNamespace(obj.GetNamespace()), client.MatchingFields{dependsIndex: key}, client.UnsafeDisableDeepCopy)
		if err != nil {
			continue
		}
		for i := range list.Items {
			b := &list.Items[i]
			if b.DeletionTimestamp != nil || name == "" && !selectsAny(recorded(b), obj, e.Old, e.New) {
				continue
			}
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(b)})
		}
	}
	return out
}

// selectsAny reports whether a dependency by labels selects any version of an
// object.
func selectsAny(deps []configv1alpha1.DependentObjectReference, obj *unstructured.Unstructured, versions ...*unstructured.Unstructured) bool {
	for i := range deps {
		if deps[i].Name != "" || !delivery.OnKind(&deps[i], obj.GetAPIVersion(), obj.GetKind(), obj.GetNamespace()) {
			continue
		}
		for _, version := range versions {
			if version != nil && delivery.SelectsLabels(&deps[i], version.GetLabels()) {
				return true
			}
		}
	}
	return false
}
