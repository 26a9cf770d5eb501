package v1alpha2

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
)

// ResourceBinding binds a namespaced template to the clusters to which it is
// propagated.
//
// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=resourcebindings,scope=Namespaced,shortName=rb,categories={karmada-io}
// +kubebuilder:printcolumn:JSONPath=`.status.conditions[?(@.type=="Scheduled")].status`,name="SCHEDULED",type=string
// +kubebuilder:printcolumn:JSONPath=`.status.conditions[?(@.type=="FullyApplied")].status`,name="FULLYAPPLIED",type=string
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name="AGE",type=date
// +kubebuilder:storageversion
type ResourceBinding struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired state.
	// +required
	Spec ResourceBindingSpec `json:"spec"`

	// Status is the observed state.
	// +optional
	Status ResourceBindingStatus `json:"status,omitempty"`
}

// ResourceBindingList is a list of ResourceBinding.
//
// +kubebuilder:resource:path=resourcebindings,shortName=rb,categories={karmada-io}
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type ResourceBindingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ResourceBinding `json:"items"`
}

// ClusterResourceBinding binds a cluster-scoped template to the clusters to which
// it is propagated.
//
// +genclient
// +genclient:nonNamespaced
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=clusterresourcebindings,scope="Cluster",shortName=crb,categories={karmada-io}
// +kubebuilder:printcolumn:JSONPath=`.status.conditions[?(@.type=="Scheduled")].status`,name="SCHEDULED",type=string
// +kubebuilder:printcolumn:JSONPath=`.status.conditions[?(@.type=="FullyApplied")].status`,name="FULLYAPPLIED",type=string
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name="AGE",type=date
// +kubebuilder:storageversion
type ClusterResourceBinding struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired state.
	// +required
	Spec ResourceBindingSpec `json:"spec"`

	// Status is the observed state.
	// +optional
	Status ResourceBindingStatus `json:"status,omitempty"`
}

// ClusterResourceBindingList is a list of ClusterResourceBinding.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type ClusterResourceBindingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterResourceBinding `json:"items"`
}

// ResourceBindingSpec is the desired state of a template in its clusters.
type ResourceBindingSpec struct {
	// Resource refers to the template.
	// +required
	Resource ObjectReference `json:"resource"`

	// PropagateDeps propagates the objects that the template refers to, to the same
	// clusters.
	// +optional
	PropagateDeps bool `json:"propagateDeps,omitempty"`

	// ReplicaRequirements are the requirements of one replica. Nil means none.
	// +optional
	ReplicaRequirements *ReplicaRequirements `json:"replicaRequirements,omitempty"`

	// Replicas is the number of replicas of the template. 0 for objects that have
	// none.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`

	// Components are the parts of a template that has several kinds of pods; it
	// replaces Replicas and ReplicaRequirements.
	// +optional
	Components []Component `json:"components,omitempty"`

	// Clusters is the scheduling result.
	// +optional
	Clusters []TargetCluster `json:"clusters,omitempty"`

	// GracefulEvictionTasks are the evictions in progress. The scheduler does not
	// select their clusters.
	// +optional
	GracefulEvictionTasks []GracefulEvictionTask `json:"gracefulEvictionTasks,omitempty"`

	// RequiredBy lists the bindings whose templates refer to this one.
	// +optional
	RequiredBy []BindingSnapshot `json:"requiredBy,omitempty"`

	// SchedulerName is the name of the scheduler. Empty means default-scheduler.
	// +optional
	SchedulerName string `json:"schedulerName,omitempty"`

	// Placement is the placement of the policy.
	// +optional
	Placement *policyv1alpha1.Placement `json:"placement,omitempty"`

	// Failover is the failover behavior of the policy.
	// +optional
	Failover *policyv1alpha1.FailoverBehavior `json:"failover,omitempty"`

	// ConflictResolution is the conflict resolution of the policy. Default Abort.
	// +kubebuilder:default="Abort"
	// +kubebuilder:validation:Enum=Abort;Overwrite
	// +optional
	ConflictResolution policyv1alpha1.ConflictResolution `json:"conflictResolution,omitempty"`

	// RescheduleTriggeredAt requests rescheduling when it is later than
	// status.lastScheduledTime.
	// +optional
	RescheduleTriggeredAt *metav1.Time `json:"rescheduleTriggeredAt,omitempty"`

	// Suspension suspends scheduling or dispatching. Nil suspends nothing.
	// +optional
	Suspension *Suspension `json:"suspension,omitempty"`

	// PreserveResourcesOnDeletion keeps the objects in member clusters when the
	// template is deleted.
	// +optional
	PreserveResourcesOnDeletion *bool `json:"preserveResourcesOnDeletion,omitempty"`

	// SchedulePriority is the priority of the binding in the scheduler's queue. Nil
	// means 0.
	// +optional
	SchedulePriority *SchedulePriority `json:"schedulePriority,omitempty"`

	// WorkloadAffinityGroups are the affinity groups of the template.
	// +optional
	WorkloadAffinityGroups *WorkloadAffinityGroups `json:"workloadAffinityGroups,omitempty"`
}

// ObjectReference refers to a template.
type ObjectReference struct {
	// APIVersion of the template.
	// +required
	APIVersion string `json:"apiVersion"`

	// Kind of the template.
	// +required
	Kind string `json:"kind"`

	// Namespace of the template; empty for cluster-scoped ones.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Name of the template.
	// +required
	Name string `json:"name"`

	// UID of the template.
	// +optional
	UID types.UID `json:"uid,omitempty"`

	// ResourceVersion of the template when it was last observed.
	// +optional
	ResourceVersion string `json:"resourceVersion,omitempty"`
}

// NodeClaim holds the requirements of a replica on its node.
type NodeClaim struct {
	// HardNodeAffinity is the required node affinity: a node must match one of its
	// terms.
	// +optional
	HardNodeAffinity *corev1.NodeSelector `json:"hardNodeAffinity,omitempty"`

	// NodeSelector are labels that the node must have.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// Tolerations of the replica.
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
}

// ReplicaRequirements are the requirements of one replica.
type ReplicaRequirements struct {
	// NodeClaim holds the requirements of the replica on its node.
	// +optional
	NodeClaim *NodeClaim `json:"nodeClaim,omitempty"`

	// ResourceRequest is the sum of the resource requests of the replica.
	// +optional
	ResourceRequest corev1.ResourceList `json:"resourceRequest,omitempty"`

	// Namespace of the replica, for quotas.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// PriorityClassName of the replica, for quotas.
	// +optional
	PriorityClassName string `json:"priorityClassName,omitempty"`
}

// Component is one part of a template with several kinds of pods.
type Component struct {
	// Name of the component. It is unique in the binding.
	// +kubebuilder:validation:MaxLength=32
	// +required
	Name string `json:"name"`

	// Replicas is the number of replicas of the component.
	// +required
	Replicas int32 `json:"replicas"`

	// ReplicaRequirements are the requirements of one replica.
	// +optional
	ReplicaRequirements *ComponentReplicaRequirements `json:"replicaRequirements,omitempty"`
}

// ComponentReplicaRequirements are the requirements of one replica of a
// component.
type ComponentReplicaRequirements struct {
	// NodeClaim holds the requirements of the replica on its node.
	// +optional
	NodeClaim *NodeClaim `json:"nodeClaim,omitempty"`

	// ResourceRequest is the sum of the resource requests of the replica.
	// +optional
	ResourceRequest corev1.ResourceList `json:"resourceRequest,omitempty"`

	// PriorityClassName of the replica.
	// +optional
	PriorityClassName string `json:"priorityClassName,omitempty"`
}

// TargetCluster is a cluster to which the template is propagated.
type TargetCluster struct {
	// Name of the cluster.
	// +required
	Name string `json:"name"`

	// Replicas is the number of replicas assigned to the cluster; 0 for objects
	// without replicas.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`

	// Components are the components assigned to the cluster, for templates with
	// several.
	// +optional
	Components []TargetComponent `json:"components,omitempty"`
}

// TargetComponent is a component and the number of its replicas assigned to a
// cluster.
type TargetComponent struct {
	// Name of the component.
	// +required
	Name string `json:"name"`

	// Replicas is the number of replicas assigned to the cluster.
	// +required
	Replicas int32 `json:"replicas"`
}

// GracefulEvictionTask is an eviction in progress.
type GracefulEvictionTask struct {
	// FromCluster is the cluster from which the object is evicted.
	// +required
	FromCluster string `json:"fromCluster"`

	// PurgeMode selects how the object is removed from the cluster.
	// +kubebuilder:validation:Enum=Directly;Gracefully;Never
	// +optional
	PurgeMode policyv1alpha1.PurgeMode `json:"purgeMode,omitempty"`

	// Replicas is the number of replicas that were assigned to the cluster.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// Reason of the eviction, one word in CamelCase.
	// +required
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:Pattern=`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`
	Reason string `json:"reason"`

	// Message is a human-readable description of the reason.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`

	// Producer is the controller that created the task.
	// +required
	Producer string `json:"producer"`

	// GracePeriodSeconds is the maximum time before removal, in seconds. Nil means
	// the default of the control plane.
	// +optional
	GracePeriodSeconds *int32 `json:"gracePeriodSeconds,omitempty"`

	// SuppressDeletion true keeps the object in the cluster until it is set to
	// false.
	// +optional
	SuppressDeletion *bool `json:"suppressDeletion,omitempty"`

	// PreservedLabelState is the preserved state, added as labels to the object in
	// its new cluster.
	// +optional
	PreservedLabelState map[string]string `json:"preservedLabelState,omitempty"`

	// CreationTimestamp is when the task was created. The control plane sets it.
	// +optional
	CreationTimestamp *metav1.Time `json:"creationTimestamp,omitempty"`

	// ClustersBeforeFailover are the clusters of the binding before the failure.
	// +optional
	ClustersBeforeFailover []string `json:"clustersBeforeFailover,omitempty"`
}

// BindingSnapshot refers to another binding and holds its clusters.
type BindingSnapshot struct {
	// Namespace of the binding.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Name of the binding.
	// +required
	Name string `json:"name"`

	// Clusters of the binding.
	// +optional
	Clusters []TargetCluster `json:"clusters,omitempty"`
}

// Suspension suspends parts of the propagation of a binding.
type Suspension struct {
	policyv1alpha1.Suspension `json:",inline"`

	// Scheduling true suspends scheduling of the binding.
	// +optional
	Scheduling *bool `json:"scheduling,omitempty"`
}

// SchedulePriority is a priority in the scheduler's queue.
type SchedulePriority struct {
	// Priority of the binding; the highest is scheduled first. Default 0.
	// +kubebuilder:default=0
	// +optional
	Priority int32 `json:"priority,omitempty"`
}

// WorkloadAffinityGroups are the affinity groups of a template, each in the form
// key=value.
type WorkloadAffinityGroups struct {
	// AffinityGroup is the group whose clusters the template is scheduled to.
	// +optional
	AffinityGroup string `json:"affinityGroup,omitempty"`

	// AntiAffinityGroup is the group whose clusters are excluded.
	// +optional
	AntiAffinityGroup string `json:"antiAffinityGroup,omitempty"`
}

// ResourceBindingStatus is the observed state of a binding.
type ResourceBindingStatus struct {
	// SchedulerObservedGeneration is the generation that the scheduler observed
	// last.
	// +optional
	SchedulerObservedGeneration int64 `json:"schedulerObservedGeneration,omitempty"`

	// SchedulerObservedAffinityName is the affinity term in use.
	// +optional
	SchedulerObservedAffinityName string `json:"schedulerObservingAffinityName,omitempty"`

	// LastScheduledTime is the time of the last successful scheduling.
	// +optional
	LastScheduledTime *metav1.Time `json:"lastScheduledTime,omitempty"`

	// Conditions of the binding: Scheduled and FullyApplied.
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// AggregatedStatus is the status by cluster.
	// +optional
	AggregatedStatus []AggregatedStatusItem `json:"aggregatedStatus,omitempty"`
}

// AggregatedStatusItem is the status in one cluster.
type AggregatedStatusItem struct {
	// ClusterName names the cluster.
	// +required
	ClusterName string `json:"clusterName"`

	// Status of the object in the cluster, as returned by the interpreter.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Status *runtime.RawExtension `json:"status,omitempty"`

	// Applied reports whether the object in the cluster has its desired state.
	// +optional
	Applied bool `json:"applied,omitempty"`

	// AppliedMessage is the reason when Applied is false.
	// +optional
	AppliedMessage string `json:"appliedMessage,omitempty"`

	// Health of the object in the cluster.
	// +kubebuilder:validation:Enum=Healthy;Unhealthy;Unknown
	// +optional
	Health ResourceHealth `json:"health,omitempty"`
}

// ResourceHealth is the health of an object.
type ResourceHealth string

// The values of ResourceHealth.
const (
	ResourceHealthy   ResourceHealth = "Healthy"
	ResourceUnhealthy ResourceHealth = "Unhealthy"
	ResourceUnknown   ResourceHealth = "Unknown"
)
