package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterTaintPolicy adds taints to clusters, and removes them, depending on the
// conditions of the clusters.
//
// +genclient
// +genclient:nonNamespaced
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=clustertaintpolicies,scope="Cluster"
type ClusterTaintPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec holds the conditions and taints.
	// +required
	Spec ClusterTaintPolicySpec `json:"spec"`
}

// ClusterTaintPolicyList is a list of ClusterTaintPolicy.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type ClusterTaintPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterTaintPolicy `json:"items"`
}

// ClusterTaintPolicySpec is the spec of a ClusterTaintPolicy.
type ClusterTaintPolicySpec struct {
	// TargetClusters selects the clusters. Nil selects all.
	// +optional
	TargetClusters *ClusterAffinity `json:"targetClusters,omitempty"`

	// AddOnConditions must all hold for the taints to be added. Empty means never.
	// +optional
	AddOnConditions []MatchCondition `json:"addOnConditions,omitempty"`

	// RemoveOnConditions must all hold for the taints to be removed. Empty means
	// never.
	// +optional
	RemoveOnConditions []MatchCondition `json:"removeOnConditions,omitempty"`

	// Taints to add or remove. They are identified by key and effect.
	// +kubebuilder:validation:MinItems=1
	// +required
	Taints []Taint `json:"taints"`
}

// MatchConditionOperator compares the status of a condition with values.
type MatchConditionOperator string

// The values of MatchConditionOperator.
const (
	MatchConditionOpIn    MatchConditionOperator = "In"
	MatchConditionOpNotIn MatchConditionOperator = "NotIn"
)

// MatchCondition is a requirement on a condition of a cluster. A condition that
// the cluster does not have never matches.
type MatchCondition struct {
	// ConditionType names the condition.
	// +required
	ConditionType string `json:"conditionType"`

	// Operator is In or NotIn.
	// +required
	Operator MatchConditionOperator `json:"operator"`

	// StatusValues are the values that the status of the condition is compared with.
	// +required
	StatusValues []metav1.ConditionStatus `json:"statusValues"`
}

// Taint is a taint to add to clusters.
type Taint struct {
	// Key of the taint.
	// +required
	Key string `json:"key"`

	// Effect of the taint: NoSchedule or NoExecute.
	// +required
	Effect corev1.TaintEffect `json:"effect"`

	// Value of the taint.
	// +optional
	Value string `json:"value,omitempty"`
}
