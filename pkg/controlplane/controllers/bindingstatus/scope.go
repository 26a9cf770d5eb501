package bindingstatus

import (
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// Scope is what differs between ResourceBindings and ClusterResourceBindings.
type Scope struct {
	// Name is that of the controller and the source of its events.
	Name string
	// IDLabel holds the id of the binding, on it and on its Works.
	IDLabel string
	// Index finds Works by that label.
	Index string
	// New and NewList return empty objects.
	New     func() workv1alpha2.Binding
	NewList func() workv1alpha2.BindingList
	// Of returns the binding that a Work comes from; its name may be empty.
	Of func(work *workv1alpha1.Work) types.NamespacedName
}

// Scopes returns both.
func Scopes() []Scope {
	return []Scope{
		{
			Name: "resource-binding-status-controller", IDLabel: workv1alpha2.ResourceBindingPermanentIDLabel,
			Index:   "bindingstatus.resourcebinding",
			New:     func() workv1alpha2.Binding { return &workv1alpha2.ResourceBinding{} },
			NewList: func() workv1alpha2.BindingList { return &workv1alpha2.ResourceBindingList{} },
			Of: func(work *workv1alpha1.Work) types.NamespacedName {
				return types.NamespacedName{
					Namespace: work.Annotations[workv1alpha2.ResourceBindingNamespaceAnnotation],
					Name:      work.Annotations[workv1alpha2.ResourceBindingNameAnnotation],
				}
			},
		},
		{
			Name: "cluster-resource-binding-status-controller", IDLabel: workv1alpha2.ClusterResourceBindingPermanentIDLabel,
			Index:   "bindingstatus.clusterresourcebinding",
			New:     func() workv1alpha2.Binding { return &workv1alpha2.ClusterResourceBinding{} },
			NewList: func() workv1alpha2.BindingList { return &workv1alpha2.ClusterResourceBindingList{} },
			Of: func(work *workv1alpha1.Work) types.NamespacedName {
				return types.NamespacedName{Name: work.Annotations[workv1alpha2.ClusterResourceBindingAnnotation]}
			},
		},
	}
}

// id returns what Works are indexed by.
func (s Scope) id(obj client.Object) []string {
	if id := obj.GetLabels()[s.IDLabel]; id != "" {
		return []string{id}
	}
	return nil
}
