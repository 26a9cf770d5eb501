// Package scope holds every difference between namespaced and cluster-scoped
// bindings and policies, and the rules that follow from a binding alone.
package scope

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// Binding is one of the two kinds of binding.
type Binding struct {
	// Kind of the binding.
	Kind string
	// Namespaced is true for ResourceBindings.
	Namespaced bool
	// Finalizer is kept on a binding until its Works are deleted.
	Finalizer string
	// IDLabel holds the permanent id, on the binding and on its Works.
	IDLabel string
	// NamespaceAnnotation and NameAnnotation name the binding on its Works. The
	// former is empty for ClusterResourceBindings.
	NamespaceAnnotation, NameAnnotation string
	// Controller and StatusController are the names of controllers and the sources of
	// their events.
	Controller, StatusController string
	// Priority is true if the queue of the scheduler has priorities for the kind.
	Priority bool
	// Affinity is true if templates have workload affinity groups.
	Affinity bool
	// Assume is true if the scheduler assumes what it assigned until the accurate
	// estimators observe it.
	Assume bool
	// ResultSeparator precedes the result in the event of a successful scheduling.
	ResultSeparator string
	// New and NewList return empty objects.
	New     func() workv1alpha2.Binding
	NewList func() workv1alpha2.BindingList
}

// Bindings returns both kinds of binding.
func Bindings() []*Binding { return []*Binding{NamespacedBinding(), ClusterBinding()} }

// Pick returns the first value for a namespaced scope, and the second for the other one.
func Pick[T any](namespaced bool, first, second T) T {
	if namespaced {
		return first
	}
	return second
}

// NamespacedBinding is the scope of ResourceBindings.
func NamespacedBinding() *Binding {
	return &Binding{
		Kind: "ResourceBinding", Namespaced: true,
		Finalizer:           workv1alpha2.BindingControllerFinalizer,
		IDLabel:             workv1alpha2.ResourceBindingPermanentIDLabel,
		NamespaceAnnotation: workv1alpha2.ResourceBindingNamespaceAnnotation,
		NameAnnotation:      workv1alpha2.ResourceBindingNameAnnotation,
		Controller:          "binding-controller", StatusController: "resource-binding-status-controller",
		Priority: true, Affinity: true, Assume: true, ResultSeparator: ": ",
		New:     func() workv1alpha2.Binding { return &workv1alpha2.ResourceBinding{} },
		NewList: func() workv1alpha2.BindingList { return &workv1alpha2.ResourceBindingList{} },
	}
}

// ClusterBinding is the scope of ClusterResourceBindings.
func ClusterBinding() *Binding {
	return &Binding{
		Kind:           "ClusterResourceBinding",
		Finalizer:      workv1alpha2.ClusterBindingControllerFinalizer,
		IDLabel:        workv1alpha2.ClusterResourceBindingPermanentIDLabel,
		NameAnnotation: workv1alpha2.ClusterResourceBindingAnnotation,
		Controller:     "cluster-resource-binding-controller", StatusController: "cluster-resource-binding-status-controller",
		ResultSeparator: " ",
		New:             func() workv1alpha2.Binding { return &workv1alpha2.ClusterResourceBinding{} },
		NewList:         func() workv1alpha2.BindingList { return &workv1alpha2.ClusterResourceBindingList{} },
	}
}

// BindingIn returns the scope of the bindings of templates in a namespace, which is
// empty for cluster-scoped templates.
func BindingIn(namespace string) *Binding {
	if namespace == "" {
		return ClusterBinding()
	}
	return NamespacedBinding()
}

// BindingOf returns the binding that a Work names and its scope, or nil if it names
// none.
func BindingOf(work metav1.Object) (*Binding, types.NamespacedName) {
	for _, s := range Bindings() {
		if key := s.KeyOf(work); key.Name != "" {
			return s, key
		}
	}
	return nil, types.NamespacedName{}
}

// ID returns the permanent id that a binding or a Work is labelled with.
func (s *Binding) ID(obj metav1.Object) string { return obj.GetLabels()[s.IDLabel] }

// Annotations returns the annotations by which a Work names its binding.
func (s *Binding) Annotations(key types.NamespacedName) map[string]string {
	out := map[string]string{s.NameAnnotation: key.Name}
	if s.Namespaced {
		out[s.NamespaceAnnotation] = key.Namespace
	}
	return out
}

// KeyOf returns the binding of this scope that a Work names. Its name is empty if
// there is none.
func (s *Binding) KeyOf(work metav1.Object) types.NamespacedName {
	annotations := work.GetAnnotations()
	key := types.NamespacedName{Name: annotations[s.NameAnnotation]}
	if s.Namespaced {
		key.Namespace = annotations[s.NamespaceAnnotation]
	}
	return key
}

// Wants reports whether a binding wants a Work: it is the one for the template, in a cluster where that is delivered or kept.
func (s *Binding) Wants(b workv1alpha2.Binding, work metav1.Object) bool {
	cluster, err := names.ClusterOfExecutionNamespace(work.GetNamespace())
	if err != nil || b.GetDeletionTimestamp() != nil || s.ID(b) != s.ID(work) {
		return false
	}
	spec := b.GetSpec()
	ref := &spec.Resource
	return work.GetName() == names.Work(ref.Kind, ref.Name, ref.Namespace) &&
		Names(Kept(Targets(spec), spec.GracefulEvictionTasks)).Has(cluster)
}

// ForeignAnnotation returns the annotation by which a Work names another binding, of
// either kind, than the given annotations do. It is empty if there is none.
func ForeignAnnotation(work metav1.Object, own map[string]string) string {
	annotations := work.GetAnnotations()
	for _, s := range Bindings() {
		for _, key := range []string{s.NamespaceAnnotation, s.NameAnnotation} {
			if have := annotations[key]; have != "" && have != own[key] {
				return key
			}
		}
	}
	return ""
}
