package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
)

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
}

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
