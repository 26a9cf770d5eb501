// Package deschedule decides which replicas are taken from the clusters of a binding because they cannot be scheduled there.
package deschedule

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"

	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// unknown is the number of ready replicas of a cluster that does not report them.
const unknown = -1

// Answer is how many replicas of a workload the estimator of a cluster found
// unschedulable for longer than the threshold.
type Answer struct {
	// Replicas is negative if the estimator does not know.
	Replicas int32
	// Err is why there is no answer.
	Err error
}

// Reduction is what is taken from a cluster.
type Reduction struct {
	Cluster  string
	Replicas int32
}

// Verdict is the decision about a binding.
type Verdict struct {
	// Clusters are the new targets. Nil means no change.
	Clusters []workv1alpha2.TargetCluster
	// Reductions are the changes, in the order of the targets.
	Reductions []Reduction
	// Err is why the estimators do not allow a decision: if one does not answer, nothing changes.
	Err error
}

// Considered reports whether a binding can be descheduled: that of a Deployment whose replicas were divided by the room
// in clusters, so that the scheduler finds them another place.
func Considered(b *workv1alpha2.ResourceBinding) bool {
	ref := &b.Spec.Resource
	if ref.APIVersion != appsv1.SchemeGroupVersion.String() || ref.Kind != "Deployment" {
		return false
	}
	placement := policyv1alpha1.Placement{}
	applied := b.Annotations[policyv1alpha1.AppliedPlacementAnnotation]
	if applied == "" || json.Unmarshal([]byte(applied), &placement) != nil {
		return false
	}
	strategy := placement.ReplicaScheduling
	if strategy == nil || strategy.ReplicaSchedulingType != policyv1alpha1.ReplicaSchedulingTypeDivided {
		return false
	}
	switch strategy.ReplicaDivisionPreference {
	case policyv1alpha1.ReplicaDivisionPreferenceAggregated:
		return true
	case policyv1alpha1.ReplicaDivisionPreferenceWeighted:
		return strategy.WeightPreference != nil && strategy.WeightPreference.DynamicWeight != ""
	}
	return false
}

// Undesired returns the clusters with fewer ready replicas than assigned, in the order of the targets. Only their
// estimators are called.
func Undesired(b *workv1alpha2.ResourceBinding) []string {
	if b.DeletionTimestamp != nil {
		return nil
	}
	ready := readyReplicas(b)
	var out []string
	for _, target := range b.Spec.Clusters {
		if readyIn(ready, target.Name) < int64(target.Replicas) {
			out = append(out, target.Name)
		}
	}
	return out
}

// Decide returns what to take from the clusters of a binding: their unschedulable replicas, but never ready ones.
func Decide(b *workv1alpha2.ResourceBinding, answers map[string]Answer) Verdict {
	undesired := Undesired(b)
	var errs []error
	for _, cluster := range undesired {
		if err := answers[cluster].Err; err != nil {
			errs = append(errs, fmt.Errorf("cluster %s: %w", cluster, err))
		}
	}
	if len(errs) > 0 {
		return Verdict{Err: errors.Join(errs...)}
	}
	ready := readyReplicas(b)
	clusters := slices.Clone(b.Spec.Clusters)
	v := Verdict{}
	for i := range clusters {
		t := &clusters[i]
		if !slices.Contains(undesired, t.Name) {
			continue
		}
		target := reduced(t.Replicas, answers[t.Name].Replicas, readyIn(ready, t.Name))
		if target < t.Replicas {
			v.Reductions = append(v.Reductions, Reduction{t.Name, t.Replicas - target})
			t.Replicas = target
		}
	}
	if len(v.Reductions) > 0 {
		v.Clusters = clusters
	}
	return v
}

// reduced returns the replicas that a cluster keeps.
func reduced(assigned, unschedulable int32, ready int64) int32 {
	if unschedulable <= 0 || unschedulable > assigned {
		return assigned
	}
	target := assigned - unschedulable
	if int64(target) < ready && ready <= int64(assigned) {
		return int32(ready)
	}
	return target
}

// readyReplicas returns the ready replicas by cluster.
func readyReplicas(b *workv1alpha2.ResourceBinding) map[string]int64 {
	out := make(map[string]int64, len(b.Status.AggregatedStatus))
	for i := range b.Status.AggregatedStatus {
		item := &b.Status.AggregatedStatus[i]
		var reported struct {
			ReadyReplicas *float64 `json:"readyReplicas"`
		}
		out[item.ClusterName] = unknown
		if item.Status != nil && json.Unmarshal(item.Status.Raw, &reported) == nil && reported.ReadyReplicas != nil {
			out[item.ClusterName] = int64(*reported.ReadyReplicas)
		}
	}
	return out
}

func readyIn(ready map[string]int64, cluster string) int64 {
	if n, ok := ready[cluster]; ok {
		return n
	}
	return unknown
}

// Message returns the text of the event about a change, or "" if there is none.
func (v *Verdict) Message() string {
	if len(v.Reductions) == 0 {
		return ""
	}
	text := strings.Builder{}
	text.WriteString("Binding has been descheduled")
	var sum int64
	for _, r := range v.Reductions {
		fmt.Fprintf(&text, ", %d replica(s) in cluster(%s)", r.Replicas, r.Cluster)
		sum += int64(r.Replicas)
	}
	fmt.Fprintf(&text, ", %d total descheduled replica(s)", sum)
	return text.String()
}
