package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PropagationPolicy sends objects of its namespace to clusters.
//
// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:subresource:none
// +kubebuilder:resource:path=propagationpolicies,scope=Namespaced,shortName=pp,categories={karmada-io}
// +kubebuilder:printcolumn:JSONPath=`.spec.conflictResolution`,name="CONFLICT-RESOLUTION",type=string
// +kubebuilder:printcolumn:JSONPath=`.spec.priority`,name="PRIORITY",type=string
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name="AGE",type=date
type PropagationPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says what goes where.
	// +required
	Spec PropagationSpec `json:"spec"`
}

// PropagationPolicyList is a list of PropagationPolicy.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type PropagationPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PropagationPolicy `json:"items"`
}

// ClusterPropagationPolicy sends cluster-scoped objects, and objects of any
// namespace that is not reserved, to clusters.
//
// +genclient
// +genclient:nonNamespaced
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=clusterpropagationpolicies,scope="Cluster",shortName=cpp,categories={karmada-io}
// +kubebuilder:printcolumn:JSONPath=`.spec.conflictResolution`,name="CONFLICT-RESOLUTION",type=string
// +kubebuilder:printcolumn:JSONPath=`.spec.priority`,name="PRIORITY",type=string
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name="AGE",type=date
type ClusterPropagationPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says what goes where.
	// +required
	Spec PropagationSpec `json:"spec"`
}

// ClusterPropagationPolicyList is a list of ClusterPropagationPolicy.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type ClusterPropagationPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterPropagationPolicy `json:"items"`
}

// PropagationSpec is the body of both kinds of propagation policy.
type PropagationSpec struct {
	// ResourceSelectors select the objects. An object that matches any of them is
	// selected.
	// +kubebuilder:validation:MinItems=1
	// +required
	ResourceSelectors []ResourceSelector `json:"resourceSelectors"`

	// Association is deprecated and ignored; use PropagateDeps.
	// +optional
	Association bool `json:"association,omitempty"`

	// PropagateDeps sends what the objects refer to (ConfigMaps, Secrets, …) to
	// the same clusters. Default false.
	// +optional
	PropagateDeps bool `json:"propagateDeps,omitempty"`

	// Placement says which clusters are used and how replicas are shared.
	// +optional
	Placement Placement `json:"placement,omitempty"`

	// Priority decides between policies of the same kind that select the same
	// object: the highest wins. Default 0.
	// +kubebuilder:default=0
	// +optional
	Priority *int32 `json:"priority,omitempty"`

	// Preemption says whether this policy takes over objects that a policy of
	// lower priority has already claimed. It needs the feature gate
	// PropagationPolicyPreemption.
	// +kubebuilder:default="Never"
	// +kubebuilder:validation:Enum=Always;Never
	// +optional
	Preemption PreemptionBehavior `json:"preemption,omitempty"`

	// DependentOverrides names override policies that must exist before the policy
	// takes effect: in its own namespace for a PropagationPolicy, cluster-wide for
	// a ClusterPropagationPolicy.
	// +optional
	DependentOverrides []string `json:"dependentOverrides,omitempty"`

	// SchedulerName names the scheduler in charge. It cannot be changed.
	// +kubebuilder:default="default-scheduler"
	// +optional
	SchedulerName string `json:"schedulerName,omitempty"`

	// Failover says what happens when the object or its cluster fails. Nil
	// disables it.
	// +optional
	Failover *FailoverBehavior `json:"failover,omitempty"`

	// ConflictResolution says what happens to an object that already exists in a
	// member cluster: Abort leaves it alone, Overwrite takes it over.
	// +kubebuilder:default="Abort"
	// +kubebuilder:validation:Enum=Abort;Overwrite
	// +optional
	ConflictResolution ConflictResolution `json:"conflictResolution,omitempty"`

	// ActivationPreference says when a changed policy takes effect: empty means at
	// once, Lazy means with the next change of each object.
	// +kubebuilder:validation:Enum=Lazy
	// +optional
	ActivationPreference ActivationPreference `json:"activationPreference,omitempty"`

	// Suspension stops parts of the propagation. Nil suspends nothing.
	// +optional
	Suspension *Suspension `json:"suspension,omitempty"`

	// PreserveResourcesOnDeletion keeps the objects in member clusters when the
	// template is deleted. Default false.
	// +optional
	PreserveResourcesOnDeletion *bool `json:"preserveResourcesOnDeletion,omitempty"`

	// SchedulePriority is the priority of the selected objects in the scheduler's
	// queue. Nil means 0.
	// +optional
	SchedulePriority *SchedulePriority `json:"schedulePriority,omitempty"`
}

// ResourceSelector selects objects of one kind.
type ResourceSelector struct {
	// APIVersion of the objects; it must be the version that the control plane
	// prefers.
	// +required
	APIVersion string `json:"apiVersion"`

	// Kind of the objects.
	// +required
	Kind string `json:"kind"`

	// Namespace of the objects. Empty means the namespace of the policy, or any
	// namespace in a cluster-scoped policy.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Name of the object. When it is set, LabelSelector is ignored.
	// +optional
	Name string `json:"name,omitempty"`

	// LabelSelector filters by labels. Nil selects every object of the kind.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
}

// PreemptionBehavior says whether a policy preempts others.
type PreemptionBehavior string

// The values of PreemptionBehavior.
const (
	PreemptAlways PreemptionBehavior = "Always"
	PreemptNever  PreemptionBehavior = "Never"
)

// ConflictResolution says how conflicts with existing objects are resolved.
type ConflictResolution string

// The values of ConflictResolution.
const (
	ConflictOverwrite ConflictResolution = "Overwrite"
	ConflictAbort     ConflictResolution = "Abort"
)

// ActivationPreference says when a policy change takes effect.
type ActivationPreference string

// LazyActivation defers a policy change to the next change of each object.
const LazyActivation ActivationPreference = "Lazy"

// Suspension stops parts of the propagation.
type Suspension struct {
	// Dispatching true stops the propagation to every cluster.
	// +optional
	Dispatching *bool `json:"dispatching,omitempty"`

	// DispatchingOnClusters stops the propagation to some clusters. It cannot be
	// combined with Dispatching.
	// +optional
	DispatchingOnClusters *SuspendClusters `json:"dispatchingOnClusters,omitempty"`
}

// SuspendClusters lists clusters.
type SuspendClusters struct {
	// ClusterNames are the names of the clusters.
	// +optional
	ClusterNames []string `json:"clusterNames,omitempty"`
}

// PriorityClassSource names where a priority class is looked up.
type PriorityClassSource string

// KubePriorityClass means the PriorityClass objects of the control plane.
const KubePriorityClass PriorityClassSource = "KubePriorityClass"

// SchedulePriority refers to a priority class.
type SchedulePriority struct {
	// PriorityClassSource says where the class is looked up.
	// +kubebuilder:validation:Enum=KubePriorityClass
	// +required
	PriorityClassSource PriorityClassSource `json:"priorityClassSource"`

	// PriorityClassName is the name of the class.
	// +required
	PriorityClassName string `json:"priorityClassName"`
}

// PurgeMode says how an object is removed from a cluster that failed.
type PurgeMode string

// The values of PurgeMode.
const (
	// PurgeModeDirectly removes the object before it is created elsewhere.
	PurgeModeDirectly PurgeMode = "Directly"
	// PurgeModeGracefully removes it when it is healthy elsewhere, or after a grace
	// period.
	PurgeModeGracefully PurgeMode = "Gracefully"
	// PurgeModeNever leaves it until a user asks for its removal.
	PurgeModeNever PurgeMode = "Never"
)

// FailoverBehavior says what happens on failures.
type FailoverBehavior struct {
	// Application is the reaction to an unhealthy object. Nil means none.
	// +optional
	Application *ApplicationFailoverBehavior `json:"application,omitempty"`

	// Cluster is the reaction to a failed cluster. Nil means the defaults of the
	// control plane.
	// +optional
	Cluster *ClusterFailoverBehavior `json:"cluster,omitempty"`
}

// ApplicationFailoverBehavior is the reaction to an unhealthy object.
type ApplicationFailoverBehavior struct {
	// DecisionConditions say when the object is moved.
	// +required
	DecisionConditions DecisionConditions `json:"decisionConditions"`

	// PurgeMode says how the object leaves its cluster.
	// +kubebuilder:validation:Enum=Directly;Gracefully;Never
	// +kubebuilder:default=Gracefully
	// +optional
	PurgeMode PurgeMode `json:"purgeMode,omitempty"`

	// GracePeriodSeconds is the longest wait before removal, in seconds, for the
	// mode Gracefully. Admission sets 600.
	// +optional
	GracePeriodSeconds *int32 `json:"gracePeriodSeconds,omitempty"`

	// StatePreservation carries parts of the object's status to its new cluster.
	// +optional
	StatePreservation *StatePreservation `json:"statePreservation,omitempty"`
}

// DecisionConditions say when an unhealthy object is moved.
type DecisionConditions struct {
	// TolerationSeconds is how long the object may be unhealthy, in seconds.
	// +kubebuilder:default=300
	// +optional
	TolerationSeconds *int32 `json:"tolerationSeconds,omitempty"`
}

// ClusterFailoverBehavior is the reaction to a failed cluster.
type ClusterFailoverBehavior struct {
	// PurgeMode says how objects leave the cluster.
	// +kubebuilder:validation:Enum=Directly;Gracefully
	// +kubebuilder:default=Gracefully
	// +optional
	PurgeMode PurgeMode `json:"purgeMode,omitempty"`

	// StatePreservation carries parts of each object's status to its new cluster.
	// +optional
	StatePreservation *StatePreservation `json:"statePreservation,omitempty"`
}

// StatePreservation lists parts of a status to keep.
type StatePreservation struct {
	// Rules name the parts.
	// +required
	Rules []StatePreservationRule `json:"rules"`
}

// StatePreservationRule keeps one value of a status.
type StatePreservationRule struct {
	// AliasLabelName is the label that carries the value in the new cluster.
	// +required
	AliasLabelName string `json:"aliasLabelName"`

	// JSONPath locates the value in the status, in the syntax of kubectl, such as
	// "{ .replicas }".
	// +required
	JSONPath string `json:"jsonPath"`
}
