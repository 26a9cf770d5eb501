package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Placement says which clusters an object may go to and how its replicas are
// shared between them. The zero value selects every cluster and gives each the
// whole object.
type Placement struct {
	// ClusterAffinity restricts the candidate clusters. Nil admits every cluster.
	// It cannot be combined with ClusterAffinities.
	// +optional
	ClusterAffinity *ClusterAffinity `json:"clusterAffinity,omitempty"`

	// ClusterAffinities are alternatives, tried in order: the first term for which
	// scheduling succeeds is used. It cannot be combined with ClusterAffinity.
	// +optional
	ClusterAffinities []ClusterAffinityTerm `json:"clusterAffinities,omitempty"`

	// ClusterTolerations let the object onto clusters that carry matching taints.
	// Only the effects NoSchedule and NoExecute matter to the scheduler.
	// +optional
	ClusterTolerations []corev1.Toleration `json:"clusterTolerations,omitempty"`

	// SpreadConstraints bound the number of clusters, regions, zones or providers
	// that are used.
	// +optional
	SpreadConstraints []SpreadConstraint `json:"spreadConstraints,omitempty"`

	// ReplicaScheduling says how the replicas of a workload are shared. Nil means
	// that every selected cluster gets all of them.
	// +optional
	ReplicaScheduling *ReplicaSchedulingStrategy `json:"replicaScheduling,omitempty"`

	// WorkloadAffinity places workloads relative to other workloads of the same
	// namespace. It needs the feature gate WorkloadAffinity.
	// +optional
	WorkloadAffinity *WorkloadAffinity `json:"workloadAffinity,omitempty"`
}

// ClusterAffinity is a filter on clusters. All parts that are set must match.
type ClusterAffinity struct {
	// LabelSelector filters by the labels of the Cluster object. Nil and the empty
	// selector match every cluster.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`

	// FieldSelector filters by provider, region and zone of the cluster.
	// +optional
	FieldSelector *FieldSelector `json:"fieldSelector,omitempty"`

	// ClusterNames lists the clusters that may be selected. Empty means no
	// restriction by name.
	// +optional
	ClusterNames []string `json:"clusterNames,omitempty"`

	// ExcludeClusters lists clusters that are never selected.
	// +optional
	ExcludeClusters []string `json:"exclude,omitempty"`
}

// FieldSelector filters clusters by fields of their spec.
type FieldSelector struct {
	// MatchExpressions are requirements on the keys provider, region and zone with
	// the operators In and NotIn. All of them must hold.
	// +optional
	MatchExpressions []corev1.NodeSelectorRequirement `json:"matchExpressions,omitempty"`
}

// ClusterAffinityTerm is one named alternative of ClusterAffinities.
type ClusterAffinityTerm struct {
	// AffinityName identifies the term. It is unique in its policy.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +required
	AffinityName string `json:"affinityName"`

	ClusterAffinity `json:",inline"`

	// OverflowAffinities are further tiers of clusters. Replicas that do not fit
	// the clusters of this term go to them, in order.
	// +optional
	OverflowAffinities []OverflowAffinityTerm `json:"overflowAffinities,omitempty"`
}

// OverflowAffinityTerm is one tier of clusters that takes the replicas which did
// not fit the tiers before it.
type OverflowAffinityTerm struct {
	// AffinityName identifies the tier. It is unique within its term and differs
	// from the name of the term.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +required
	AffinityName string `json:"affinityName"`

	ClusterAffinity `json:",inline"`
}

// SpreadFieldValue names a field of a Cluster by which clusters are grouped.
type SpreadFieldValue string

// The fields by which clusters can be grouped.
const (
	SpreadByFieldCluster  SpreadFieldValue = "cluster"
	SpreadByFieldRegion   SpreadFieldValue = "region"
	SpreadByFieldZone     SpreadFieldValue = "zone"
	SpreadByFieldProvider SpreadFieldValue = "provider"
)

// SpreadConstraint bounds how many groups of clusters are selected.
type SpreadConstraint struct {
	// SpreadByField groups clusters by a field of the Cluster. It cannot be
	// combined with SpreadByLabel; when both are empty it is set to cluster.
	// +kubebuilder:validation:Enum=cluster;region;zone;provider
	// +optional
	SpreadByField SpreadFieldValue `json:"spreadByField,omitempty"`

	// SpreadByLabel groups clusters by the value of a label.
	// +optional
	SpreadByLabel string `json:"spreadByLabel,omitempty"`

	// MaxGroups is the largest number of groups to select.
	// +optional
	MaxGroups int `json:"maxGroups,omitempty"`

	// MinGroups is the smallest number of groups to select. Admission turns 0
	// into 1.
	// +optional
	MinGroups int `json:"minGroups,omitempty"`
}

// ReplicaSchedulingType says whether clusters share replicas or each get all.
type ReplicaSchedulingType string

// The values of ReplicaSchedulingType.
const (
	// ReplicaSchedulingTypeDuplicated gives every cluster all replicas.
	ReplicaSchedulingTypeDuplicated ReplicaSchedulingType = "Duplicated"
	// ReplicaSchedulingTypeDivided shares the replicas between the clusters.
	ReplicaSchedulingTypeDivided ReplicaSchedulingType = "Divided"
)

// ReplicaDivisionPreference says how divided replicas are shared.
type ReplicaDivisionPreference string

// The values of ReplicaDivisionPreference.
const (
	// ReplicaDivisionPreferenceAggregated uses as few clusters as possible.
	ReplicaDivisionPreferenceAggregated ReplicaDivisionPreference = "Aggregated"
	// ReplicaDivisionPreferenceWeighted shares by the weights of WeightPreference.
	ReplicaDivisionPreferenceWeighted ReplicaDivisionPreference = "Weighted"
)

// ReplicaSchedulingStrategy says how the replicas of a workload are shared.
type ReplicaSchedulingStrategy struct {
	// ReplicaSchedulingType is Duplicated or Divided.
	// +kubebuilder:validation:Enum=Duplicated;Divided
	// +kubebuilder:default=Divided
	// +optional
	ReplicaSchedulingType ReplicaSchedulingType `json:"replicaSchedulingType,omitempty"`

	// ReplicaDivisionPreference matters for Divided only; admission sets Weighted
	// when it is empty.
	// +kubebuilder:validation:Enum=Aggregated;Weighted
	// +optional
	ReplicaDivisionPreference ReplicaDivisionPreference `json:"replicaDivisionPreference,omitempty"`

	// WeightPreference holds the weights for the preference Weighted. Nil gives
	// every cluster the same weight.
	// +optional
	WeightPreference *ClusterPreferences `json:"weightPreference,omitempty"`
}

// DynamicWeightFactor names what dynamic weights are made of.
type DynamicWeightFactor string

// DynamicWeightByAvailableReplicas weighs a cluster by the number of replicas
// that it could still take.
const DynamicWeightByAvailableReplicas DynamicWeightFactor = "AvailableReplicas"

// ClusterPreferences are the weights of clusters.
type ClusterPreferences struct {
	// StaticWeightList gives fixed weights. Clusters that no entry matches get
	// nothing, unless no entry matches any cluster.
	// +optional
	StaticWeightList []StaticClusterWeight `json:"staticWeightList,omitempty"`

	// DynamicWeight computes the weights when scheduling; it replaces
	// StaticWeightList.
	// +kubebuilder:validation:Enum=AvailableReplicas
	// +optional
	DynamicWeight DynamicWeightFactor `json:"dynamicWeight,omitempty"`
}

// StaticClusterWeight is the weight of the clusters it selects.
type StaticClusterWeight struct {
	// TargetCluster selects the clusters.
	// +required
	TargetCluster ClusterAffinity `json:"targetCluster"`

	// Weight of each selected cluster. The largest matching weight counts.
	// +kubebuilder:validation:Minimum=1
	// +required
	Weight int64 `json:"weight"`
}

// WorkloadAffinity relates a workload to other workloads of its namespace.
type WorkloadAffinity struct {
	// Affinity draws the workload to clusters that its group already uses.
	// +optional
	Affinity *WorkloadAffinityTerm `json:"affinity,omitempty"`

	// AntiAffinity keeps the workload off clusters that its group already uses.
	// +optional
	AntiAffinity *WorkloadAntiAffinityTerm `json:"antiAffinity,omitempty"`
}

// WorkloadAffinityTerm forms an affinity group.
type WorkloadAffinityTerm struct {
	// GroupByLabelKey is the label of the template whose value names the group.
	// +required
	GroupByLabelKey string `json:"groupByLabelKey"`
}

// WorkloadAntiAffinityTerm forms an anti-affinity group.
type WorkloadAntiAffinityTerm struct {
	// GroupByLabelKey is the label of the template whose value names the group.
	// +required
	GroupByLabelKey string `json:"groupByLabelKey"`
}
