package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Policy is a PropagationPolicy or a ClusterPropagationPolicy.
// +k8s:deepcopy-gen=false
type Policy interface {
	metav1.Object
	runtime.Object
	// PropagationSpec returns the spec of the policy; it is not a copy.
	PropagationSpec() *PropagationSpec
}

// PolicyList is a PropagationPolicyList or a ClusterPropagationPolicyList.
// +k8s:deepcopy-gen=false
type PolicyList interface {
	metav1.ListInterface
	runtime.Object
	// Policies returns pointers to the items.
	Policies() []Policy
}

// OverridePolicyObject is an OverridePolicy or a ClusterOverridePolicy.
// +k8s:deepcopy-gen=false
type OverridePolicyObject interface {
	metav1.Object
	runtime.Object
	// OverrideSpec returns the spec of the policy; it is not a copy.
	OverrideSpec() *OverrideSpec
}

var (
	_ Policy               = &PropagationPolicy{}
	_ Policy               = &ClusterPropagationPolicy{}
	_ PolicyList           = &PropagationPolicyList{}
	_ PolicyList           = &ClusterPropagationPolicyList{}
	_ OverridePolicyObject = &OverridePolicy{}
	_ OverridePolicyObject = &ClusterOverridePolicy{}
)

// PropagationSpec returns the spec of the policy.
func (p *PropagationPolicy) PropagationSpec() *PropagationSpec { return &p.Spec }

// PropagationSpec returns the spec of the policy.
func (p *ClusterPropagationPolicy) PropagationSpec() *PropagationSpec { return &p.Spec }

// Policies returns pointers to the items.
func (l *PropagationPolicyList) Policies() []Policy {
	out := make([]Policy, len(l.Items))
	for i := range l.Items {
		out[i] = &l.Items[i]
	}
	return out
}

// Policies returns pointers to the items.
func (l *ClusterPropagationPolicyList) Policies() []Policy {
	out := make([]Policy, len(l.Items))
	for i := range l.Items {
		out[i] = &l.Items[i]
	}
	return out
}

// OverrideSpec returns the spec of the policy.
func (p *OverridePolicy) OverrideSpec() *OverrideSpec { return &p.Spec }

// OverrideSpec returns the spec of the policy.
func (p *ClusterOverridePolicy) OverrideSpec() *OverrideSpec { return &p.Spec }

// ExplicitPriority returns spec.priority, or 0 when it is not set.
func (s *PropagationSpec) ExplicitPriority() int32 {
	if s.Priority == nil {
		return 0
	}
	return *s.Priority
}

// ReplicaSchedulingType returns the type of replica scheduling; a placement
// without a strategy is Duplicated.
func (p *Placement) ReplicaSchedulingType() ReplicaSchedulingType {
	if p == nil || p.ReplicaScheduling == nil {
		return ReplicaSchedulingTypeDuplicated
	}
	return p.ReplicaScheduling.ReplicaSchedulingType
}

// IgnoresSpread reports whether replicas are divided by a static weight, which takes
// every feasible cluster.
func (p *Placement) IgnoresSpread() bool {
	s := p.ReplicaScheduling
	if s == nil || s.ReplicaSchedulingType != ReplicaSchedulingTypeDivided || s.ReplicaDivisionPreference == ReplicaDivisionPreferenceAggregated {
		return false
	}
	return s.WeightPreference == nil || len(s.WeightPreference.StaticWeightList) > 0 && s.WeightPreference.DynamicWeight == ""
}
