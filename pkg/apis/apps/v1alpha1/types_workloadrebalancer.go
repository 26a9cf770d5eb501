package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// WorkloadRebalancer asks once for a fresh scheduling of some workloads.
//
// +genclient
// +genclient:nonNamespaced
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=workloadrebalancers,scope="Cluster"
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
type WorkloadRebalancer struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec names the workloads.
	// +required
	Spec WorkloadRebalancerSpec `json:"spec"`

	// Status says what was done.
	// +optional
	Status WorkloadRebalancerStatus `json:"status,omitempty"`
}

// WorkloadRebalancerList is a list of WorkloadRebalancer.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type WorkloadRebalancerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []WorkloadRebalancer `json:"items"`
}

// WorkloadRebalancerSpec names the workloads.
type WorkloadRebalancerSpec struct {
	// Workloads are the workloads.
	// +kubebuilder:validation:MinItems=1
	// +required
	Workloads []ObjectReference `json:"workloads"`

	// TTLSecondsAfterFinished is when the object is deleted after it is done, in
	// seconds. Nil means never.
	// +optional
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
}

// ObjectReference refers to a workload.
type ObjectReference struct {
	// APIVersion of the workload.
	// +required
	APIVersion string `json:"apiVersion"`

	// Kind of the workload.
	// +required
	Kind string `json:"kind"`

	// Name of the workload.
	// +required
	Name string `json:"name"`

	// Namespace of the workload; empty for cluster-scoped ones.
	// +optional
	Namespace string `json:"namespace,omitempty"`
}

// WorkloadRebalancerStatus says what was done.
type WorkloadRebalancerStatus struct {
	// ObservedWorkloads is the result by workload.
	// +optional
	ObservedWorkloads []ObservedWorkload `json:"observedWorkloads,omitempty"`

	// ObservedGeneration is the generation that the status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// FinishTime is when the last workload was done.
	// +optional
	FinishTime *metav1.Time `json:"finishTime,omitempty"`
}

// RebalanceResult is the result for a workload.
type RebalanceResult string

// The values of RebalanceResult.
const (
	// RebalanceSuccessful means that a fresh scheduling was asked for.
	RebalanceSuccessful RebalanceResult = "Successful"
	// RebalanceFailed means that it could not be asked for.
	RebalanceFailed RebalanceResult = "Failed"
)

// RebalanceFailedReason says why it failed.
type RebalanceFailedReason string

// RebalanceObjectNotFound means that the workload has no binding.
const RebalanceObjectNotFound RebalanceFailedReason = "ReferencedBindingNotFound"

// ObservedWorkload is the result for one workload.
type ObservedWorkload struct {
	// Workload is the workload.
	// +required
	Workload ObjectReference `json:"workload"`

	// Result is the result.
	// +optional
	Result RebalanceResult `json:"result,omitempty"`

	// Reason says why it failed.
	// +optional
	Reason RebalanceFailedReason `json:"reason,omitempty"`
}
