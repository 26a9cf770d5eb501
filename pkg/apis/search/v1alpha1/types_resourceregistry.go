package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
)

// CauseNotCached is the type of the cause in the status details of an error about objects of a kind that no ResourceRegistry
// selects.
const CauseNotCached = "NotCached"

// ResourceRegistry selects the objects of member clusters that the search
// component caches.
//
// +genclient
// +genclient:nonNamespaced
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ResourceRegistry struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec selects the kinds and the clusters.
	// +optional
	Spec ResourceRegistrySpec `json:"spec,omitempty"`

	// Status is the observed state.
	// +optional
	Status ResourceRegistryStatus `json:"status,omitempty"`
}

// ResourceRegistryList is a list of ResourceRegistry.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ResourceRegistryList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ResourceRegistry `json:"items"`
}

// ResourceRegistrySpec selects the kinds and the clusters.
type ResourceRegistrySpec struct {
	// TargetCluster selects the clusters.
	// +required
	TargetCluster policyv1alpha1.ClusterAffinity `json:"targetCluster"`

	// ResourceSelectors select the kinds.
	// +required
	ResourceSelectors []ResourceSelector `json:"resourceSelectors"`

	// BackendStore is where the objects are stored. Nil means in memory.
	// +optional
	BackendStore *BackendStoreConfig `json:"backendStore,omitempty"`
}

// ResourceSelector selects a kind.
type ResourceSelector struct {
	// APIVersion of the kind.
	// +required
	APIVersion string `json:"apiVersion"`

	// Kind is the kind.
	// +required
	Kind string `json:"kind"`

	// Namespace of the objects. Empty means all.
	// +optional
	Namespace string `json:"namespace,omitempty"`
}

// ResourceRegistryStatus is the observed state of a ResourceRegistry.
type ResourceRegistryStatus struct {
	// Conditions of the registry.
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Clusters are what the search component caches for the registry, an entry for each kind of each cluster, at most 100.
	// If there are more, the entries without a failure are one for each kind: their sum.
	// +optional
	// +listType=atomic
	Clusters []ClusterCache `json:"clusters,omitempty"`
}

// ClusterCache is what is cached of one kind in a cluster.
type ClusterCache struct {
	// Cluster is the name of the cluster. Empty means that the entry is the sum of several clusters.
	// +optional
	Cluster string `json:"cluster,omitempty"`

	// Clusters is the number of clusters of a sum.
	// +optional
	Clusters int32 `json:"clusters,omitempty"`

	// APIVersion of the kind.
	// +required
	APIVersion string `json:"apiVersion"`

	// Kind is the kind.
	// +required
	Kind string `json:"kind"`

	// Since is when the cluster was last listed completely. In a sum, it is the latest of the clusters.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`

	// Objects is the number of cached objects.
	// +required
	Objects int64 `json:"objects"`

	// Failure is why the objects are missing or not up to date. Empty if they are.
	// +optional
	Failure string `json:"failure,omitempty"`
}

// The conditions of a ResourceRegistry.
const (
	// RegistryReady reports whether all objects that the registry selects are cached.
	RegistryReady = "Ready"
	// RegistryDegraded reports whether something that the registry selects cannot be cached.
	RegistryDegraded = "Degraded"
)

// The reasons of the conditions of a ResourceRegistry.
const (
	// ReasonCached is the reason of Ready: all objects are cached.
	ReasonCached = "Cached"
	// ReasonCaching is the reason of Ready: some objects are not cached yet, or not any more.
	ReasonCaching = "Caching"
	// ReasonNoCluster is the reason of Ready: no cluster is selected.
	ReasonNoCluster = "NoCluster"
	// ReasonUnknownKind is the reason of Degraded: a kind is served by no selected cluster.
	ReasonUnknownKind = "UnknownKind"
	// ReasonNotInControlPlane is the reason of Degraded: a kind is cached, but the control plane, from which clients discover
	// kinds, does not serve it.
	ReasonNotInControlPlane = "NotInControlPlane"
	// ReasonClusterFailed is the reason of Degraded: a cluster does not answer, or refuses the objects.
	ReasonClusterFailed = "ClusterFailed"
	// ReasonBackendStoreFailed is the reason of Degraded: the backend store lacks objects.
	ReasonBackendStoreFailed = "BackendStoreFailed"
	// ReasonNotDegraded is the reason of Degraded: everything that is selected can be cached.
	ReasonNotDegraded = "NotDegraded"
)

// BackendStoreConfig is where cached objects are stored.
type BackendStoreConfig struct {
	// OpenSearch is an OpenSearch server.
	// +optional
	OpenSearch *OpenSearchConfig `json:"openSearch,omitempty"`
}

// OpenSearchConfig is an OpenSearch server.
type OpenSearchConfig struct {
	// Addresses of the server.
	// +required
	Addresses []string `json:"addresses"`

	// SecretRef refers to the Secret with the user name and password.
	// +required
	SecretRef clusterv1alpha1.LocalSecretReference `json:"secretRef,omitempty"`
}

// Search is the kind of the resource "search", which serves cached objects. It has no content.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Search struct {
	metav1.TypeMeta `json:",inline"`
}

// Proxying is the kind of the resource "proxying", which serves all members as one cluster. It has no content.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Proxying struct {
	metav1.TypeMeta `json:",inline"`
}
