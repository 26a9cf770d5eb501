package eviction

import (
	"errors"
	"maps"
	"slices"
	"time"

	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

// heldRequeue is the time until an application is decided again whose cluster it must not leave now.
const heldRequeue = time.Second

// ErrGracefulEvictionOff is returned for purge mode Gracefully while graceful eviction is turned off.
var ErrGracefulEvictionOff = errors.New("graceful eviction is turned off")

// ApplicationFacts are what decides whether an unhealthy application leaves clusters.
type ApplicationFacts struct {
	// Now is the current time.
	Now time.Time
	// Binding is not changed.
	Binding workv1alpha2.Binding
	// Producer is who evicts.
	Producer string
	// HasHealth reports whether the health of the kind is interpreted.
	HasHealth bool
	// NeedsDependencies reports whether the binding must propagate dependencies.
	NeedsDependencies bool
	// GracefulEviction and PreserveState are the feature gates GracefulEviction and StatefulFailoverInjection.
	GracefulEviction, PreserveState bool
	// UnhealthySince is when the application was first seen unhealthy, by cluster. It is not changed.
	UnhealthySince map[string]time.Time
	// KeepUnclaimed reports whether an application stays that no policy claims: nothing would schedule it elsewhere.
	KeepUnclaimed bool
	// Held are clusters that the application does not leave now, because many failed at once. Their times are kept.
	Held []string
}

// ApplicationVerdict is what becomes of an application.
type ApplicationVerdict struct {
	// Spec is the spec with tasks for the clusters that the application leaves; nil if it leaves none.
	Spec *workv1alpha2.ResourceBindingSpec
	// Requeue reports whether the application may leave a cluster later, and RequeueAfter when to decide again then; it
	// may be 0.
	Requeue      bool
	RequeueAfter time.Duration
	// UnhealthySince replaces that of the facts.
	UnhealthySince map[string]time.Time
}

// Application returns which clusters an application leaves because it is unhealthy there for longer than tolerated. It
// returns ErrGracefulEvictionOff, or an error about state that cannot be preserved; nothing is evicted then, and the
// verdict has the times only.
func Application(f ApplicationFacts) (ApplicationVerdict, error) {
	spec := f.Binding.GetSpec()
	if f.Binding.GetDeletionTimestamp() != nil || !f.applies() {
		return ApplicationVerdict{}, nil
	}
	behavior := spec.Failover.Application
	toleration := time.Duration(0)
	if s := behavior.DecisionConditions.TolerationSeconds; s != nil {
		toleration = time.Duration(*s) * time.Second
	}
	v := ApplicationVerdict{UnhealthySince: maps.Clone(f.UnhealthySince)}
	if v.UnhealthySince == nil {
		v.UnhealthySince = map[string]time.Time{}
	}
	due := f.observe(&v, toleration)
	maps.DeleteFunc(v.UnhealthySince, func(cluster string, _ time.Time) bool { return !isTarget(spec, cluster) })
	if len(due) == 0 {
		return v, nil
	}
	out := spec.DeepCopy()
	for _, cluster := range due {
		task, err := f.task(cluster)
		if err != nil {
			return ApplicationVerdict{UnhealthySince: v.UnhealthySince}, err
		}
		evict(out, task)
	}
	maps.DeleteFunc(v.UnhealthySince, func(cluster string, _ time.Time) bool { return slices.Contains(due, cluster) })
	v.Spec = out
	return v, nil
}

// applies reports whether the application fails over at all.
func (f *ApplicationFacts) applies() bool {
	spec := f.Binding.GetSpec()
	if f.KeepUnclaimed && !scope.Claimed(f.Binding) {
		return false
	}
	return spec.Failover != nil && spec.Failover.Application != nil && len(f.Binding.GetStatus().AggregatedStatus) > 0 &&
		f.HasHealth && (!f.NeedsDependencies || spec.PropagateDeps)
}

// observe updates since when the application is unhealthy, and returns the clusters in which it was for too long.
func (f *ApplicationFacts) observe(v *ApplicationVerdict, toleration time.Duration) (due []string) {
	spec := f.Binding.GetSpec()
	for i := range f.Binding.GetStatus().AggregatedStatus {
		item := &f.Binding.GetStatus().AggregatedStatus[i]
		switch item.Health {
		case workv1alpha2.ResourceHealthy, workv1alpha2.ResourceUnknown:
			delete(v.UnhealthySince, item.ClusterName)
		case workv1alpha2.ResourceUnhealthy:
			if hasTask(spec, item.ClusterName) {
				continue
			}
			since, seen := v.UnhealthySince[item.ClusterName]
			if !seen {
				v.UnhealthySince[item.ClusterName] = f.Now
				v.requeue(toleration)
				continue
			}
			elapsed := f.Now.Sub(since)
			switch {
			case elapsed > toleration && slices.Contains(f.Held, item.ClusterName):
				v.requeue(heldRequeue)
				continue
			case elapsed > toleration:
				due = append(due, item.ClusterName)
				continue
			}
			v.requeue(toleration - elapsed.Truncate(time.Second))
		}
	}
	return due
}

// requeue makes the next decision happen after d at the latest.
func (v *ApplicationVerdict) requeue(d time.Duration) {
	if !v.Requeue || d < v.RequeueAfter {
		v.Requeue, v.RequeueAfter = true, d
	}
}

func (f *ApplicationFacts) task(cluster string) (workv1alpha2.GracefulEvictionTask, error) {
	behavior := f.Binding.GetSpec().Failover.Application
	task := workv1alpha2.GracefulEvictionTask{
		FromCluster: cluster, Producer: f.Producer, Reason: ReasonApplicationFailure, PurgeMode: behavior.PurgeMode,
	}
	switch behavior.PurgeMode {
	case policyv1alpha1.PurgeModeGracefully:
		if !f.GracefulEviction {
			return task, ErrGracefulEvictionOff
		}
		task.GracePeriodSeconds = behavior.GracePeriodSeconds
	case policyv1alpha1.PurgeModeNever:
		task.SuppressDeletion = new(true)
	}
	if !f.PreserveState {
		return task, nil
	}
	state, err := preserve(behavior.StatePreservation, f.Binding.GetStatus(), cluster)
	if err != nil {
		return task, err
	}
	if task.PreservedLabelState = state; state != nil {
		for _, c := range f.Binding.GetSpec().Clusters {
			task.ClustersBeforeFailover = append(task.ClustersBeforeFailover, c.Name)
		}
	}
	return task, nil
}
