package services

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	networkingv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/networking/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/manifest"
)

// Collectible reports whether a slice may be collected: those that the control plane
// created in a member may not.
func Collectible(slice metav1.Object) bool {
	switch slice.GetLabels()[discoveryv1.LabelManagedBy] {
	case DispatchedSlice, ImportedSlice:
		return false
	}
	return true
}

// WorkNames returns the names that the Work of a collected slice may have: the first is
// that of the contract, the second is taken where the first belongs to a Work of another
// cluster's slice.
func WorkNames(cluster string, slice types.NamespacedName) [2]string {
	name := names.Work(kindEndpointSlice, slice.Name, slice.Namespace)
	// The end differs from that of DispatchedNames: SourceWork removes only the latter.
	return [2]string{name, name + "-" + names.Hash(names.ExecutionNamespace(cluster))}
}

// Collected reports whether a Work holds a slice that was collected. Works of dispatched
// slices and of MultiClusterServices have similar labels.
func Collected(work *workv1alpha1.Work) bool {
	_, dispatched := work.Annotations[ProvisionClusterAnnotation]
	return !dispatched && ptr.Deref(work.Spec.SuspendDispatching, false) && carries(work, kindEndpointSlice)
}

// Delivered returns the slice that a Work of the control plane writes into its cluster: one of another cluster, for a
// consumer of a MultiClusterService or imported for a ServiceExport. The name is empty for other Works. It depends on
// nothing that an override or a member changes: such a slice is not one of the cluster, whatever its labels there.
func Delivered(work *workv1alpha1.Work) types.NamespacedName {
	if !carries(work, kindEndpointSlice) || work.Labels[ManagedByLabel] != "" {
		return types.NamespacedName{}
	}
	slice, err := SliceOf(work)
	if _, dispatched := work.Annotations[ProvisionClusterAnnotation]; err != nil || !dispatched && !strings.HasPrefix(slice.Name, importedPrefix) {
		return types.NamespacedName{}
	}
	return slice
}

// Stored reports whether a Work only stores an object in the control plane, so that it is never dispatched: a collected
// slice, or the mark of a provider.
func Stored(work *workv1alpha1.Work) bool {
	_, dispatched := work.Annotations[ProvisionClusterAnnotation]
	return !dispatched && ptr.Deref(work.Spec.SuspendDispatching, false) &&
		(work.Labels[ManagedByLabel] != "" || work.Labels[networkingv1alpha1.MultiClusterServicePermanentIDLabel] != "")
}

// carries reports whether a Work has one manifest, of a kind. Most Works are passed
// over without decoding them.
func carries(work *workv1alpha1.Work, kind string) bool {
	if len(work.Spec.Workload.Manifests) != 1 || !bytes.Contains(work.Spec.Workload.Manifests[0].Raw, []byte(`"`+kind+`"`)) {
		return false
	}
	var head struct {
		Kind string `json:"kind"`
	}
	return json.Unmarshal(work.Spec.Workload.Manifests[0].Raw, &head) == nil && head.Kind == kind
}

// manifestOf returns the manifest of a Work that has one.
func manifestOf(work *workv1alpha1.Work) (*unstructured.Unstructured, error) {
	if n := len(work.Spec.Workload.Manifests); n != 1 {
		return nil, fmt.Errorf("work %s/%s has %d manifests and not one", work.Namespace, work.Name, n)
	}
	out := &unstructured.Unstructured{}
	if err := out.UnmarshalJSON(work.Spec.Workload.Manifests[0].Raw); err != nil {
		return nil, fmt.Errorf("decoding the manifest of work %s/%s: %w", work.Namespace, work.Name, err)
	}
	return out, nil
}

// Collect returns the Work of a slice that a manager collects for a Service. existing is
// the Work of this name, or nil. Labels that it has are kept, those for other managers
// too.
func Collect(key types.NamespacedName, slice *unstructured.Unstructured, m Manager, service types.NamespacedName, existing *workv1alpha1.Work) (*workv1alpha1.Work, error) {
	next := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	if existing != nil {
		next = existing.DeepCopy()
	}
	namespaceKey, nameKey, finalizer := m.keys()
	for label, value := range map[string]string{namespaceKey: service.Namespace, nameKey: service.Name} {
		if next.Labels[label] == "" {
			metav1.SetMetaDataLabel(&next.ObjectMeta, label, value)
		}
	}
	metav1.SetMetaDataLabel(&next.ObjectMeta, ManagedByLabel, joinManagers(managers(next.Labels).Insert(string(m))))
	next.Finalizers = sets.List(sets.New(next.Finalizers...).Insert(finalizer))
	obj := slice.DeepCopy()
	if err := prepare(next, obj, slice.GetUID()); err != nil {
		return nil, err
	}
	next.Spec.SuspendDispatching = new(true)
	return next, nil
}

// prepare sets the manifest of a Work. It changes obj.
func prepare(work *workv1alpha1.Work, obj *unstructured.Unstructured, uid types.UID) error {
	err := manifest.Prepare(obj, manifest.Origin{
		UID: uid, WorkNamespace: work.Namespace, WorkName: work.Name, WorkPermanentID: work.Labels[workv1alpha2.WorkPermanentIDLabel],
	})
	if err != nil {
		return fmt.Errorf("preparing the manifest of work %s/%s: %w", work.Namespace, work.Name, err)
	}
	raw, err := obj.MarshalJSON()
	if err != nil {
		return fmt.Errorf("encoding the manifest of work %s/%s: %w", work.Namespace, work.Name, err)
	}
	work.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: bytes.TrimSpace(raw)}}}
	return nil
}

func managers(labels map[string]string) sets.Set[string] {
	return sets.New(slices.DeleteFunc(strings.Split(labels[ManagedByLabel], "."), func(s string) bool { return s == "" })...)
}

// joinManagers returns the value of ManagedByLabel, in a fixed order so that nothing is
// rewritten.
func joinManagers(m sets.Set[string]) string { return strings.Join(sets.List(m), ".") }

// Manages reports whether a manager collected the slice of a Work.
func (m Manager) Manages(work *workv1alpha1.Work) bool { return managers(work.Labels).Has(string(m)) }

// Release returns what becomes of a collected Work that a manager no longer needs: the
// Work without it, or nil if no manager is left and the Work is to be deleted. A Work
// whose manager is not known is never deleted.
func Release(work *workv1alpha1.Work, m Manager) *workv1alpha1.Work {
	known := managers(work.Labels)
	rest := known.Clone().Delete(string(m))
	if rest.Len() == 0 && known.Len() > 0 {
		return nil
	}
	next := work.DeepCopy()
	namespaceKey, nameKey, _ := m.keys()
	delete(next.Labels, namespaceKey)
	delete(next.Labels, nameKey)
	metav1.SetMetaDataLabel(&next.ObjectMeta, ManagedByLabel, joinManagers(rest))
	return next
}

// SliceFacts are what decides about the Work of one slice of a cluster.
type SliceFacts struct {
	// Key is the name of the Work, and Existing the Work, or nil.
	Key      types.NamespacedName
	Existing *workv1alpha1.Work
	// Slice is nil if the cluster does not have it, or, unless Known, if that is not known.
	Slice *unstructured.Unstructured
	Known bool
	// Delivered reports whether a Work writes the slice into the cluster, see Delivered.
	Delivered bool
	// Managers are the features that are served. Others keep what they have.
	Managers []Manager
	// Permitted reports whether the slices of a Service are collected for a manager.
	Permitted func(Manager, types.NamespacedName) bool
}

// service returns the Service of a slice that may be collected, or none.
func (f *SliceFacts) service() types.NamespacedName {
	if f.Slice == nil || f.Delivered || !Collectible(f.Slice) {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Namespace: f.Slice.GetNamespace(), Name: f.Slice.GetLabels()[discoveryv1.LabelServiceName]}
}

// Resolve returns the Work of a slice, or nil if there must be none.
func Resolve(f SliceFacts) (*workv1alpha1.Work, error) {
	work, service := f.Existing, f.service()
	for _, m := range f.Managers {
		wanted := service.Name != "" && f.Permitted(m, service)
		if work != nil && m.Manages(work) {
			owner := m.ServiceOf(work.Labels)
			if !f.Known && f.Slice == nil && f.Permitted(m, owner) {
				continue
			}
			if !wanted || owner != service {
				if work = Release(work, m); work == nil {
					return nil, nil
				}
			}
		}
		if !wanted {
			continue
		}
		var err error
		if work, err = Collect(f.Key, f.Slice, m, service, work); err != nil {
			return nil, err
		}
	}
	return work, nil
}
