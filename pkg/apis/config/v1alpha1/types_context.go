package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// ResourceInterpreterContext is what is sent to an interpreter webhook, with a
// request, and what it answers, with a response. It is never stored.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ResourceInterpreterContext struct {
	metav1.TypeMeta `json:",inline"`

	// Request is the question; webhooks do not send it back.
	// +optional
	Request *ResourceInterpreterRequest `json:"request,omitempty"`

	// Response is the answer.
	// +optional
	Response *ResourceInterpreterResponse `json:"response,omitempty"`
}

// ResourceInterpreterRequest is a question about an object.
type ResourceInterpreterRequest struct {
	// UID identifies this one call; the answer repeats it.
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

	// Operation is what is asked.
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

	// AggregatedStatus holds the statuses to add up, for AggregateStatus only.
	// +optional
	AggregatedStatus []workv1alpha2.AggregatedStatusItem `json:"aggregatedStatus,omitempty"`
}

// ResourceInterpreterResponse is the answer to a ResourceInterpreterRequest.
type ResourceInterpreterResponse struct {
	// UID is that of the request.
	// +required
	UID types.UID `json:"uid"`

	// Successful says whether the operation was done.
	// +required
	Successful bool `json:"successful"`

	// Status says why not. It is required when Successful is false.
	// +optional
	Status *RequestStatus `json:"status,omitempty"`

	// Patch changes the object of the request; for ReviseReplica, Retain and
	// AggregateStatus. None is no change.
	// +optional
	Patch []byte `json:"patch,omitempty"`

	// PatchType is the form of Patch and required with it.
	// +optional
	PatchType *PatchType `json:"patchType,omitempty"`

	// ReplicaRequirements is what one replica needs, for InterpretReplica.
	// +optional
	ReplicaRequirements *workv1alpha2.ReplicaRequirements `json:"replicaRequirements,omitempty"`

	// Replicas is how many replicas the object wants. It is required for
	// InterpretReplica.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// Components are the pod templates of the object, for InterpretComponent.
	// +optional
	Components []workv1alpha2.Component `json:"components,omitempty"`

	// Dependencies is what the object refers to, for InterpretDependency.
	// +optional
	Dependencies []DependentObjectReference `json:"dependencies,omitempty"`

	// RawStatus is the status to collect. It is required for InterpretStatus.
	// +optional
	RawStatus *runtime.RawExtension `json:"rawStatus,omitempty"`

	// Healthy is the health of the object. It is required for InterpretHealth.
	// +optional
	Healthy *bool `json:"healthy,omitempty"`
}

// RequestStatus says why a request failed.
type RequestStatus struct {
	// Message is for people.
	// +optional
	Message string `json:"message,omitempty"`

	// Code is an HTTP status code. Default 0.
	// +optional
	Code int32 `json:"code,omitempty"`
}

// PatchType is the form of a patch.
type PatchType string

// PatchTypeJSONPatch is RFC 6902.
const PatchTypeJSONPatch PatchType = "JSONPatch"
