package services

import (
	"fmt"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	networkingv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/networking/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/validation"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
)

// Marks returns the MultiClusterService whose provider a Work marks a cluster as. The name
// is empty for other Works.
func Marks(work *workv1alpha1.Work) types.NamespacedName {
	_, dispatched := work.Annotations[ProvisionClusterAnnotation]
	id := work.Labels[networkingv1alpha1.MultiClusterServicePermanentIDLabel]
	if dispatched || id == "" || !ptr.Deref(work.Spec.SuspendDispatching, false) || !carries(work, kindMultiClusterService) {
		return types.NamespacedName{}
	}
	return exportable(MCS.ServiceOf(work.Labels))
}

// Exports returns the Service that a Work exports from its cluster: the Work has a
// ServiceExport. The name is empty for other Works.
func Exports(work *workv1alpha1.Work) types.NamespacedName {
	return exportable(multiClusterObject(work, kindServiceExport))
}

// exportable returns a Service, or none for the one that every cluster has for its own API server.
func exportable(service types.NamespacedName) types.NamespacedName {
	if validation.OwnService(service) {
		return types.NamespacedName{}
	}
	return service
}

// SliceOf returns the name of the slice of a collected Work.
func SliceOf(work *workv1alpha1.Work) (types.NamespacedName, error) {
	obj, err := manifestOf(work)
	if err != nil {
		return types.NamespacedName{}, err
	}
	return types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}, nil
}

// Authorize returns why the slice of a collected Work does not count for a manager, or
// nil. Agents write these Works and may claim anything in them: a slice counts only for
// a Service that the control plane exports from that very cluster. permitted are the
// Services of the cluster's marker Works or ServiceExports.
func Authorize(work *workv1alpha1.Work, cluster string, m Manager, permitted func(types.NamespacedName) bool) error {
	service := m.ServiceOf(work.Labels)
	if !permitted(service) {
		return fmt.Errorf("cluster %s does not export Service %s", cluster, service)
	}
	obj, err := manifestOf(work)
	if err != nil {
		return err
	}
	slice := types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}
	switch named := WorkNames(cluster, slice); {
	case obj.GetKind() != kindEndpointSlice || obj.GroupVersionKind().Group != groupDiscovery:
		return fmt.Errorf("work %s/%s has a %s and not an EndpointSlice", work.Namespace, work.Name, obj.GetKind())
	case slice.Namespace != service.Namespace:
		return fmt.Errorf("slice %s is in another namespace than Service %s", slice, service)
	case obj.GetLabels()[discoveryv1.LabelServiceName] != service.Name:
		return fmt.Errorf("slice %s belongs to Service %q and not %q", slice, obj.GetLabels()[discoveryv1.LabelServiceName], service.Name)
	case !Collectible(obj):
		return fmt.Errorf("slice %s was created by the control plane", slice)
	case work.Namespace != names.ExecutionNamespace(cluster) || work.Name != named[0] && work.Name != named[1]:
		return fmt.Errorf("slice %s belongs into work %s and not %s", slice, named[0], work.Name)
	}
	return nil
}

// ExportWorkName returns the name of the Work that exports a Service from a cluster.
func ExportWorkName(service types.NamespacedName) string {
	return names.Work(kindServiceExport, service.Name, service.Namespace)
}
