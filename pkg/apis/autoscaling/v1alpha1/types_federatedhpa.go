package v1alpha1

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FederatedHPA scales a workload across its clusters by metrics.
//
// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=federatedhpas,scope=Namespaced,shortName=fhpa,categories={karmada-io}
// +kubebuilder:printcolumn:JSONPath=`.spec.scaleTargetRef.kind`,name="REFERENCE-KIND",type=string
// +kubebuilder:printcolumn:JSONPath=`.spec.scaleTargetRef.name`,name="REFERENCE-NAME",type=string
// +kubebuilder:printcolumn:JSONPath=`.spec.minReplicas`,name="MINPODS",type=integer
// +kubebuilder:printcolumn:JSONPath=`.spec.maxReplicas`,name="MAXPODS",type=integer
// +kubebuilder:printcolumn:JSONPath=`.status.currentReplicas`,name="REPLICAS",type=integer
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name="AGE",type=date
type FederatedHPA struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec holds the scale target, the bounds and the metrics.
	// +required
	Spec FederatedHPASpec `json:"spec"`

	// Status has the fields of the status of a HorizontalPodAutoscaler.
	// +optional
	Status autoscalingv2.HorizontalPodAutoscalerStatus `json:"status"`
}

// FederatedHPAList is a list of FederatedHPA.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type FederatedHPAList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []FederatedHPA `json:"items"`
}

// FederatedHPASpec holds the scale target, the bounds and the metrics.
type FederatedHPASpec struct {
	// ScaleTargetRef refers to the workload to scale.
	// +required
	ScaleTargetRef autoscalingv2.CrossVersionObjectReference `json:"scaleTargetRef"`

	// MinReplicas is the minimum number of replicas over all clusters. Default 1,
	// set by admission.
	// +optional
	MinReplicas *int32 `json:"minReplicas,omitempty"`

	// MaxReplicas is the maximum number of replicas over all clusters.
	MaxReplicas int32 `json:"maxReplicas"`

	// Metrics determine the number of replicas; the largest result is used. Empty
	// means 80 % CPU utilization.
	// +optional
	Metrics []autoscalingv2.MetricSpec `json:"metrics,omitempty"`

	// Behavior limits the rate of scaling up and down.
	// +optional
	Behavior *autoscalingv2.HorizontalPodAutoscalerBehavior `json:"behavior,omitempty"`
}
