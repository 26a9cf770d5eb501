// Package eviction decides when workloads leave clusters: because of NoExecute taints, because an application is
// unhealthy, and when a graceful eviction ends. Its functions take facts and return verdicts; they read no clock and
// write nothing.
package eviction

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// Producers of tasks.
const (
	ProducerTaintManager                   = "TaintManager"
	ProducerResourceBindingFailover        = "resource-binding-application-failover-controller"
	ProducerClusterResourceBindingFailover = "cluster-resource-binding-application-failover-controller"
)

// Reasons of tasks.
const (
	ReasonTaintUntolerated   = "TaintUntolerated"
	ReasonApplicationFailure = "ApplicationFailure"
)

// evict moves a cluster from the targets to a task, with the replicas that it had. A cluster that has a task already
// keeps it unchanged.
func evict(spec *workv1alpha2.ResourceBindingSpec, task workv1alpha2.GracefulEvictionTask) {
	i := slices.IndexFunc(spec.Clusters, func(c workv1alpha2.TargetCluster) bool { return c.Name == task.FromCluster })
	if i < 0 {
		return
	}
	if n := spec.Clusters[i].Replicas; n > 0 {
		task.Replicas = new(n)
	}
	spec.Clusters = slices.Delete(slices.Clone(spec.Clusters), i, i+1)
	if !hasTask(spec, task.FromCluster) {
		spec.GracefulEvictionTasks = append(slices.Clone(spec.GracefulEvictionTasks), task)
	}
}

// Stamp sets the creation time of tasks without one, as the controller of graceful evictions does in a later write.
func Stamp(tasks []workv1alpha2.GracefulEvictionTask, now time.Time) {
	for i := range tasks {
		if tasks[i].CreationTimestamp.IsZero() {
			tasks[i].CreationTimestamp = &metav1.Time{Time: now}
		}
	}
}

// hasTask reports whether a cluster is being evicted.
func hasTask(spec *workv1alpha2.ResourceBindingSpec, cluster string) bool {
	return slices.ContainsFunc(spec.GracefulEvictionTasks, func(t workv1alpha2.GracefulEvictionTask) bool { return t.FromCluster == cluster })
}

// isTarget reports whether a cluster is a target.
func isTarget(spec *workv1alpha2.ResourceBindingSpec, cluster string) bool {
	return slices.ContainsFunc(spec.Clusters, func(c workv1alpha2.TargetCluster) bool { return c.Name == cluster })
}
