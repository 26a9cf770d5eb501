package delivery

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/templates"
)

// Depends reports whether any of the dependencies of a template is on an object, by
// its name or by its labels.
func Depends(ctx context.Context, store *templates.Store, deps []configv1alpha1.DependentObjectReference, on *workv1alpha2.ObjectReference) (bool, error) {
	for i := range deps {
		dep := &deps[i]
		if !OnKind(dep, on.APIVersion, on.Kind, on.Namespace) {
			continue
		}
		if dep.Name != "" || dep.LabelSelector == nil {
			if dep.Name == on.Name {
				return true, nil
			}
			continue
		}
		obj, err := store.Get(ctx, schema.FromAPIVersionAndKind(on.APIVersion, on.Kind), on.Namespace, on.Name)
		if client.IgnoreNotFound(err) != nil {
			return false, err
		}
		if err == nil && SelectsLabels(dep, obj.GetLabels()) {
			return true, nil
		}
	}
	return false, nil
}

// OnKind reports whether a dependency is on objects of a kind in a namespace.
func OnKind(dep *configv1alpha1.DependentObjectReference, apiVersion, kind, namespace string) bool {
	return dep.APIVersion == apiVersion && dep.Kind == kind && dep.Namespace == namespace
}

// SelectsLabels reports whether a dependency by labels selects an object with labels.
func SelectsLabels(dep *configv1alpha1.DependentObjectReference, have map[string]string) bool {
	if dep.LabelSelector == nil {
		return false
	}
	selector, err := metav1.LabelSelectorAsSelector(dep.LabelSelector)
	return err == nil && selector.Matches(labels.Set(have))
}
