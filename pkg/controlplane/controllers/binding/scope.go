package binding

import (
	"k8s.io/apimachinery/pkg/types"

	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// Scope is one of the two kinds of binding.
type Scope struct {
	// Kind of the binding, as events name it.
	Kind string
	// Controller is the name of the controller and the source of its events.
	Controller string
	// Finalizer holds a binding until its Works are deleted.
	Finalizer string
	// IDLabel holds the permanent id.
	IDLabel string
	// Cluster is true for ClusterResourceBindings.
	Cluster bool
	// New and NewList return empty objects.
	New     func() workv1alpha2.Binding
	NewList func() workv1alpha2.BindingList
	// Annotations lead from a Work to the binding.
	Annotations func(key types.NamespacedName) map[string]string
	// BindingOf is the inverse of Annotations; an empty name means none.
	BindingOf func(annotations map[string]string) types.NamespacedName
}

// Scopes returns both kinds.
func Scopes() []Scope { return []Scope{Namespaced(), Cluster()} }

// Namespaced is the scope of ResourceBindings.
func Namespaced() Scope {
	return Scope{
		Kind: "ResourceBinding", Controller: "binding-controller",
		Finalizer: workv1alpha2.BindingControllerFinalizer,
		IDLabel:   workv1alpha2.ResourceBindingPermanentIDLabel,
		New:       func() workv1alpha2.Binding { return &workv1alpha2.ResourceBinding{} },
		NewList:   func() workv1alpha2.BindingList { return &workv1alpha2.ResourceBindingList{} },
		Annotations: func(key types.NamespacedName) map[string]string {
			return map[string]string{
				workv1alpha2.ResourceBindingNamespaceAnnotation: key.Namespace,
				workv1alpha2.ResourceBindingNameAnnotation:      key.Name,
			}
		},
		BindingOf: func(a map[string]string) types.NamespacedName {
			return types.NamespacedName{
				Namespace: a[workv1alpha2.ResourceBindingNamespaceAnnotation],
				Name:      a[workv1alpha2.ResourceBindingNameAnnotation],
			}
		},
	}
}

// Cluster is the scope of ClusterResourceBindings.
func Cluster() Scope {
	return Scope{
		Kind: "ClusterResourceBinding", Controller: "cluster-resource-binding-controller", Cluster: true,
		Finalizer: workv1alpha2.ClusterBindingControllerFinalizer,
		IDLabel:   workv1alpha2.ClusterResourceBindingPermanentIDLabel,
		New:       func() workv1alpha2.Binding { return &workv1alpha2.ClusterResourceBinding{} },
		NewList:   func() workv1alpha2.BindingList { return &workv1alpha2.ClusterResourceBindingList{} },
		Annotations: func(key types.NamespacedName) map[string]string {
			return map[string]string{workv1alpha2.ClusterResourceBindingAnnotation: key.Name}
		},
		BindingOf: func(a map[string]string) types.NamespacedName {
			return types.NamespacedName{Name: a[workv1alpha2.ClusterResourceBindingAnnotation]}
		},
	}
}
