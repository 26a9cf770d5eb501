// Package services computes the objects that make Services span clusters: the Works of
// collected and dispatched EndpointSlices, what a MultiClusterService claims, and what
// ServiceExports and ServiceImports become. It is pure.
//
// Functions return new objects and do not change their arguments, unless stated.
package services

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	networkingv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/networking/v1alpha1"
)

// Labels and annotations of Works and EndpointSlices.
const (
	// ServiceNamespaceLabel and ServiceNameLabel name the exported Service of a collected Work.
	ServiceNamespaceLabel = "endpointslice.karmada.io/namespace"
	ServiceNameLabel      = "endpointslice.karmada.io/name"
	// ManagedByLabel has the managers of a collected Work, joined by dots.
	ManagedByLabel = "endpointslice.karmada.io/managed-by"
	// MCSNamespaceLabel and MCSNameLabel name a MultiClusterService: labels of Works,
	// annotations of its Service and binding.
	MCSNamespaceLabel = "multiclusterservice.karmada.io/namespace"
	MCSNameLabel      = "multiclusterservice.karmada.io/name"
	// ProvisionClusterAnnotation names the cluster that a dispatched slice comes from.
	ProvisionClusterAnnotation = "endpointslice.karmada.io/provision-cluster"
	// BindingManagedByLabel is on the bindings of Services that a MultiClusterService propagates.
	BindingManagedByLabel = "binding.karmada.io/managed-by"
)

// Finalizers.
const (
	// ImportFinalizer holds collected Works whose slices are imported into the control plane.
	ImportFinalizer = "karmada.io/endpointslice-controller"
	// DispatchFinalizer holds collected Works whose slices are dispatched to consumers.
	DispatchFinalizer = "karmada.io/mcs-endpointslice-dispatch-controller"
	// MCSFinalizer holds MultiClusterServices.
	MCSFinalizer = "karmada.io/multiclusterservice-controller"
)

// Values of the label endpointslice.kubernetes.io/managed-by of slices that controllers of
// the control plane create. Such slices are never collected.
const (
	DispatchedSlice = "endpointslice-dispatch-controller.karmada.io"
	ImportedSlice   = "endpointslice-controller.karmada.io"
)

// Conditions of MultiClusterServices.
const (
	ServiceApplied               = "ServiceApplied"
	ServiceAppliedSucceed        = "ServiceAppliedSucceed"
	ServiceAppliedFailed         = "ServiceAppliedFailed"
	SlicesDispatched             = "EndpointSliceDispatched"
	SlicesDispatchedSucceed      = "EndpointSliceDispatchedSucceed"
	SlicesDispatchedFailed       = "EndpointSliceDispatchedFailed"
	serviceAppliedMessage        = "Service is propagated to target clusters."
	slicesDispatchedMessage      = "EndpointSlice are dispatched successfully"
	derivedPrefix                = "derived-"
	importedPrefix               = "imported-"
	kindEndpointSlice            = "EndpointSlice"
	kindMultiClusterService      = "MultiClusterService"
	kindServiceExport            = "ServiceExport"
	kindServiceImport            = "ServiceImport"
	groupMultiCluster            = "multicluster.x-k8s.io"
	groupDiscovery               = "discovery.k8s.io"
	claimedByMultiClusterService = "MultiClusterService"
)

// Reasons of events.
const (
	ReasonClusterNotFound    = "ClusterNotFound"
	ReasonAPIIncompatible    = "APIIncompatible"
	ReasonSyncServiceFailed  = "SyncServiceFailed"
	ReasonSyncServiceSucceed = "SyncServiceSucceed"
	ReasonDispatchSucceed    = "DispatchEndpointSliceSucceed"
	ReasonDispatchFailed     = "DispatchEndpointSliceFailed"
	ReasonSyncDerivedSucceed = "SyncDerivedServiceSucceed"
	ReasonSyncDerivedFailed  = "SyncDerivedServiceFailed"
)

// Event is an event to record.
type Event struct{ Type, Reason, Message string }

func warning(reason, message string) Event { return Event{corev1.EventTypeWarning, reason, message} }

func normal(reason, message string) Event { return Event{corev1.EventTypeNormal, reason, message} }

// Manager is a feature for which slices are collected.
type Manager string

// The values of Manager, which are parts of ManagedByLabel.
const (
	Export Manager = "ServiceExport"
	MCS    Manager = "MultiClusterService"
)

// labels returns the keys of the labels that name the Service, and the finalizer.
func (m Manager) keys() (namespace, name, finalizer string) {
	if m == MCS {
		return MCSNamespaceLabel, MCSNameLabel, DispatchFinalizer
	}
	return ServiceNamespaceLabel, ServiceNameLabel, ImportFinalizer
}

// ServiceOf returns the Service for which a manager collected the slice of a Work,
// according to its labels. The name is empty for Works of others.
func (m Manager) ServiceOf(labels map[string]string) types.NamespacedName {
	namespace, name, _ := m.keys()
	return types.NamespacedName{Namespace: labels[namespace], Name: labels[name]}
}

// CrossCluster reports whether a MultiClusterService is one that the control plane
// implements.
func CrossCluster(mcs *networkingv1alpha1.MultiClusterService) bool {
	return slices.Contains(mcs.Spec.Types, networkingv1alpha1.ExposureTypeCrossCluster)
}

// named returns the names of selected clusters, or all names if none is selected, without
// clusters that are being deleted: a Work that is created for one keeps it for ever. A nil Cluster is one that is not.
func named(selected []networkingv1alpha1.ClusterSelector, clusters Clusters) sets.Set[string] {
	out := sets.New[string]()
	if len(selected) == 0 {
		out = sets.KeySet(clusters)
	}
	for _, c := range selected {
		out.Insert(c.Name)
	}
	for name, cluster := range clusters {
		if cluster != nil && cluster.DeletionTimestamp != nil {
			out.Delete(name)
		}
	}
	return out
}

// Providers returns the clusters that provide the Service, those that do not exist
// included, and those that are being deleted not.
func Providers(mcs *networkingv1alpha1.MultiClusterService, clusters Clusters) sets.Set[string] {
	return named(mcs.Spec.ProviderClusters, clusters)
}

// Consumers returns the clusters that consume the Service, those that do not exist
// included, and those that are being deleted not.
func Consumers(mcs *networkingv1alpha1.MultiClusterService, clusters Clusters) sets.Set[string] {
	return named(mcs.Spec.ConsumerClusters, clusters)
}
