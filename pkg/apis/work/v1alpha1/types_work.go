package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Work is a list of objects for one cluster. Its namespace is the execution
// namespace of that cluster.
//
// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=works,scope=Namespaced,shortName=wk,categories={karmada-io}
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:JSONPath=`.spec.workload.manifests[*].kind`,name="WORKLOAD-KIND",type=string
// +kubebuilder:printcolumn:JSONPath=`.status.conditions[?(@.type=="Applied")].status`,name="APPLIED",type=string
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name="AGE",type=date
type Work struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec holds the objects.
	// +required
	Spec WorkSpec `json:"spec"`

	// Status is the state observed in the cluster.
	// +optional
	Status WorkStatus `json:"status,omitempty"`
}

// WorkList is a list of Work.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type WorkList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Work `json:"items"`
}

// WorkSpec is the desired state of the cluster.
type WorkSpec struct {
	// Workload holds the objects.
	// +optional
	Workload WorkloadTemplate `json:"workload,omitempty"`

	// SuspendDispatching true suspends writes to the cluster, but not deletion and
	// not the collection of status.
	// +optional
	SuspendDispatching *bool `json:"suspendDispatching,omitempty"`

	// PreserveResourcesOnDeletion true keeps the objects in the cluster when the
	// Work is deleted.
	// +optional
	PreserveResourcesOnDeletion *bool `json:"preserveResourcesOnDeletion,omitempty"`
}

// WorkloadTemplate is a list of objects.
type WorkloadTemplate struct {
	// Manifests are the objects.
	// +optional
	Manifests []Manifest `json:"manifests,omitempty"`
}

// Manifest is one object, of any kind.
type Manifest struct {
	// +kubebuilder:pruning:PreserveUnknownFields
	runtime.RawExtension `json:",inline"`
}

// WorkStatus is the state observed in the cluster.
type WorkStatus struct {
	// Conditions of the Work: Applied and Dispatching.
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// ManifestStatuses is the status of each object.
	// +optional
	ManifestStatuses []ManifestStatus `json:"manifestStatuses,omitempty"`
}

// ManifestStatus is the status of one object.
type ManifestStatus struct {
	// Identifier identifies the object.
	// +required
	Identifier ResourceIdentifier `json:"identifier"`

	// Status of the object, as returned by the interpreter.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Status *runtime.RawExtension `json:"status,omitempty"`

	// Health of the object.
	// +kubebuilder:validation:Enum=Healthy;Unhealthy;Unknown
	// +optional
	Health ResourceHealth `json:"health,omitempty"`
}

// ResourceIdentifier identifies an object of a Work.
type ResourceIdentifier struct {
	// Ordinal is the index of the object in the manifests.
	// +required
	Ordinal int `json:"ordinal"`

	// Group of the object.
	// +optional
	Group string `json:"group,omitempty"`

	// Version of the object.
	// +required
	Version string `json:"version"`

	// Kind of the object.
	// +required
	Kind string `json:"kind"`

	// Resource is the plural name of the kind; it may be empty.
	// +required
	Resource string `json:"resource"`

	// Namespace of the object.
	// +optional
	Namespace string `json:"namespace"`

	// Name of the object.
	// +required
	Name string `json:"name"`
}

// ResourceHealth is the health of an object.
type ResourceHealth string

// The values of ResourceHealth.
const (
	ResourceHealthy   ResourceHealth = "Healthy"
	ResourceUnhealthy ResourceHealth = "Unhealthy"
	ResourceUnknown   ResourceHealth = "Unknown"
)

// Condition types of a Work.
const (
	// WorkApplied reports whether every object in the cluster has its desired state.
	WorkApplied = "Applied"
	// WorkDispatching reports whether the objects are written to the cluster.
	WorkDispatching = "Dispatching"
	// WorkContested is True while another field manager in the cluster changes fields again after each write, or the cluster has
	// other node ports than the control plane allocated, and absent otherwise. Such fields are written once a minute, such ports
	// stay as they are. Bindings have the condition too.
	WorkContested = "Contested"
	// WorkRemoved is False while the objects of a Work that is being deleted stay in the cluster, which refuses to delete them or
	// waits for their finalizers, and absent otherwise.
	WorkRemoved = "Removed"
	// WorkProgressing, WorkAvailable and WorkDegraded are declared, never set.
	WorkProgressing = "Progressing"
	WorkAvailable   = "Available"
	WorkDegraded    = "Degraded"
)

// Reasons and messages of the conditions of a Work.
const (
	WorkAppliedSuccessReason = "AppliedSuccessful"
	WorkAppliedFailedReason  = "AppliedFailed"
	// WorkContestedReason is that of the condition Contested about fields, WorkNodePortTakenReason if it is about node ports only.
	WorkContestedReason     = "ChangedInMember"
	WorkNodePortTakenReason = "NodePortTaken"
	// WorkImmutableFieldReason is the reason if all errors are about immutable fields: repeating the write does not help.
	WorkImmutableFieldReason = "ImmutableField"
	// WorkRemovalFailedReason and WorkFinalizingReason are those of the condition Removed: the deletion fails, or objects have
	// finalizers.
	WorkRemovalFailedReason    = "RemovalFailed"
	WorkFinalizingReason       = "WaitingForFinalizers"
	WorkAppliedSuccessMessage  = "Manifest has been successfully applied"
	WorkSuspendDispatchReason  = "SuspendDispatching"
	WorkSuspendDispatchMessage = "Work dispatching is in a suspended state."
	WorkDispatchingReason      = "Dispatching"
	WorkDispatchingMessage     = "Work is being dispatched to member clusters."
)
