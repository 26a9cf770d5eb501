package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PropagationPolicy propagates objects of its namespace to clusters.
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

	// Spec selects the objects and the clusters to which they are propagated.
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

// ClusterPropagationPolicy propagates cluster-scoped objects, and objects of any
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

	// Spec selects the objects and the clusters to which they are propagated.
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

// PropagationSpec is the spec of both kinds of propagation policy.
type PropagationSpec struct {
	// ResourceSelectors select the objects. An object that matches any of them is
	// selected.
	// +kubebuilder:validation:MinItems=1
	// +required
	ResourceSelectors []ResourceSelector `json:"resourceSelectors"`

	// Association is deprecated and ignored; use PropagateDeps.
	// +optional
	Association bool `json:"association,omitempty"`

	// PropagateDeps propagates the objects that the selected objects refer to
	// (ConfigMaps, Secrets, …) to the same clusters. Default false.
	// +optional
	PropagateDeps bool `json:"propagateDeps,omitempty"`

	// Placement selects the clusters and how replicas are divided among them.
	// +optional
	Placement Placement `json:"placement,omitempty"`

	// Priority orders the policies of the same kind that select the same object: the
	// one with the highest value applies. Default 0.
	// +kubebuilder:default=0
	// +optional
	Priority *int32 `json:"priority,omitempty"`

	// Preemption is Always if this policy takes over objects that a policy of lower
	// priority has claimed, or Never. Default Never. It requires the feature gate
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

	// SchedulerName is the name of the scheduler. It is immutable. Default
	// default-scheduler.
	// +kubebuilder:default="default-scheduler"
	// +optional
	SchedulerName string `json:"schedulerName,omitempty"`

	// Failover defines what happens when the object is unhealthy or its cluster
	// fails. Nil disables it.
	// +optional
	Failover *FailoverBehavior `json:"failover,omitempty"`

	// ConflictResolution defines what happens to an object that already exists in a
	// member cluster: Abort leaves it unchanged, Overwrite takes it over. Default
	// Abort.
	// +kubebuilder:default="Abort"
	// +kubebuilder:validation:Enum=Abort;Overwrite
	// +optional
	ConflictResolution ConflictResolution `json:"conflictResolution,omitempty"`

	// ActivationPreference defines when a changed policy takes effect: empty means
	// immediately, Lazy means with the next change of each object.
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

// PreemptionBehavior selects whether a policy preempts others.
type PreemptionBehavior string

// The values of PreemptionBehavior.
const (
	PreemptAlways PreemptionBehavior = "Always"
	PreemptNever  PreemptionBehavior = "Never"
)

// ConflictResolution selects how conflicts with existing objects are resolved.
type ConflictResolution string

// The values of ConflictResolution.
const (
	ConflictOverwrite ConflictResolution = "Overwrite"
	ConflictAbort     ConflictResolution = "Abort"
)

// ActivationPreference selects when a policy change takes effect.
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

// PriorityClassSource is the source of priority classes.
type PriorityClassSource string

// KubePriorityClass means the PriorityClass objects of the control plane.
const KubePriorityClass PriorityClassSource = "KubePriorityClass"

// SchedulePriority refers to a priority class.
type SchedulePriority struct {
	// PriorityClassSource is the source of the class: KubePriorityClass.
	// +kubebuilder:validation:Enum=KubePriorityClass
	// +required
	PriorityClassSource PriorityClassSource `json:"priorityClassSource"`

	// PriorityClassName is the name of the class.
	// +required
	PriorityClassName string `json:"priorityClassName"`
}

// PurgeMode selects how an object is removed from a cluster that it is evicted
// from.
type PurgeMode string

// The values of PurgeMode.
const (
	// PurgeModeDirectly removes the object before it is created elsewhere.
	PurgeModeDirectly PurgeMode = "Directly"
	// PurgeModeGracefully removes the object when it is healthy elsewhere, or after
	// a grace period.
	PurgeModeGracefully PurgeMode = "Gracefully"
	// PurgeModeNever keeps the object until a user requests its removal.
	PurgeModeNever PurgeMode = "Never"
)

// FailoverBehavior defines the reaction to failures.
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
	// DecisionConditions define when the object is evicted.
	// +required
	DecisionConditions DecisionConditions `json:"decisionConditions"`

	// PurgeMode selects how the object is removed from the cluster. Default
	// Gracefully.
	// +kubebuilder:validation:Enum=Directly;Gracefully;Never
	// +kubebuilder:default=Gracefully
	// +optional
	PurgeMode PurgeMode `json:"purgeMode,omitempty"`

	// GracePeriodSeconds is the maximum time before removal, in seconds, for the
	// mode Gracefully. Default 600, set by admission.
	// +optional
	GracePeriodSeconds *int32 `json:"gracePeriodSeconds,omitempty"`

	// StatePreservation copies parts of the object's status to its new cluster, as
	// labels.
	// +optional
	StatePreservation *StatePreservation `json:"statePreservation,omitempty"`
}

// DecisionConditions define when an unhealthy object is evicted.
type DecisionConditions struct {
	// TolerationSeconds is how long the object may be unhealthy, in seconds. Default
	// 300.
	// +kubebuilder:default=300
	// +optional
	TolerationSeconds *int32 `json:"tolerationSeconds,omitempty"`
}

// ClusterFailoverBehavior is the reaction to a failed cluster.
type ClusterFailoverBehavior struct {
	// PurgeMode selects how objects are removed from the cluster. Default
	// Gracefully.
	// +kubebuilder:validation:Enum=Directly;Gracefully
	// +kubebuilder:default=Gracefully
	// +optional
	PurgeMode PurgeMode `json:"purgeMode,omitempty"`

	// StatePreservation copies parts of each object's status to its new cluster, as
	// labels.
	// +optional
	StatePreservation *StatePreservation `json:"statePreservation,omitempty"`
}

// StatePreservation lists parts of a status to preserve.
type StatePreservation struct {
	// Rules select the parts.
	// +required
	Rules []StatePreservationRule `json:"rules"`
}

// StatePreservationRule preserves one value of a status.
type StatePreservationRule struct {
	// AliasLabelName is the name of the label that has the value in the new cluster.
	// +required
	AliasLabelName string `json:"aliasLabelName"`

	// JSONPath locates the value in the status, such as "{ .replicas }": text, and
	// in braces fields and indexes, as in "{.jobs[0].id}" and "{.jobs['a']}". It has at
	// most 1,024 bytes. Unions, wildcards, "..", ranges, filters and quoted text, which
	// the JSONPaths of kubectl have, are refused.
	// +required
	JSONPath string `json:"jsonPath"`
}

// Labels and annotations that link a template and its binding to the policy that
// claimed it.
const (
	// PropagationPolicyPermanentIDLabel holds the id of a PropagationPolicy, on the
	// policy and on what it claimed.
	PropagationPolicyPermanentIDLabel = "propagationpolicy.karmada.io/permanent-id"
	// ClusterPropagationPolicyPermanentIDLabel holds the id of a
	// ClusterPropagationPolicy, on the policy and on what it claimed.
	ClusterPropagationPolicyPermanentIDLabel = "clusterpropagationpolicy.karmada.io/permanent-id"
	// PropagationPolicyNamespaceAnnotation holds the namespace of the claiming
	// PropagationPolicy.
	PropagationPolicyNamespaceAnnotation = "propagationpolicy.karmada.io/namespace"
	// PropagationPolicyNameAnnotation holds the name of the claiming
	// PropagationPolicy.
	PropagationPolicyNameAnnotation = "propagationpolicy.karmada.io/name"
	// ClusterPropagationPolicyAnnotation holds the name of the claiming
	// ClusterPropagationPolicy.
	ClusterPropagationPolicyAnnotation = "clusterpropagationpolicy.karmada.io/name"
	// NamespaceSkipAutoPropagationLabel set to "true" (in any case) on a Namespace
	// excludes it from automatic propagation to the member clusters.
	NamespaceSkipAutoPropagationLabel = "namespace.karmada.io/skip-auto-propagation"
)

// Annotations that record what the scheduler and the binding controller used.
const (
	// AppliedPlacementAnnotation holds the placement, as JSON, that the scheduler
	// used last.
	AppliedPlacementAnnotation = "policy.karmada.io/applied-placement"
	// AppliedOverridesAnnotation lists the OverridePolicies applied to a Work.
	AppliedOverridesAnnotation = "policy.karmada.io/applied-overrides"
	// AppliedClusterOverridesAnnotation lists the ClusterOverridePolicies applied
	// to a Work.
	AppliedClusterOverridesAnnotation = "policy.karmada.io/applied-cluster-overrides"
)

// Finalizers of the propagation policies.
const (
	PropagationPolicyFinalizer        = "karmada.io/propagation-policy-controller"
	ClusterPropagationPolicyFinalizer = "karmada.io/cluster-propagation-policy-controller"
)

// DefaultSchedulerName is the default of schedulerName.
const DefaultSchedulerName = "default-scheduler"
