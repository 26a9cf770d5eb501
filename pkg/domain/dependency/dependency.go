// Package dependency decides what the bindings of the objects that a template refers to take from the bindings that refer to
// them.
package dependency

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

// Held reports whether something is attached to a binding, or was.
func Held(b metav1.Object) bool {
	return slices.Contains(b.GetFinalizers(), workv1alpha2.BindingDependenciesDistributorFinalizer)
}

// Attaches reports whether the bindings of what its template refers to are attached to a binding: it propagates them, and has, or had,
// clusters for them.
func Attaches(b workv1alpha2.Binding) bool {
	return b.GetSpec().PropagateDeps && (len(b.GetSpec().Clusters) > 0 || Held(b))
}

// normalized is the conflict resolution that the API server gives an empty one.
const normalized = policyv1alpha1.ConflictAbort

// Agree writes into an attached binding what its referrers determine of it together: where its object is preserved and, if no policy
// has it, the rest: overwriting if any does, preserving if any does. It returns the fields in which they differ, or "".
func Agree(attached *workv1alpha2.ResourceBinding, referrers []*workv1alpha2.ResourceBinding) string {
	var overwrite, preserve int
	required := sets.New[string]()
	for _, b := range referrers {
		if b.Spec.ConflictResolution == policyv1alpha1.ConflictOverwrite {
			overwrite++
		}
		if !ptr.Deref(b.Spec.PreserveResourcesOnDeletion, false) {
			continue
		}
		preserve++
		for i := range attached.Spec.RequiredBy {
			if by := &attached.Spec.RequiredBy[i]; isOf(by, b) {
				required = required.Union(scope.Names(by.Clusters))
			}
		}
	}
	setClusters(attached, workv1alpha2.PreservedWhereRequiredAnnotation, required)
	if attached.Spec.Placement != nil {
		return ""
	}
	attached.Spec.ConflictResolution, attached.Spec.PreserveResourcesOnDeletion = normalized, nil
	if overwrite > 0 {
		attached.Spec.ConflictResolution = policyv1alpha1.ConflictOverwrite
	}
	if len(referrers) > 0 {
		attached.Spec.PreserveResourcesOnDeletion = new(preserve > 0)
	}
	scheduling := (*bool)(nil)
	if attached.Spec.Suspension != nil {
		scheduling = attached.Spec.Suspension.Scheduling
	}
	attached.Spec.Suspension = suspension(attached.Spec.RequiredBy, referrers, scheduling)
	var conflicts []string
	if overwrite > 0 && overwrite < len(referrers) {
		conflicts = append(conflicts, "ConflictResolution conflicted (Overwrite vs Abort)")
	}
	if preserve > 0 && preserve < len(referrers) {
		conflicts = append(conflicts, "PreserveResourcesOnDeletion conflicted (true vs false)")
	}
	return strings.Join(conflicts, "; ")
}

// everywhere stands for all clusters, where a list would be longer than maxListed.
const (
	everywhere = "*"
	maxListed  = 1000
)

// Preserves reports whether a cluster keeps what it has of a template when the binding leaves it: the binding says so, or one that
// requires it there, or did.
func Preserves(b workv1alpha2.Binding, cluster string) bool {
	return ptr.Deref(b.GetSpec().PreserveResourcesOnDeletion, false) ||
		clustersIn(b, workv1alpha2.PreservedWhereRequiredAnnotation).HasAny(everywhere, cluster) ||
		clustersIn(b, workv1alpha2.PreservedWhereLeftAnnotation).HasAny(everywhere, cluster)
}

// PreservesOtherwise reports whether two versions of a binding differ in where what requires it has it preserved.
func PreservesOtherwise(before, after metav1.Object) bool {
	return slices.ContainsFunc([]string{workv1alpha2.PreservedWhereRequiredAnnotation, workv1alpha2.PreservedWhereLeftAnnotation}, func(key string) bool {
		return before.GetAnnotations()[key] != after.GetAnnotations()[key]
	})
}

// Forget removes clusters that do not exist any more from those in which an object is preserved.
func Forget(attached metav1.Object, exists func(cluster string) bool) {
	left := clustersIn(attached, workv1alpha2.PreservedWhereLeftAnnotation)
	for name := range left {
		if name != everywhere && !exists(name) {
			left.Delete(name)
		}
	}
	setClusters(attached, workv1alpha2.PreservedWhereLeftAnnotation, left)
}

func clustersIn(b metav1.Object, key string) sets.Set[string] {
	out := sets.New(strings.Split(b.GetAnnotations()[key], ",")...)
	return out.Delete("")
}

func setClusters(b metav1.Object, key string, clusters sets.Set[string]) {
	annotations := b.GetAnnotations()
	delete(annotations, key)
	if clusters.Has(everywhere) || clusters.Len() > maxListed {
		clusters = sets.New(everywhere)
	}
	if clusters.Len() > 0 {
		annotations = labels.Merge(annotations, map[string]string{key: strings.Join(sets.List(clusters), ",")})
	}
	b.SetAnnotations(annotations)
}

// suspension suspends dispatching to the clusters in which every referrer is suspended, also to those that a referrer left: what
// depends on the object stays there until dispatching resumes.
func suspension(requiredBy []workv1alpha2.BindingSnapshot, referrers []*workv1alpha2.ResourceBinding, scheduling *bool) *workv1alpha2.Suspension {
	byName := map[types.NamespacedName]*workv1alpha2.ResourceBinding{}
	for _, b := range referrers {
		byName[types.NamespacedName{Namespace: b.Namespace, Name: b.Name}] = b
	}
	suspended, active := sets.New[string](), sets.New[string]()
	all := false
	for i := range requiredBy {
		by := byName[types.NamespacedName{Namespace: requiredBy[i].Namespace, Name: requiredBy[i].Name}]
		if by != nil && by.Spec.Suspension != nil {
			all = all || ptr.Deref(by.Spec.Suspension.Dispatching, false)
			if on := by.Spec.Suspension.DispatchingOnClusters; on != nil {
				suspended.Insert(on.ClusterNames...)
			}
		}
		for _, c := range requiredBy[i].Clusters {
			if by != nil && scope.DispatchingSuspended(by.Spec.Suspension, c.Name) {
				suspended.Insert(c.Name)
			} else {
				active.Insert(c.Name)
			}
		}
	}
	suspended = suspended.Difference(active)
	out := &workv1alpha2.Suspension{Scheduling: scheduling}
	switch {
	case all && active.Len() == 0:
		out.Dispatching = new(true)
	case suspended.Len() > 0:
		out.DispatchingOnClusters = &policyv1alpha1.SuspendClusters{ClusterNames: sets.List(suspended)}
	case scheduling == nil:
		return nil
	}
	return out
}

// Follow records on an attached binding that b requires it, and in which clusters.
func Follow(attached, b *workv1alpha2.ResourceBinding, clusters []workv1alpha2.TargetCluster) {
	if attached.Labels == nil {
		attached.Labels = map[string]string{}
	}
	attached.Labels[followLabel(b)] = b.Labels[workv1alpha2.ResourceBindingPermanentIDLabel]
	snapshot := workv1alpha2.BindingSnapshot{Namespace: b.Namespace, Name: b.Name, Clusters: clusters}
	i := slices.IndexFunc(attached.Spec.RequiredBy, func(s workv1alpha2.BindingSnapshot) bool { return isOf(&s, b) })
	if i < 0 {
		attached.Spec.RequiredBy = append(attached.Spec.RequiredBy, snapshot)
		return
	}
	left(attached, b, scope.Names(attached.Spec.RequiredBy[i].Clusters).Difference(scope.Names(clusters)))
	attached.Spec.RequiredBy[i] = snapshot
}

// Unfollow removes what Follow recorded.
func Unfollow(attached, b *workv1alpha2.ResourceBinding) {
	delete(attached.Labels, followLabel(b))
	attached.Spec.RequiredBy = slices.DeleteFunc(attached.Spec.RequiredBy, func(s workv1alpha2.BindingSnapshot) bool {
		if isOf(&s, b) {
			left(attached, b, scope.Names(s.Clusters))
			return true
		}
		return false
	})
}

// left records that b does not require an attached binding in some clusters any more, if what they have of b's template is preserved.
func left(attached, b *workv1alpha2.ResourceBinding, clusters sets.Set[string]) {
	if ptr.Deref(b.Spec.PreserveResourcesOnDeletion, false) {
		setClusters(attached, workv1alpha2.PreservedWhereLeftAnnotation, clusters.Union(clustersIn(attached, workv1alpha2.PreservedWhereLeftAnnotation)))
	}
}

func isOf(s *workv1alpha2.BindingSnapshot, b *workv1alpha2.ResourceBinding) bool {
	return s.Namespace == b.Namespace && s.Name == b.Name
}

func followLabel(b *workv1alpha2.ResourceBinding) string {
	return workv1alpha2.BindingDependedByLabelPrefix + names.DependedByKey(b.Namespace, b.Name)
}
