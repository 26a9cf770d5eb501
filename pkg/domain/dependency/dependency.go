// Package dependency decides what the bindings of the objects that a template refers to take from the bindings that refer to
// them.
package dependency

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// Agreement is what several referrers determine of one attached binding together.
type Agreement struct {
	ConflictResolution policyv1alpha1.ConflictResolution
	Preserve           *bool
	// Conflicts lists the fields in which they differ.
	Conflicts string
}

// normalized is the conflict resolution that the API server gives an empty one.
const normalized = policyv1alpha1.ConflictAbort

// Agree returns what the referrers determine: overwriting if any does, preserving if any does.
func Agree(referrers []*workv1alpha2.ResourceBinding) Agreement {
	if len(referrers) == 0 {
		return Agreement{ConflictResolution: normalized}
	}
	var overwrite, preserve int
	for _, b := range referrers {
		if b.Spec.ConflictResolution == policyv1alpha1.ConflictOverwrite {
			overwrite++
		}
		if ptr.Deref(b.Spec.PreserveResourcesOnDeletion, false) {
			preserve++
		}
	}
	out := Agreement{ConflictResolution: normalized, Preserve: new(preserve > 0)}
	if overwrite > 0 {
		out.ConflictResolution = policyv1alpha1.ConflictOverwrite
	}
	var conflicts []string
	if overwrite > 0 && overwrite < len(referrers) {
		conflicts = append(conflicts, "ConflictResolution conflicted (Overwrite vs Abort)")
	}
	if preserve > 0 && preserve < len(referrers) {
		conflicts = append(conflicts, "PreserveResourcesOnDeletion conflicted (true vs false)")
	}
	out.Conflicts = strings.Join(conflicts, "; ")
	return out
}

// Suspension suspends dispatching to the clusters in which every referrer is suspended, also to those that a referrer left: what
// depends on the object stays there until dispatching resumes.
func Suspension(requiredBy []workv1alpha2.BindingSnapshot, referrers []*workv1alpha2.ResourceBinding, scheduling *bool) *workv1alpha2.Suspension {
	byName := map[types.NamespacedName]*workv1alpha2.ResourceBinding{}
	for _, b := range referrers {
		byName[types.NamespacedName{Namespace: b.Namespace, Name: b.Name}] = b
	}
	suspended, active := sets.New[string](), sets.New[string]()
	everywhere := false
	for i := range requiredBy {
		by := byName[types.NamespacedName{Namespace: requiredBy[i].Namespace, Name: requiredBy[i].Name}]
		if by != nil && by.Spec.Suspension != nil {
			everywhere = everywhere || ptr.Deref(by.Spec.Suspension.Dispatching, false)
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
	case everywhere && active.Len() == 0:
		out.Dispatching = new(true)
	case suspended.Len() > 0:
		out.DispatchingOnClusters = &policyv1alpha1.SuspendClusters{ClusterNames: sets.List(suspended)}
	case scheduling == nil:
		return nil
	}
	return out
}

// Follow records on an attached binding that b requires it, and in which clusters.
func Follow(attached, b *workv1alpha2.ResourceBinding) {
	if attached.Labels == nil {
		attached.Labels = map[string]string{}
	}
	attached.Labels[followLabel(b)] = b.Labels[workv1alpha2.ResourceBindingPermanentIDLabel]
	snapshot := workv1alpha2.BindingSnapshot{Namespace: b.Namespace, Name: b.Name, Clusters: scope.Kept(b.Spec.Clusters, b.Spec.GracefulEvictionTasks)}
	i := slices.IndexFunc(attached.Spec.RequiredBy, func(s workv1alpha2.BindingSnapshot) bool { return isOf(&s, b) })
	if i < 0 {
		attached.Spec.RequiredBy = append(attached.Spec.RequiredBy, snapshot)
		return
	}
	attached.Spec.RequiredBy[i] = snapshot
}

// Unfollow removes what Follow recorded.
func Unfollow(attached, b *workv1alpha2.ResourceBinding) {
	delete(attached.Labels, followLabel(b))
	attached.Spec.RequiredBy = slices.DeleteFunc(attached.Spec.RequiredBy, func(s workv1alpha2.BindingSnapshot) bool { return isOf(&s, b) })
}

func isOf(s *workv1alpha2.BindingSnapshot, b *workv1alpha2.ResourceBinding) bool {
	return s.Namespace == b.Namespace && s.Name == b.Name
}

func followLabel(b *workv1alpha2.ResourceBinding) string {
	return workv1alpha2.BindingDependedByLabelPrefix + names.DependedByKey(b.Namespace, b.Name)
}
