package eviction

import (
	"encoding/json"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

// GracefulFacts are what decides about the tasks of a binding.
type GracefulFacts struct {
	// Now is the current time.
	Now time.Time
	// Timeout is how long a task without a grace period lasts at most.
	Timeout time.Duration
	// Terminating reports whether the binding is being deleted. Its tasks stay as they are.
	Terminating bool
	// Generation is that of the binding.
	Generation int64
	// Spec and Status are those of the binding. They are not changed.
	Spec   *workv1alpha2.ResourceBindingSpec
	Status *workv1alpha2.ResourceBindingStatus
	// Returnable are the clusters to which the workload may return, see the function of that name.
	Returnable []string
}

// GracefulVerdict is what becomes of the tasks of a binding.
type GracefulVerdict struct {
	// Keep are the tasks that stay, in their order; those without a creation time have Now.
	Keep []workv1alpha2.GracefulEvictionTask
	// Ended are the clusters whose tasks end, in the order of their tasks.
	Ended []string
	// Cancelled are the clusters of which the evictions are cancelled, and Clusters the targets of the binding with them.
	Cancelled []string
	Clusters  []workv1alpha2.TargetCluster
	// Requeue reports whether a task ends by time, and RequeueAfter when to decide again then; it may be 0.
	Requeue      bool
	RequeueAfter time.Duration
	// Changed reports whether the tasks differ from those of the binding.
	Changed bool
	// Replaced reports whether the workload was scheduled again and is healthy in all its clusters.
	Replaced bool
}

// DefaultGracefulTimeout is how long a task without a grace period lasts at most by default.
const DefaultGracefulTimeout = 10 * time.Minute

// TimeoutKey is the key of the ConfigMap names.FailoverState with the time that a task without a grace period lasts at
// most, unless it is DefaultGracefulTimeout.
const TimeoutKey = "gracefulEvictionTimeout"

// GracefulTimeout returns the time in the data of the ConfigMap.
func GracefulTimeout(data map[string]string) time.Duration {
	if d, err := time.ParseDuration(data[TimeoutKey]); err == nil && d > 0 {
		return d
	}
	return DefaultGracefulTimeout
}

// GracefulController returns the name of the controller that ends the tasks of a scope, which is the source of its events.
func GracefulController(s *scope.Binding) string {
	if s.Namespaced {
		return "resource-binding-graceful-eviction-controller"
	}
	return "cluster-resource-binding-graceful-eviction-controller"
}

// Graceful returns which tasks end: those whose time is over, those that a user released, and all others once the
// workload was scheduled again and is healthy in all its clusters. Until then, an eviction is cancelled when the workload
// may return to the cluster.
func Graceful(f GracefulFacts) GracefulVerdict {
	if f.Terminating {
		return GracefulVerdict{Keep: f.Spec.GracefulEvictionTasks}
	}
	var v GracefulVerdict
	v.Replaced = f.Status.SchedulerObservedGeneration == f.Generation && healthyEverywhere(f.Spec, f.Status)
	spec := f.Spec
	for _, cluster := range f.Returnable {
		if v.Replaced && len(f.Spec.Clusters) > 0 {
			break
		}
		after := *spec
		after.Clusters, after.GracefulEvictionTasks = Cancel(spec, f.Status, cluster)
		spec, v.Cancelled, v.Clusters, v.Changed = &after, append(v.Cancelled, cluster), after.Clusters, true
	}
	for _, task := range spec.GracefulEvictionTasks {
		fresh := task.CreationTimestamp == nil || task.CreationTimestamp.IsZero()
		if fresh {
			task.CreationTimestamp = &metav1.Time{Time: f.Now}
			v.Changed = true
		}
		end := deadline(&task, f.Timeout)
		if !fresh && ends(&task, f.Now, end, v.Replaced) {
			v.Ended = append(v.Ended, task.FromCluster)
			v.Changed = true
			continue
		}
		v.Keep = append(v.Keep, task)
		if task.SuppressDeletion == nil {
			if left := end.Sub(f.Now); !v.Requeue || left < v.RequeueAfter {
				v.Requeue, v.RequeueAfter = true, left
			}
		}
	}
	return v
}

func ends(task *workv1alpha2.GracefulEvictionTask, now, deadline time.Time, replaced bool) bool {
	if task.SuppressDeletion != nil {
		return !*task.SuppressDeletion
	}
	return now.After(deadline) || replaced
}

// deadline returns when a task ends at the latest.
func deadline(task *workv1alpha2.GracefulEvictionTask, timeout time.Duration) time.Time {
	if task.GracePeriodSeconds != nil {
		timeout = time.Duration(*task.GracePeriodSeconds) * time.Second
	}
	return task.CreationTimestamp.Add(timeout)
}

// healthyEverywhere reports whether the workload is healthy in all targets, with the replicas that it has there. It is
// when there are none.
func healthyEverywhere(spec *workv1alpha2.ResourceBindingSpec, status *workv1alpha2.ResourceBindingStatus) bool {
	return !slices.ContainsFunc(spec.Clusters, func(target workv1alpha2.TargetCluster) bool { return !healthyIn(&target, status) })
}

// healthyIn reports whether the workload is healthy in a target, with the replicas that it has there.
func healthyIn(target *workv1alpha2.TargetCluster, status *workv1alpha2.ResourceBindingStatus) bool {
	i := slices.IndexFunc(status.AggregatedStatus, func(s workv1alpha2.AggregatedStatusItem) bool { return s.ClusterName == target.Name })
	return i >= 0 && status.AggregatedStatus[i].Health == workv1alpha2.ResourceHealthy && !lacksReplicas(status.AggregatedStatus[i].Status, target.Replicas)
}

// lacksReplicas reports whether a status has fewer ready replicas than wanted: it was collected before the cluster got
// the replicas of another. A status that does not count ready replicas lacks none.
func lacksReplicas(status *runtime.RawExtension, want int32) bool {
	if status == nil {
		return false
	}
	var counted struct{ ReadyReplicas *int64 }
	return json.Unmarshal(status.Raw, &counted) == nil && counted.ReadyReplicas != nil && *counted.ReadyReplicas < int64(want)
}
