package scope

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// Targets returns the clusters that get the template: those of the scheduling
// result, then those of the bindings that require this one.
func Targets(spec *workv1alpha2.ResourceBindingSpec) []workv1alpha2.TargetCluster {
	all := [][]workv1alpha2.TargetCluster{spec.Clusters}
	for i := range spec.RequiredBy {
		all = append(all, spec.RequiredBy[i].Clusters)
	}
	return union(all...)
}

// Kept returns the targets and then the other clusters where objects are kept while
// they are evicted from there.
func Kept(targets []workv1alpha2.TargetCluster, tasks []workv1alpha2.GracefulEvictionTask) []workv1alpha2.TargetCluster {
	var evicted []workv1alpha2.TargetCluster
	for i := range tasks {
		if task := &tasks[i]; task.PurgeMode != policyv1alpha1.PurgeModeDirectly {
			evicted = append(evicted, workv1alpha2.TargetCluster{Name: task.FromCluster, Replicas: ptr.Deref(task.Replicas, 0)})
		}
	}
	return union(targets, evicted)
}

// Claimed reports whether a policy or a controller claims a binding. Nothing schedules others.
func Claimed(b metav1.Object) bool {
	labels := b.GetLabels()
	return labels[policyv1alpha1.PropagationPolicyPermanentIDLabel] != "" ||
		labels[policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel] != "" ||
		labels[workv1alpha2.BindingManagedByLabel] != ""
}

// Released reports whether the policy that claimed a binding is gone, or no longer selects its template, and nothing else wants
// the template delivered: what the clusters have stays as it is. Bindings that users create are none.
func Released(b workv1alpha2.Binding) bool {
	return !Claimed(b) && Canonical(b) && len(b.GetSpec().RequiredBy) == 0
}

// Canonical reports whether a binding is named for its template as the detector names
// bindings. Bindings that users create have other names.
func Canonical(b workv1alpha2.Binding) bool {
	ref := &b.GetSpec().Resource
	gvk, name := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind), b.GetName()
	return ref.Namespace == b.GetNamespace() &&
		(name == names.Binding(ref.Kind, ref.Name) || name == names.SuffixedBinding(gvk.Group, ref.Kind, ref.Name))
}

// union returns the clusters of all lists. Of those with the same name, it returns the
// first.
func union(lists ...[]workv1alpha2.TargetCluster) []workv1alpha2.TargetCluster {
	seen := sets.New[string]()
	var out []workv1alpha2.TargetCluster
	for _, list := range lists {
		for _, c := range list {
			if !seen.Has(c.Name) {
				seen.Insert(c.Name)
				out = append(out, c)
			}
		}
	}
	return out
}

// Names returns the names of clusters.
func Names(targets []workv1alpha2.TargetCluster) sets.Set[string] {
	out := sets.New[string]()
	for i := range targets {
		out.Insert(targets[i].Name)
	}
	return out
}

// SameTargets reports whether targets are equal, whatever their order.
func SameTargets(a, b []workv1alpha2.TargetCluster) bool {
	if len(a) != len(b) {
		return false
	}
	if slices.EqualFunc(a, b, sameTarget) {
		return true
	}
	byName := make(map[string]*workv1alpha2.TargetCluster, len(a))
	for i := range a {
		byName[a[i].Name] = &a[i]
	}
	return len(byName) == len(a) && !slices.ContainsFunc(b, func(t workv1alpha2.TargetCluster) bool {
		before := byName[t.Name]
		return before == nil || !sameTarget(*before, t)
	})
}

func sameTarget(a, b workv1alpha2.TargetCluster) bool {
	return a.Name == b.Name && a.Replicas == b.Replicas && slices.Equal(a.Components, b.Components)
}

// DispatchingSuspended reports whether a suspension, which may be nil, stops
// dispatching to a cluster.
func DispatchingSuspended(s *workv1alpha2.Suspension, cluster string) bool {
	return s != nil && (ptr.Deref(s.Dispatching, false) ||
		s.DispatchingOnClusters != nil && slices.Contains(s.DispatchingOnClusters.ClusterNames, cluster))
}

// RefersTo reports whether a reference names a template. The namespace and the
// version of the API are not compared.
func RefersTo(ref *workv1alpha2.ObjectReference, template *unstructured.Unstructured) bool {
	return schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind() == template.GroupVersionKind().GroupKind() &&
		ref.Name == template.GetName()
}

// CheckOwner returns an error if a binding is still owned by an earlier template of
// the same name.
func CheckOwner(binding workv1alpha2.Binding, template *unstructured.Unstructured) error {
	if owner := metav1.GetControllerOf(binding); owner != nil && owner.UID != template.GetUID() {
		return fmt.Errorf("binding %s/%s belongs to an object with owner reference UID %s, not %s; garbage collection must run first",
			binding.GetNamespace(), binding.GetName(), owner.UID, template.GetUID())
	}
	return nil
}
