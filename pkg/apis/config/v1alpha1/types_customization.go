package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ResourceInterpreterCustomization defines the interpretation of one kind by Lua
// scripts.
//
// +genclient
// +genclient:nonNamespaced
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=resourceinterpretercustomizations,scope="Cluster",shortName=ric,categories={karmada-io}
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:JSONPath=`.spec.target.apiVersion`,name="TARGET-API-VERSION",type=string
// +kubebuilder:printcolumn:JSONPath=`.spec.target.kind`,name="TARGET-KIND",type=string
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name="AGE",type=date
type ResourceInterpreterCustomization struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec holds the kind and the scripts.
	// +required
	Spec ResourceInterpreterCustomizationSpec `json:"spec"`
}

// ResourceInterpreterCustomizationList is a list of
// ResourceInterpreterCustomization.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type ResourceInterpreterCustomizationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ResourceInterpreterCustomization `json:"items"`
}

// ResourceInterpreterCustomizationSpec is a kind and its scripts.
type ResourceInterpreterCustomizationSpec struct {
	// Target is the kind that the scripts interpret.
	// +required
	Target CustomizationTarget `json:"target"`

	// Customizations are the scripts, by operation.
	// +required
	Customizations CustomizationRules `json:"customizations"`
}

// CustomizationTarget is the kind that the scripts interpret.
type CustomizationTarget struct {
	// APIVersion of the kind.
	// +required
	APIVersion string `json:"apiVersion"`

	// Kind is the kind.
	// +required
	Kind string `json:"kind"`
}

// CustomizationRules are the scripts by operation. A nil rule leaves the
// operation to the other interpreters.
type CustomizationRules struct {
	// Retention retains the fields that the member cluster manages:
	// Retain(desiredObj, observedObj).
	// +optional
	Retention *LocalValueRetention `json:"retention,omitempty"`

	// ReplicaResource returns the replicas and their requirements: GetReplicas(obj).
	// +optional
	ReplicaResource *ReplicaResourceRequirement `json:"replicaResource,omitempty"`

	// ComponentResource returns the components and their requirements:
	// GetComponents(obj).
	// +optional
	ComponentResource *ComponentResourceRequirement `json:"componentResource,omitempty"`

	// ReplicaRevision sets the number of replicas: ReviseReplica(obj,
	// desiredReplica).
	// +optional
	ReplicaRevision *ReplicaRevision `json:"replicaRevision,omitempty"`

	// StatusReflection returns the status to collect: ReflectStatus(observedObj).
	// +optional
	StatusReflection *StatusReflection `json:"statusReflection,omitempty"`

	// StatusAggregation aggregates the statuses of the members into the template:
	// AggregateStatus(desiredObj, statusItems).
	// +optional
	StatusAggregation *StatusAggregation `json:"statusAggregation,omitempty"`

	// HealthInterpretation reports whether the object is healthy:
	// InterpretHealth(observedObj).
	// +optional
	HealthInterpretation *HealthInterpretation `json:"healthInterpretation,omitempty"`

	// DependencyInterpretation returns the objects that the object refers to:
	// GetDependencies(desiredObj).
	// +optional
	DependencyInterpretation *DependencyInterpretation `json:"dependencyInterpretation,omitempty"`
}

// LocalValueRetention is the script for Retain.
type LocalValueRetention struct {
	// LuaScript is the source of the script.
	// +required
	LuaScript string `json:"luaScript"`
}

// ReplicaResourceRequirement is the script for InterpretReplica.
type ReplicaResourceRequirement struct {
	// LuaScript is the source of the script.
	// +required
	LuaScript string `json:"luaScript"`
}

// ComponentResourceRequirement is the script for InterpretComponent.
type ComponentResourceRequirement struct {
	// LuaScript is the source of the script.
	// +required
	LuaScript string `json:"luaScript"`
}

// ReplicaRevision is the script for ReviseReplica.
type ReplicaRevision struct {
	// LuaScript is the source of the script.
	// +required
	LuaScript string `json:"luaScript"`
}

// StatusReflection is the script for InterpretStatus.
type StatusReflection struct {
	// LuaScript is the source of the script.
	// +required
	LuaScript string `json:"luaScript"`
}

// StatusAggregation is the script for AggregateStatus.
type StatusAggregation struct {
	// LuaScript is the source of the script.
	// +required
	LuaScript string `json:"luaScript"`
}

// HealthInterpretation is the script for InterpretHealth.
type HealthInterpretation struct {
	// LuaScript is the source of the script.
	// +required
	LuaScript string `json:"luaScript"`
}

// DependencyInterpretation is the script for InterpretDependency.
type DependencyInterpretation struct {
	// LuaScript is the source of the script.
	// +required
	LuaScript string `json:"luaScript"`
}

// InterpreterOperation is an operation of an interpreter on an object.
type InterpreterOperation string

// The values of InterpreterOperation.
const (
	// InterpreterOperationAll stands for every operation.
	InterpreterOperationAll                 InterpreterOperation = "*"
	InterpreterOperationInterpretReplica    InterpreterOperation = "InterpretReplica"
	InterpreterOperationInterpretComponent  InterpreterOperation = "InterpretComponent"
	InterpreterOperationReviseReplica       InterpreterOperation = "ReviseReplica"
	InterpreterOperationRetain              InterpreterOperation = "Retain"
	InterpreterOperationAggregateStatus     InterpreterOperation = "AggregateStatus"
	InterpreterOperationInterpretDependency InterpreterOperation = "InterpretDependency"
	InterpreterOperationInterpretStatus     InterpreterOperation = "InterpretStatus"
	InterpreterOperationInterpretHealth     InterpreterOperation = "InterpretHealth"
)

// DependentObjectReference refers to an object that a template needs, by name or
// by labels.
//
// +k8s:deepcopy-gen=true
type DependentObjectReference struct {
	// APIVersion of the object.
	// +required
	APIVersion string `json:"apiVersion"`

	// Kind of the object.
	// +required
	Kind string `json:"kind"`

	// Namespace of the object; empty for cluster-scoped ones.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Name of the object. It cannot be combined with LabelSelector.
	// +optional
	Name string `json:"name,omitempty"`

	// LabelSelector selects objects.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
}
