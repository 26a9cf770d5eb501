package v1alpha2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Binding is a ResourceBinding or a ClusterResourceBinding.
// +k8s:deepcopy-gen=false
type Binding interface {
	metav1.Object
	runtime.Object
	// GetSpec returns the spec; it is not a copy.
	GetSpec() *ResourceBindingSpec
	// GetStatus returns the status; it is not a copy.
	GetStatus() *ResourceBindingStatus
}

// BindingList is a ResourceBindingList or a ClusterResourceBindingList.
// +k8s:deepcopy-gen=false
type BindingList interface {
	metav1.ListInterface
	runtime.Object
	// Bindings returns pointers to the items.
	Bindings() []Binding
}

var (
	_ Binding     = &ResourceBinding{}
	_ Binding     = &ClusterResourceBinding{}
	_ BindingList = &ResourceBindingList{}
	_ BindingList = &ClusterResourceBindingList{}
)

// GetSpec returns the spec of the binding.
func (b *ResourceBinding) GetSpec() *ResourceBindingSpec { return &b.Spec }

// GetStatus returns the status of the binding.
func (b *ResourceBinding) GetStatus() *ResourceBindingStatus { return &b.Status }

// GetSpec returns the spec of the binding.
func (b *ClusterResourceBinding) GetSpec() *ResourceBindingSpec { return &b.Spec }

// GetStatus returns the status of the binding.
func (b *ClusterResourceBinding) GetStatus() *ResourceBindingStatus { return &b.Status }

// Bindings returns pointers to the items.
func (l *ResourceBindingList) Bindings() []Binding {
	out := make([]Binding, len(l.Items))
	for i := range l.Items {
		out[i] = &l.Items[i]
	}
	return out
}

// Bindings returns pointers to the items.
func (l *ClusterResourceBindingList) Bindings() []Binding {
	out := make([]Binding, len(l.Items))
	for i := range l.Items {
		out[i] = &l.Items[i]
	}
	return out
}

// IsWorkload reports whether the template has replicas, replica requirements or
// components.
func (s *ResourceBindingSpec) IsWorkload() bool {
	return s.Replicas > 0 || s.ReplicaRequirements != nil || len(s.Components) > 0
}

// TargetContains reports whether the cluster is among the targets.
func (s *ResourceBindingSpec) TargetContains(cluster string) bool {
	for i := range s.Clusters {
		if s.Clusters[i].Name == cluster {
			return true
		}
	}
	return false
}

// EvictingFrom reports whether an eviction task exists for the cluster.
func (s *ResourceBindingSpec) EvictingFrom(cluster string) bool {
	for i := range s.GracefulEvictionTasks {
		if s.GracefulEvictionTasks[i].FromCluster == cluster {
			return true
		}
	}
	return false
}

// SchedulingSuspended reports whether scheduling of the binding is suspended.
func (s *ResourceBindingSpec) SchedulingSuspended() bool {
	return s.Suspension != nil && s.Suspension.Scheduling != nil && *s.Suspension.Scheduling
}
