package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ServiceExport exports the Service of the same name to other clusters.
//
// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=serviceexports,scope=Namespaced,shortName=svcex
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name="Age",type=date
type ServiceExport struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Status is the observed state.
	// +optional
	Status ServiceExportStatus `json:"status,omitempty"`
}

// ServiceExportList is a list of ServiceExport.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type ServiceExportList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ServiceExport `json:"items"`
}

// ServiceExportStatus is the observed state of a ServiceExport.
type ServiceExportStatus struct {
	// Conditions of the export.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ServiceImportType is the type of an imported Service.
type ServiceImportType string

// The values of ServiceImportType.
const (
	ClusterSetIP ServiceImportType = "ClusterSetIP"
	Headless     ServiceImportType = "Headless"
)

// ServiceImport is a Service imported from other clusters.
//
// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=serviceimports,scope=Namespaced,shortName=svcim
// +kubebuilder:printcolumn:JSONPath=`.spec.type`,name="Type",type=string
// +kubebuilder:printcolumn:JSONPath=`.spec.ips`,name="IP",type=string
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name="Age",type=date
type ServiceImport struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec describes the imported Service.
	// +optional
	Spec ServiceImportSpec `json:"spec,omitempty"`

	// Status is the observed state.
	// +optional
	Status ServiceImportStatus `json:"status,omitempty"`
}

// ServiceImportList is a list of ServiceImport.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type ServiceImportList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ServiceImport `json:"items"`
}

// ServiceImportSpec describes a Service imported from other clusters.
type ServiceImportSpec struct {
	// Ports of the service.
	// +listType=atomic
	// +required
	Ports []ServicePort `json:"ports"`

	// IPs are the addresses of the service, for the type ClusterSetIP.
	// +kubebuilder:validation:MaxItems:=1
	// +optional
	IPs []string `json:"ips,omitempty"`

	// Type of the service: ClusterSetIP or Headless.
	// +kubebuilder:validation:Enum=ClusterSetIP;Headless
	// +required
	Type ServiceImportType `json:"type"`

	// SessionAffinity is None or ClientIP.
	// +optional
	SessionAffinity corev1.ServiceAffinity `json:"sessionAffinity,omitempty"`

	// SessionAffinityConfig configures ClientIP.
	// +optional
	SessionAffinityConfig *corev1.SessionAffinityConfig `json:"sessionAffinityConfig,omitempty"`
}

// ServicePort is a port of a ServiceImport.
type ServicePort struct {
	// Name of the port; required when there are several.
	// +optional
	Name string `json:"name,omitempty"`

	// Protocol of the port. Default TCP.
	// +optional
	Protocol corev1.Protocol `json:"protocol,omitempty"`

	// AppProtocol is the application protocol of the port.
	// +optional
	AppProtocol *string `json:"appProtocol,omitempty"`

	// Port is the port number.
	// +required
	Port int32 `json:"port"`
}

// ServiceImportStatus is the observed state of a ServiceImport.
type ServiceImportStatus struct {
	// Clusters that export the service.
	// +optional
	// +patchStrategy=merge
	// +patchMergeKey=cluster
	// +listType=map
	// +listMapKey=cluster
	Clusters []ClusterStatus `json:"clusters,omitempty"`
}

// ClusterStatus is a cluster that exports a service.
type ClusterStatus struct {
	// Cluster names the cluster.
	// +required
	Cluster string `json:"cluster"`
}
