package services

import (
	"encoding/json"
	"fmt"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	multiclusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/multicluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// StatusAnnotation is the annotation of a Work with the status of its ServiceExport or ServiceImport, as JSON. The control
// plane computes it; whoever applies the Work writes it to the object in the member.
const StatusAnnotation = "multicluster.karmada.io/status"

// ExportStatus returns the status of a ServiceExport in one of the clusters that have it. conditions are those of the
// control plane, and work is the Work with the ServiceExport; conditions that did not change keep their times.
func ExportStatus(conditions []metav1.Condition, cluster ExportingCluster, work *workv1alpha1.Work, now metav1.Time) multiclusterv1alpha1.ServiceExportStatus {
	var out multiclusterv1alpha1.ServiceExportStatus
	if json.Unmarshal([]byte(work.Annotations[StatusAnnotation]), &out) != nil {
		out = multiclusterv1alpha1.ServiceExportStatus{}
	}
	for _, c := range conditions {
		if c.Type == ExportReady {
			if valid := meta.FindStatusCondition(conditions, ExportValid); valid != nil {
				c = readiness(*valid, []ExportingCluster{cluster})
			}
		}
		c.ObservedGeneration, c.LastTransitionTime = 0, now // generations are those of the control plane
		meta.SetStatusCondition(&out.Conditions, c)
	}
	return out
}

// ImportIn returns the ServiceImport of a Work. The name is empty for other Works.
func ImportIn(work *workv1alpha1.Work) types.NamespacedName {
	return multiClusterObject(work, kindServiceImport)
}

// multiClusterObject returns the object of a kind that a Work delivers. The name is empty for other Works.
func multiClusterObject(work *workv1alpha1.Work, kind string) types.NamespacedName {
	if ptr.Deref(work.Spec.SuspendDispatching, false) || !carries(work, kind) {
		return types.NamespacedName{}
	}
	obj, err := manifestOf(work)
	if err != nil || obj.GroupVersionKind().Group != groupMultiCluster {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

// ImportStatus returns the status of a ServiceImport: the clusters of its imported slices.
func ImportStatus(slices []discoveryv1.EndpointSlice) multiclusterv1alpha1.ServiceImportStatus {
	clusters := sets.New[string]()
	for i := range slices {
		if cluster, err := names.ClusterOfExecutionNamespace(slices[i].Annotations[workv1alpha2.WorkNamespaceAnnotation]); err == nil {
			clusters.Insert(cluster)
		}
	}
	var out multiclusterv1alpha1.ServiceImportStatus
	for _, cluster := range sets.List(clusters) {
		out.Clusters = append(out.Clusters, multiclusterv1alpha1.ClusterStatus{Cluster: cluster})
	}
	return out
}

// WithStatus returns a copy of a Work with the status of its object, and whether that changed.
func WithStatus(work *workv1alpha1.Work, status any) (*workv1alpha1.Work, bool, error) {
	text, err := json.Marshal(status)
	if err != nil {
		return nil, false, fmt.Errorf("encoding the status of work %s/%s: %w", work.Namespace, work.Name, err)
	}
	if work.Annotations[StatusAnnotation] == string(text) {
		return work, false, nil
	}
	next := work.DeepCopy()
	metav1.SetMetaDataAnnotation(&next.ObjectMeta, StatusAnnotation, string(text))
	return next, true, nil
}

// Report returns the object of an applied Work with the status that is to be written to the member, or nil if the member
// has it, as far as is known, or there is none.
func Report(work *workv1alpha1.Work) *unstructured.Unstructured {
	text := work.Annotations[StatusAnnotation]
	if text == "" || work.DeletionTimestamp != nil || ptr.Deref(work.Spec.SuspendDispatching, false) ||
		!meta.IsStatusConditionTrue(work.Status.Conditions, workv1alpha1.WorkApplied) {
		return nil
	}
	obj, err := manifestOf(work)
	if err != nil || obj.GroupVersionKind().Group != groupMultiCluster {
		return nil
	}
	var status map[string]any
	if json.Unmarshal([]byte(text), &status) != nil {
		return nil
	}
	var observed map[string]any
	if all := work.Status.ManifestStatuses; len(all) == 1 && all[0].Status != nil && json.Unmarshal(all[0].Status.Raw, &observed) != nil {
		observed = nil
	}
	if equality.Semantic.DeepEqual(observed, status) {
		return nil
	}
	obj.Object["status"] = status
	return obj
}
