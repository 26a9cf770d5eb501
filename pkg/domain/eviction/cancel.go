package eviction

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/match"
)

// Returnable returns the clusters of tasks to which a workload may return, because the cause of its eviction is over:
// the cluster is Ready and has no NoExecute taint that evicts, now or later. While the workload has other targets, the
// cluster must also be one that the scheduler would choose, and the workload must still be there. Evictions by others
// than the taint manager, and those whose end a user decides, have other causes.
func Returnable(b workv1alpha2.Binding, clusters map[string]*clusterv1alpha1.Cluster, now time.Time) []string {
	placement, err := appliedPlacement(b)
	if err != nil || b.GetDeletionTimestamp() != nil {
		return nil
	}
	spec := b.GetSpec()
	var out []string
	for i := range spec.GracefulEvictionTasks {
		task := &spec.GracefulEvictionTasks[i]
		cluster := clusters[task.FromCluster]
		if task.Producer != ProducerTaintManager || task.SuppressDeletion != nil || cluster == nil || !cluster.DeletionTimestamp.IsZero() ||
			!cluster.Ready() {
			continue
		}
		if _, evicts := evictionTime(cluster.Spec.Taints, placement.ClusterTolerations, now); evicts {
			continue
		}
		if len(spec.Clusters) == 0 || task.PurgeMode != policyv1alpha1.PurgeModeDirectly && schedulable(b, placement, cluster) {
			out = append(out, task.FromCluster)
		}
	}
	return out
}

// schedulable reports whether the scheduler may choose a cluster: it has no taint that is not tolerated, and the affinity
// by which the targets were chosen selects it.
func schedulable(b workv1alpha2.Binding, placement *policyv1alpha1.Placement, cluster *clusterv1alpha1.Cluster) bool {
	for i := range cluster.Spec.Taints {
		if taint := &cluster.Spec.Taints[i]; taint.Effect != corev1.TaintEffectPreferNoSchedule && tolerating(placement.ClusterTolerations, taint) == nil {
			return false
		}
	}
	current := b.GetSpec().Placement
	if current == nil {
		current = placement
	}
	if len(current.ClusterAffinities) == 0 {
		return match.Cluster(cluster, current.ClusterAffinity)
	}
	return slices.ContainsFunc(current.ClusterAffinities, func(term policyv1alpha1.ClusterAffinityTerm) bool {
		return term.AffinityName == b.GetStatus().SchedulerObservedAffinityName && match.Cluster(cluster, &term.ClusterAffinity)
	})
}

// Cancel returns the targets and the tasks of a binding without the eviction from a cluster: the cluster is a target again
// with the replicas that it had. Of a workload whose replicas are divided, other targets give back what exceeds its
// replicas: first those where it is not healthy, which are its replacements, and the last of these first.
func Cancel(spec *workv1alpha2.ResourceBindingSpec, status *workv1alpha2.ResourceBindingStatus, cluster string) ([]workv1alpha2.TargetCluster, []workv1alpha2.GracefulEvictionTask) {
	targets := slices.Clone(spec.Clusters)
	var tasks []workv1alpha2.GracefulEvictionTask
	for _, task := range spec.GracefulEvictionTasks {
		if task.FromCluster != cluster {
			tasks = append(tasks, task)
			continue
		}
		if slices.ContainsFunc(targets, func(t workv1alpha2.TargetCluster) bool { return t.Name == cluster }) {
			continue
		}
		back := workv1alpha2.TargetCluster{Name: cluster}
		if task.Replicas != nil {
			back.Replicas = *task.Replicas
		}
		targets = append(giveBack(spec, status, targets, back.Replicas), back)
	}
	return targets, tasks
}

// giveBack takes what exceeds the replicas of a workload, with those that return, from its targets.
func giveBack(
	spec *workv1alpha2.ResourceBindingSpec, status *workv1alpha2.ResourceBindingStatus, targets []workv1alpha2.TargetCluster, returning int32,
) []workv1alpha2.TargetCluster {
	if !spec.IsWorkload() || len(spec.Components) > 0 || spec.Placement.ReplicaSchedulingType() != policyv1alpha1.ReplicaSchedulingTypeDivided {
		return targets
	}
	excess := int64(returning) - int64(spec.Replicas)
	for i := range targets {
		excess += int64(targets[i].Replicas)
	}
	for _, healthy := range []bool{false, true} {
		for i := len(targets) - 1; i >= 0 && excess > 0; i-- {
			if healthyIn(&targets[i], status) != healthy {
				continue
			}
			if int64(targets[i].Replicas) <= excess {
				excess -= int64(targets[i].Replicas)
				targets = slices.Delete(targets, i, i+1)
				continue
			}
			targets[i].Replicas -= int32(excess)
			excess = 0
		}
	}
	return targets
}
