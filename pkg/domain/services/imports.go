package services

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	multiclusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/multicluster/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// DerivedService returns the name of the Service of a ServiceImport.
func DerivedService(name string) string { return derivedPrefix + name }

// Imports reports whether the slice of a collected Work is imported into the control
// plane.
func Imports(work *workv1alpha1.Work) bool {
	return work.DeletionTimestamp == nil && Export.ServiceOf(work.Labels).Name != ""
}

// Import returns the EndpointSlice of the control plane for a collected Work of a
// cluster. get returns the one that exists by a name, or nil.
func Import(work *workv1alpha1.Work, cluster string, clusters Clusters, get func(namespace, name string) *discoveryv1.EndpointSlice) (*discoveryv1.EndpointSlice, error) {
	obj, err := manifestOf(work)
	if err != nil {
		return nil, err
	}
	slice := &discoveryv1.EndpointSlice{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, slice); err != nil {
		return nil, fmt.Errorf("decoding the slice of work %s/%s: %w", work.Namespace, work.Name, err)
	}
	next := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
		Namespace: slice.Namespace, Name: clusters.Prefixed(importedPrefix, cluster, slice.Name),
		Annotations: map[string]string{workv1alpha2.WorkNamespaceAnnotation: work.Namespace, workv1alpha2.WorkNameAnnotation: work.Name},
	}}
	if existing := get(next.Namespace, next.Name); existing != nil {
		next = existing.DeepCopy()
	}
	next.Labels = map[string]string{
		workv1alpha2.WorkPermanentIDLabel: work.Labels[workv1alpha2.WorkPermanentIDLabel],
		discoveryv1.LabelServiceName:      DerivedService(Export.ServiceOf(work.Labels).Name),
		discoveryv1.LabelManagedBy:        ImportedSlice,
	}
	next.AddressType, next.Endpoints, next.Ports = slice.AddressType, slice.Endpoints, slice.Ports
	return next, nil
}

// DerivedFromAnnotation of a derived Service has the name of its ServiceImport.
const DerivedFromAnnotation = "multicluster.kubernetes.io/service-name"

// IsDerived reports whether a Service is derived from a ServiceImport.
func IsDerived(service metav1.Object) bool {
	from := service.GetAnnotations()[DerivedFromAnnotation]
	return from != "" && service.GetName() == DerivedService(from)
}

// Derive returns the Service of a ServiceImport, or nil for one whose type is not
// implemented. existing is the Service of this name, or nil; metadata that others set
// stays.
func Derive(in *multiclusterv1alpha1.ServiceImport, existing *corev1.Service) *corev1.Service {
	if in.DeletionTimestamp != nil || in.Spec.Type != multiclusterv1alpha1.ClusterSetIP {
		return nil
	}
	next := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: in.Namespace, Name: DerivedService(in.Name)}}
	next.Spec.Type = corev1.ServiceTypeClusterIP
	for _, p := range in.Spec.Ports {
		next.Spec.Ports = append(next.Spec.Ports, corev1.ServicePort{Name: p.Name, Protocol: p.Protocol, Port: p.Port, AppProtocol: p.AppProtocol})
	}
	if existing != nil {
		next.ResourceVersion, next.Spec.ClusterIP = existing.ResourceVersion, existing.Spec.ClusterIP
	}
	for _, ip := range in.Spec.IPs {
		next.Status.LoadBalancer.Ingress = append(next.Status.LoadBalancer.Ingress, corev1.LoadBalancerIngress{IP: ip})
	}
	return next
}

// DerivedEvent returns the event of a derived Service that was written, or of the failure.
func DerivedEvent(name string, err error) Event {
	if err != nil {
		return warning(ReasonSyncDerivedFailed, fmt.Sprintf("Sync derived service for serviceImport(%s) failed: %v", name, err))
	}
	return normal(ReasonSyncDerivedSucceed, fmt.Sprintf("Sync derived service for serviceImport(%s) succeed.", name))
}

// SameSlice reports whether two EndpointSlices have the same labels and content.
func SameSlice(a, b *discoveryv1.EndpointSlice, equal func(a, b any) bool) bool {
	return maps.Equal(a.Labels, b.Labels) && a.AddressType == b.AddressType && equal(a.Endpoints, b.Endpoints) && equal(a.Ports, b.Ports)
}
