package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Placement selects the clusters of an object and how its replicas are divided
// among them. The zero value selects every cluster and assigns all replicas to
// each.
type Placement struct {
	// ClusterAffinity restricts the candidate clusters. Nil admits every cluster.
	// It cannot be combined with ClusterAffinities.
	// +optional
	ClusterAffinity *ClusterAffinity `json:"clusterAffinity,omitempty"`

	// ClusterAffinities are alternatives, tried in order: the first term for which
	// scheduling succeeds is used. It cannot be combined with ClusterAffinity.
	// +optional
	ClusterAffinities []ClusterAffinityTerm `json:"clusterAffinities,omitempty"`

	// ClusterTolerations allow scheduling to clusters with matching taints. The
	// scheduler considers only the effects NoSchedule and NoExecute.
	// +optional
	ClusterTolerations []corev1.Toleration `json:"clusterTolerations,omitempty"`

	// SpreadConstraints limit the number of clusters, regions, zones or providers
	// that are selected.
	// +optional
	SpreadConstraints []SpreadConstraint `json:"spreadConstraints,omitempty"`

	// ReplicaScheduling defines how the replicas of a workload are divided among the
	// clusters. Nil means that all replicas are assigned to every selected cluster.
	// +optional
	ReplicaScheduling *ReplicaSchedulingStrategy `json:"replicaScheduling,omitempty"`

	// WorkloadAffinity places workloads relative to other workloads of the same
	// namespace. It requires the feature gate WorkloadAffinity.
	// +optional
	WorkloadAffinity *WorkloadAffinity `json:"workloadAffinity,omitempty"`
}

// ClusterAffinity is a filter on clusters. All fields that are set must match.
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
	// into the clusters of this term are assigned to them, in order.
	// +optional
	OverflowAffinities []OverflowAffinityTerm `json:"overflowAffinities,omitempty"`
}

// OverflowAffinityTerm is a tier of clusters for the replicas that do not fit
// into the tiers before it.
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

// SpreadConstraint limits the number of groups of clusters that are selected.
type SpreadConstraint struct {
	// SpreadByField groups clusters by a field of the Cluster. It cannot be
	// combined with SpreadByLabel; when both are empty it is set to cluster.
	// +kubebuilder:validation:Enum=cluster;region;zone;provider
	// +optional
	SpreadByField SpreadFieldValue `json:"spreadByField,omitempty"`

	// SpreadByLabel groups clusters by the value of a label.
	// +optional
	SpreadByLabel string `json:"spreadByLabel,omitempty"`

	// MaxGroups is the maximum number of groups to select.
	// +optional
	MaxGroups int `json:"maxGroups,omitempty"`

	// MinGroups is the minimum number of groups to select. Admission sets 1 when it
	// is 0.
	// +optional
	MinGroups int `json:"minGroups,omitempty"`
}

// ReplicaSchedulingType selects whether the replicas are divided among the
// clusters or duplicated to each.
type ReplicaSchedulingType string

// The values of ReplicaSchedulingType.
const (
	// ReplicaSchedulingTypeDuplicated assigns all replicas to every cluster.
	ReplicaSchedulingTypeDuplicated ReplicaSchedulingType = "Duplicated"
	// ReplicaSchedulingTypeDivided divides the replicas among the clusters.
	ReplicaSchedulingTypeDivided ReplicaSchedulingType = "Divided"
)

// ReplicaDivisionPreference selects how replicas are divided.
type ReplicaDivisionPreference string

// The values of ReplicaDivisionPreference.
const (
	// ReplicaDivisionPreferenceAggregated uses as few clusters as possible.
	ReplicaDivisionPreferenceAggregated ReplicaDivisionPreference = "Aggregated"
	// ReplicaDivisionPreferenceWeighted divides by the weights of WeightPreference.
	ReplicaDivisionPreferenceWeighted ReplicaDivisionPreference = "Weighted"
)

// ReplicaSchedulingStrategy defines how the replicas of a workload are divided
// among the clusters.
type ReplicaSchedulingStrategy struct {
	// ReplicaSchedulingType is Duplicated or Divided. Default Divided.
	// +kubebuilder:validation:Enum=Duplicated;Divided
	// +kubebuilder:default=Divided
	// +optional
	ReplicaSchedulingType ReplicaSchedulingType `json:"replicaSchedulingType,omitempty"`

	// ReplicaDivisionPreference is Aggregated or Weighted, for Divided only;
	// admission sets Weighted when it is empty.
	// +kubebuilder:validation:Enum=Aggregated;Weighted
	// +optional
	ReplicaDivisionPreference ReplicaDivisionPreference `json:"replicaDivisionPreference,omitempty"`

	// WeightPreference holds the weights for the preference Weighted. Nil means the
	// same weight for every cluster.
	// +optional
	WeightPreference *ClusterPreferences `json:"weightPreference,omitempty"`
}

// DynamicWeightFactor is the source of dynamic weights.
type DynamicWeightFactor string

// DynamicWeightByAvailableReplicas weights a cluster by the number of replicas
// that fit into its available resources.
const DynamicWeightByAvailableReplicas DynamicWeightFactor = "AvailableReplicas"

// ClusterPreferences are the weights of clusters.
type ClusterPreferences struct {
	// StaticWeightList holds fixed weights. Clusters that no entry matches have the
	// weight 0, unless no entry matches any cluster.
	// +optional
	StaticWeightList []StaticClusterWeight `json:"staticWeightList,omitempty"`

	// DynamicWeight selects how weights are computed during scheduling;
	// StaticWeightList is ignored when it is set.
	// +kubebuilder:validation:Enum=AvailableReplicas
	// +optional
	DynamicWeight DynamicWeightFactor `json:"dynamicWeight,omitempty"`
}

// StaticClusterWeight is the weight of the clusters it selects.
type StaticClusterWeight struct {
	// TargetCluster selects the clusters.
	// +required
	TargetCluster ClusterAffinity `json:"targetCluster"`

	// Weight of each selected cluster. The largest matching weight is used.
	// +kubebuilder:validation:Minimum=1
	// +required
	Weight int64 `json:"weight"`
}

// WorkloadAffinity places a workload relative to other workloads of its
// namespace.
type WorkloadAffinity struct {
	// Affinity schedules the workload to clusters that its group already uses.
	// +optional
	Affinity *WorkloadAffinityTerm `json:"affinity,omitempty"`

	// AntiAffinity excludes clusters that its group already uses.
	// +optional
	AntiAffinity *WorkloadAntiAffinityTerm `json:"antiAffinity,omitempty"`
}

// WorkloadAffinityTerm defines an affinity group.
type WorkloadAffinityTerm struct {
	// GroupByLabelKey is the label of the template whose value names the group.
	// +required
	GroupByLabelKey string `json:"groupByLabelKey"`
}

// WorkloadAntiAffinityTerm defines an anti-affinity group.
type WorkloadAntiAffinityTerm struct {
	// GroupByLabelKey is the label of the template whose value names the group.
	// +required
	GroupByLabelKey string `json:"groupByLabelKey"`
}
