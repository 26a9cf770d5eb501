package dependencies

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/scope"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/templates"
)

// agreement is what several referrers ask of one object together.
type agreement struct {
	conflictResolution policyv1alpha1.ConflictResolution
	preserve           *bool
	// conflicts names what they do not agree on.
	conflicts string
}

// agree returns what the referrers ask for: overwriting if any does, preserving
// if any does.
func agree(referrers []*workv1alpha2.ResourceBinding) agreement {
	if len(referrers) == 0 {
		return agreement{conflictResolution: normalized}
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
	out := agreement{conflictResolution: normalized, preserve: new(preserve > 0)}
	if overwrite > 0 {
		out.conflictResolution = policyv1alpha1.ConflictOverwrite
	}
	var conflicts []string
	if overwrite > 0 && overwrite < len(referrers) {
		conflicts = append(conflicts, "ConflictResolution conflicted (Overwrite vs Abort)")
	}
	if preserve > 0 && preserve < len(referrers) {
		conflicts = append(conflicts, "PreserveResourcesOnDeletion conflicted (true vs false)")
	}
	out.conflicts = strings.Join(conflicts, "; ")
	return out
}

// suspension returns where nothing is dispatched: in a cluster where every
// referrer that needs it is suspended.
func suspension(requiredBy []workv1alpha2.BindingSnapshot, referrers []*workv1alpha2.ResourceBinding, scheduling *bool) *workv1alpha2.Suspension {
	byName := map[types.NamespacedName]*workv1alpha2.ResourceBinding{}
	for _, b := range referrers {
		byName[types.NamespacedName{Namespace: b.Namespace, Name: b.Name}] = b
	}
	suspended, active := sets.New[string](), sets.New[string]()
	for i := range requiredBy {
		by := byName[types.NamespacedName{Namespace: requiredBy[i].Namespace, Name: requiredBy[i].Name}]
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
	case suspended.Len() > 0 && active.Len() == 0:
		out.Dispatching = new(true)
	case suspended.Len() > 0:
		out.DispatchingOnClusters = &policyv1alpha1.SuspendClusters{ClusterNames: sets.List(suspended)}
	case scheduling == nil:
		return nil
	}
	return out
}

// follow records on an attached binding that b needs it, and where.
func follow(attached, b *workv1alpha2.ResourceBinding) {
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

// unfollow removes what follow recorded.
func unfollow(attached, b *workv1alpha2.ResourceBinding) {
	delete(attached.Labels, followLabel(b))
	attached.Spec.RequiredBy = slices.DeleteFunc(attached.Spec.RequiredBy, func(s workv1alpha2.BindingSnapshot) bool { return isOf(&s, b) })
}

func isOf(s *workv1alpha2.BindingSnapshot, b *workv1alpha2.ResourceBinding) bool {
	return s.Namespace == b.Namespace && s.Name == b.Name
}

func followLabel(b *workv1alpha2.ResourceBinding) string {
	return workv1alpha2.BindingDependedByLabelPrefix + names.DependedByKey(b.Namespace, b.Name)
}

// compare orders dependencies.
func compare(a, b configv1alpha1.DependentObjectReference) int {
	return cmp.Or(strings.Compare(a.APIVersion, b.APIVersion), strings.Compare(a.Kind, b.Kind),
		strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

// versions remembers the content of the objects that bindings are attached to.
type versions struct {
	mu    sync.Mutex
	known map[types.NamespacedName]content
}

type content struct {
	uid  types.UID
	hash uint64
}

func newVersions() *versions { return &versions{known: map[types.NamespacedName]content{}} }

// same says whether the object is, as far as is known, as it was.
func (v *versions) same(key types.NamespacedName, obj *unstructured.Unstructured) bool {
	hash, err := templates.Hash(obj)
	if err != nil {
		return false
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	known, ok := v.known[key]
	return !ok || known == content{uid: obj.GetUID(), hash: hash}
}

func (v *versions) remember(key types.NamespacedName, obj *unstructured.Unstructured) error {
	hash, err := templates.Hash(obj)
	if err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.known[key] = content{uid: obj.GetUID(), hash: hash}
	return nil
}

func (v *versions) forget(key types.NamespacedName) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.known, key)
}
