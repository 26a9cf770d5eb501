package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// WorkloadRebalancer requests one rescheduling of the listed workloads.
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

	// Spec lists the workloads to reschedule.
	// +required
	Spec WorkloadRebalancerSpec `json:"spec"`

	// Status is the result for each workload.
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

// WorkloadRebalancerSpec lists the workloads to reschedule.
type WorkloadRebalancerSpec struct {
	// Workloads are the workloads to reschedule.
	// +kubebuilder:validation:MinItems=1
	// +required
	Workloads []ObjectReference `json:"workloads"`

	// TTLSecondsAfterFinished is the time after which a finished object is deleted,
	// in seconds. Nil means never.
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

// WorkloadRebalancerStatus is the result of a WorkloadRebalancer.
type WorkloadRebalancerStatus struct {
	// ObservedWorkloads are the results, one for each workload.
	// +optional
	ObservedWorkloads []ObservedWorkload `json:"observedWorkloads,omitempty"`

	// ObservedGeneration is the generation of the spec that the status was computed
	// from.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// FinishTime is when the last workload was processed.
	// +optional
	FinishTime *metav1.Time `json:"finishTime,omitempty"`
}

// RebalanceResult is the result for a workload.
type RebalanceResult string

// The values of RebalanceResult.
const (
	// RebalanceSuccessful means that rescheduling was requested.
	RebalanceSuccessful RebalanceResult = "Successful"
	// RebalanceFailed means that rescheduling could not be requested.
	RebalanceFailed RebalanceResult = "Failed"
)

// RebalanceFailedReason is the reason of a failure.
type RebalanceFailedReason string

// RebalanceObjectNotFound means that the workload has no binding.
const RebalanceObjectNotFound RebalanceFailedReason = "ReferencedBindingNotFound"

// ObservedWorkload is the result for one workload.
type ObservedWorkload struct {
	// Workload refers to the workload.
	// +required
	Workload ObjectReference `json:"workload"`

	// Result is Successful or Failed.
	// +optional
	Result RebalanceResult `json:"result,omitempty"`

	// Reason is the reason of a failure.
	// +optional
	Reason RebalanceFailedReason `json:"reason,omitempty"`
}
