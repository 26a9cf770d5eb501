package core

import (
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/match"
	"github.com/karmada-toolkit/karmada/pkg/domain/schedule/framework"
)

// ScheduleType is the kind of a scheduling, for metrics.
type ScheduleType string

// The values of ScheduleType.
const (
	ReconcileSchedule ScheduleType = "ReconcileSchedule"
	ScaleSchedule     ScheduleType = "ScaleSchedule"
)

// Cause is the reason why a binding is due.
type Cause string

// The values of Cause, in the order in which they are checked.
const (
	// CauseNone: the binding is left alone.
	CauseNone Cause = ""
	// CausePlacement: the placement is not the one that was applied.
	CausePlacement Cause = "placement changed"
	// CauseReplicas: the targets do not have the replicas that are wanted.
	CauseReplicas Cause = "replicas changed"
	// CauseTriggered: a reschedule was triggered.
	CauseTriggered Cause = "reschedule triggered"
	// CauseAlways: what is not divided follows the clusters at once.
	CauseAlways Cause = "not divided"
	// CauseTerminating: a target is being deleted.
	CauseTerminating Cause = "target cluster is being deleted"
)

// Need reports whether and why a binding is due.
type Need struct {
	Cause Cause
	Type  ScheduleType
}

// Due reports whether the binding is to be scheduled.
func (n Need) Due() bool { return n.Cause != CauseNone }

// NeedFacts is the input of NeedsScheduling beside the binding.
type NeedFacts struct {
	// Snapshot holds the clusters.
	Snapshot *framework.Snapshot
	// MultiplePodTemplates is the feature of that name.
	MultiplePodTemplates bool
}

// NeedsScheduling reports whether a binding is due. The first cause that applies
// counts. A binding without placement is an error.
func NeedsScheduling(binding workv1alpha2.Binding, in NeedFacts) (Need, error) {
	spec, status := binding.GetSpec(), binding.GetStatus()
	if spec.Placement == nil {
		return Need{}, fmt.Errorf("failed to get placement from %s", Ref(binding))
	}
	switch {
	case PlacementChanged(spec.Placement, binding.GetAnnotations()[policyv1alpha1.AppliedPlacementAnnotation], status.SchedulerObservedAffinityName):
		return Need{CausePlacement, ReconcileSchedule}, nil
	case ReplicasChanged(spec, in.MultiplePodTemplates):
		return Need{CauseReplicas, ScaleSchedule}, nil
	case Rescheduling(spec, status):
		return Need{CauseTriggered, ReconcileSchedule}, nil
	case FollowsClusters(spec):
		return Need{CauseAlways, ReconcileSchedule}, nil
	case onTerminating(spec, in.Snapshot):
		return Need{CauseTerminating, ReconcileSchedule}, nil
	}
	return Need{}, nil
}

// Ref names a binding as messages do: resourceBinding(<namespace>/<name>) or
// clusterResourceBinding(<name>).
func Ref(binding workv1alpha2.Binding) string {
	if ns := binding.GetNamespace(); ns != "" {
		return fmt.Sprintf("resourceBinding(%s/%s)", ns, binding.GetName())
	}
	return fmt.Sprintf("clusterResourceBinding(%s)", binding.GetName())
}

// FollowsClusters reports whether the binding is scheduled whenever it is checked:
// templates without replicas, and those that every cluster gets whole.
func FollowsClusters(spec *workv1alpha2.ResourceBindingSpec) bool {
	return !spec.IsWorkload() || spec.Placement == nil || strategyOf(spec.Placement.ReplicaScheduling) == duplicated
}

// PlacementChanged compares a placement with the JSON of the one that was applied.
// Of several affinity terms only the observed one counts. What cannot be parsed
// counts as unchanged.
func PlacementChanged(placement *policyv1alpha1.Placement, applied, observed string) bool {
	if applied == "" {
		return true
	}
	if now, err := json.Marshal(placement); err == nil && string(now) == applied {
		return false
	}
	var before policyv1alpha1.Placement
	if err := json.Unmarshal([]byte(applied), &before); err != nil {
		return false
	}
	equal := equality.Semantic.DeepEqual
	if equal(&before, placement) {
		return false
	}
	if !equal(before.ClusterAffinity, placement.ClusterAffinity) ||
		!equal(before.ClusterTolerations, placement.ClusterTolerations) ||
		!equal(before.SpreadConstraints, placement.SpreadConstraints) ||
		!equal(before.ReplicaScheduling, placement.ReplicaScheduling) {
		return true
	}
	if observed == "" {
		return true
	}
	was, is := termIndex(before.ClusterAffinities, observed), termIndex(placement.ClusterAffinities, observed)
	return was < 0 || is < 0 || !equal(before.ClusterAffinities[was], placement.ClusterAffinities[is])
}

// ReplicasChanged reports whether the targets have other replicas than wanted.
func ReplicasChanged(spec *workv1alpha2.ResourceBindingSpec, multiplePodTemplates bool) bool {
	if spec.Placement.ReplicaScheduling == nil {
		return false
	}
	if multiplePodTemplates && len(spec.Components) > 0 && len(spec.Clusters) == 0 {
		return true
	}
	switch spec.Placement.ReplicaScheduling.ReplicaSchedulingType {
	case policyv1alpha1.ReplicaSchedulingTypeDuplicated:
		return slices.ContainsFunc(spec.Clusters, func(c workv1alpha2.TargetCluster) bool { return c.Replicas != spec.Replicas })
	case policyv1alpha1.ReplicaSchedulingTypeDivided:
		var sum int64
		for i := range spec.Clusters {
			sum += int64(spec.Clusters[i].Replicas)
		}
		return sum != int64(spec.Replicas)
	}
	return false
}

func onTerminating(spec *workv1alpha2.ResourceBindingSpec, snapshot *framework.Snapshot) bool {
	if snapshot == nil {
		return false
	}
	for i := range spec.Clusters {
		if at := snapshot.Find(spec.Clusters[i].Name); at >= 0 && snapshot.At(at).Terminating {
			return true
		}
	}
	return false
}

// Leaving returns the names of the targets that are being deleted, and of those
// that the snapshot does not have, both in the order of the targets. NeedsScheduling
// knows the first only: a missing cluster may be one that was not observed yet.
func Leaving(spec *workv1alpha2.ResourceBindingSpec, snapshot *framework.Snapshot) (terminating, missing []string) {
	for i := range spec.Clusters {
		name := spec.Clusters[i].Name
		switch at := snapshot.Find(name); {
		case at < 0:
			missing = append(missing, name)
		case snapshot.At(at).Terminating:
			terminating = append(terminating, name)
		}
	}
	return terminating, missing
}

// Affected reports whether a change of a cluster concerns a binding: whether the
// affinity in use selects the cluster as it is given.
func Affected(binding workv1alpha2.Binding, cluster *framework.Cluster) bool {
	spec, status := binding.GetSpec(), binding.GetStatus()
	if spec.Placement == nil {
		return false
	}
	if spec.Placement.ClusterAffinity != nil || len(spec.Placement.ClusterAffinities) == 0 {
		return match.Cluster(cluster.Object, spec.Placement.ClusterAffinity)
	}
	if status.SchedulerObservedGeneration != binding.GetGeneration() {
		return true
	}
	term := &spec.Placement.ClusterAffinities[max(0, termIndex(spec.Placement.ClusterAffinities, status.SchedulerObservedAffinityName))]
	return match.Cluster(cluster.Object, &term.ClusterAffinity)
}

// AffectedByAnyTerm reports whether any affinity of the binding selects the cluster:
// whether room in it could help a binding that lacks room.
func AffectedByAnyTerm(binding workv1alpha2.Binding, cluster *framework.Cluster) bool {
	placement := binding.GetSpec().Placement
	if placement == nil {
		return false
	}
	if placement.ClusterAffinity != nil || len(placement.ClusterAffinities) == 0 {
		return match.Cluster(cluster.Object, placement.ClusterAffinity)
	}
	for i := range placement.ClusterAffinities {
		term := &placement.ClusterAffinities[i]
		if match.Cluster(cluster.Object, &term.ClusterAffinity) {
			return true
		}
		for j := range term.OverflowAffinities {
			if match.Cluster(cluster.Object, &term.OverflowAffinities[j].ClusterAffinity) {
				return true
			}
		}
	}
	return false
}

// Reacts reports whether a change of a cluster can make the binding due: of the
// causes of NeedsScheduling, those that clusters have a part in, or that failed
// before.
func Reacts(binding workv1alpha2.Binding, in NeedFacts) bool {
	spec := binding.GetSpec()
	return spec.Placement != nil &&
		(FollowsClusters(spec) || ReplicasChanged(spec, in.MultiplePodTemplates) || onTerminating(spec, in.Snapshot) ||
			binding.GetAnnotations()[policyv1alpha1.AppliedPlacementAnnotation] == "" || Rescheduling(spec, binding.GetStatus()))
}

// CountsSets reports whether what fits is counted in sets of components rather than
// in replicas, where the components of workloads count at all.
func CountsSets(spec *workv1alpha2.ResourceBindingSpec) bool { return wholeSets(spec) }

// UsesRoom reports whether the room in clusters can change the result for the
// binding, or only the order of its targets.
func UsesRoom(spec *workv1alpha2.ResourceBindingSpec) bool {
	if spec.Placement == nil || spec.Replicas == 0 && len(spec.Components) == 0 {
		return false
	}
	s := strategyOf(spec.Placement.ReplicaScheduling)
	return s == dynamicWeight || s == aggregated || len(spec.Placement.SpreadConstraints) > 0 && !spec.Placement.IgnoresSpread()
}
