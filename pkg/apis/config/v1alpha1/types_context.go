package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// ResourceInterpreterContext holds the request to an interpreter webhook or its
// response. It is never stored.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ResourceInterpreterContext struct {
	metav1.TypeMeta `json:",inline"`

	// Request is sent to the webhook; the webhook does not return it.
	// +optional
	Request *ResourceInterpreterRequest `json:"request,omitempty"`

	// Response is returned by the webhook.
	// +optional
	Response *ResourceInterpreterResponse `json:"response,omitempty"`
}

// ResourceInterpreterRequest requests one operation on an object.
type ResourceInterpreterRequest struct {
	// UID identifies the request; the response repeats it.
	// +required
	UID types.UID `json:"uid"`

	// Kind of the object.
	// +required
	Kind metav1.GroupVersionKind `json:"kind"`

	// Name of the object.
	// +required
	Name string `json:"name"`

	// Namespace of the object; empty for cluster-scoped ones.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Operation is the requested operation.
	// +required
	Operation InterpreterOperation `json:"operation"`

	// Object is the object: the member's for InterpretStatus and InterpretHealth,
	// the desired one for Retain, the template otherwise.
	// +required
	Object runtime.RawExtension `json:"object,omitempty"`

	// ObservedObject is the member's object, for Retain only.
	// +optional
	ObservedObject *runtime.RawExtension `json:"observedObject,omitempty"`

	// DesiredReplicas is the number of replicas to set, for ReviseReplica; 0
	// otherwise.
	// +optional
	DesiredReplicas *int32 `json:"replicas,omitempty"`

	// AggregatedStatus holds the statuses to aggregate, for AggregateStatus only.
	// +optional
	AggregatedStatus []workv1alpha2.AggregatedStatusItem `json:"aggregatedStatus,omitempty"`
}

// ResourceInterpreterResponse is the response to a ResourceInterpreterRequest.
type ResourceInterpreterResponse struct {
	// UID is the UID of the request.
	// +required
	UID types.UID `json:"uid"`

	// Successful reports whether the operation succeeded.
	// +required
	Successful bool `json:"successful"`

	// Status is the reason of a failure. It is required when Successful is false.
	// +optional
	Status *RequestStatus `json:"status,omitempty"`

	// Patch changes the object of the request; for ReviseReplica, Retain and
	// AggregateStatus. Empty means no change.
	// +optional
	Patch []byte `json:"patch,omitempty"`

	// PatchType is the format of Patch. It is required when Patch is set.
	// +optional
	PatchType *PatchType `json:"patchType,omitempty"`

	// ReplicaRequirements are the requirements of one replica, for InterpretReplica.
	// +optional
	ReplicaRequirements *workv1alpha2.ReplicaRequirements `json:"replicaRequirements,omitempty"`

	// Replicas is the desired number of replicas of the object. It is required for
	// InterpretReplica.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// Components are the pod templates of the object, for InterpretComponent.
	// +optional
	Components []workv1alpha2.Component `json:"components,omitempty"`

	// Dependencies are the objects that the object refers to, for
	// InterpretDependency.
	// +optional
	Dependencies []DependentObjectReference `json:"dependencies,omitempty"`

	// RawStatus is the status to collect. It is required for InterpretStatus.
	// +optional
	RawStatus *runtime.RawExtension `json:"rawStatus,omitempty"`

	// Healthy reports whether the object is healthy. It is required for
	// InterpretHealth.
	// +optional
	Healthy *bool `json:"healthy,omitempty"`
}

// RequestStatus is the reason of a failed request.
type RequestStatus struct {
	// Message is a human-readable description of the failure.
	// +optional
	Message string `json:"message,omitempty"`

	// Code is an HTTP status code. Default 0.
	// +optional
	Code int32 `json:"code,omitempty"`
}

// PatchType is the format of a patch.
type PatchType string

// PatchTypeJSONPatch is RFC 6902.
const PatchTypeJSONPatch PatchType = "JSONPatch"
