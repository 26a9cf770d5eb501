package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Remedy requests actions on clusters depending on their conditions.
//
// +genclient
// +genclient:nonNamespaced
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=remedies,scope="Cluster",categories={karmada-io}
type Remedy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec holds the conditions and actions.
	// +required
	Spec RemedySpec `json:"spec"`
}

// RemedyList is a list of Remedy.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type RemedyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Remedy `json:"items"`
}

// RemedySpec is the spec of a Remedy.
type RemedySpec struct {
	// ClusterAffinity selects the clusters. Nil selects all.
	// +optional
	ClusterAffinity *ClusterAffinity `json:"clusterAffinity,omitempty"`

	// DecisionMatches define when the actions are requested: one match is enough.
	// Nil means always.
	// +optional
	DecisionMatches []DecisionMatch `json:"decisionMatches,omitempty"`

	// Actions are the requested actions.
	// +optional
	Actions []RemedyAction `json:"actions,omitempty"`
}

// DecisionMatch is a requirement for the actions.
type DecisionMatch struct {
	// ClusterConditionMatch is a requirement on a condition of the cluster.
	// +optional
	ClusterConditionMatch *ClusterConditionRequirement `json:"clusterConditionMatch,omitempty"`
}

// ConditionType names a condition of a cluster.
type ConditionType string

// ClusterConditionOperator compares the status of a condition.
type ClusterConditionOperator string

// The values of ClusterConditionOperator.
const (
	ClusterConditionEqual    ClusterConditionOperator = "Equal"
	ClusterConditionNotEqual ClusterConditionOperator = "NotEqual"
)

// ClusterConditionRequirement is a requirement on a condition of a cluster.
type ClusterConditionRequirement struct {
	// ConditionType names the condition.
	// +required
	ConditionType ConditionType `json:"conditionType"`

	// Operator is Equal or NotEqual.
	// +kubebuilder:validation:Enum=Equal;NotEqual
	// +required
	Operator ClusterConditionOperator `json:"operator"`

	// ConditionStatus is the value that the status of the condition is compared
	// with.
	// +required
	ConditionStatus string `json:"conditionStatus"`
}

// ClusterAffinity selects clusters by name.
type ClusterAffinity struct {
	// ClusterNames are the names of the clusters. Empty selects none.
	// +optional
	ClusterNames []string `json:"clusterNames,omitempty"`
}

// RemedyAction is an action on a cluster.
type RemedyAction string

// TrafficControl stops traffic to the cluster.
const TrafficControl RemedyAction = "TrafficControl"
