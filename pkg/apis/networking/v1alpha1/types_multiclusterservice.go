package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MultiClusterServicePermanentIDLabel holds the id of a MultiClusterService.
const MultiClusterServicePermanentIDLabel = "multiclusterservice.karmada.io/permanent-id"

// MultiClusterService exposes a service of some clusters in others.
//
// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=multiclusterservices,scope=Namespaced,shortName=mcs,categories={karmada-io}
type MultiClusterService struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec selects the ports to expose and the clusters.
	// +required
	Spec MultiClusterServiceSpec `json:"spec"`

	// Status is the observed state.
	// +optional
	Status corev1.ServiceStatus `json:"status,omitempty"`
}

// MultiClusterServiceList is a list of MultiClusterService.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type MultiClusterServiceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MultiClusterService `json:"items"`
}

// MultiClusterServiceSpec selects the ports to expose and the clusters.
type MultiClusterServiceSpec struct {
	// Types are how the service is exposed: CrossCluster or LoadBalancer.
	// +required
	Types []ExposureType `json:"types"`

	// Ports to expose. Empty means all ports of the service.
	// +optional
	Ports []ExposurePort `json:"ports,omitempty"`

	// Range is deprecated; use ProviderClusters.
	// +optional
	Range ExposureRange `json:"range,omitempty"`

	// ServiceProvisionClusters is deprecated; use ProviderClusters.
	// +optional
	ServiceProvisionClusters []string `json:"serviceProvisionClusters,omitempty"`

	// ServiceConsumptionClusters is deprecated; use ConsumerClusters.
	// +optional
	ServiceConsumptionClusters []string `json:"serviceConsumptionClusters,omitempty"`

	// ProviderClusters are the clusters that provide the service. Empty means all.
	// +optional
	ProviderClusters []ClusterSelector `json:"providerClusters,omitempty"`

	// ConsumerClusters are the clusters that use the service. Empty means all.
	// +optional
	ConsumerClusters []ClusterSelector `json:"consumerClusters,omitempty"`
}

// ClusterSelector selects a cluster.
type ClusterSelector struct {
	// Name of the cluster.
	// +required
	Name string `json:"name"`
}

// ExposureType is how a service is exposed.
type ExposureType string

// The values of ExposureType.
const (
	ExposureTypeCrossCluster ExposureType = "CrossCluster"
	ExposureTypeLoadBalancer ExposureType = "LoadBalancer"
)

// ExposurePort is a port to expose.
type ExposurePort struct {
	// Name of the port in the service; required when it has several.
	// +optional
	Name string `json:"name,omitempty"`

	// Port is the port number.
	// +required
	Port int32 `json:"port"`
}

// ExposureRange is a list of clusters.
type ExposureRange struct {
	// ClusterNames are the names of the clusters.
	// +optional
	ClusterNames []string `json:"clusterNames,omitempty"`
}
