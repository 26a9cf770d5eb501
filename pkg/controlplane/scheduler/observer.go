package scheduler

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/schedule/core"
	"github.com/karmada-toolkit/karmada/pkg/domain/schedule/framework"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

// observer keeps the facts about bindings and clusters as the informers report
// them, and enqueues the bindings that a change may affect.
type observer struct {
	schedulerName string
	clusters      *clusters
	bindings      *bindings
	assumed       *assumptions
	needs         *needs
	queue         *queue
	metrics       *metrics
	roomier       marks
	// forget is called with the name of a cluster that was deleted. Optional.
	forget func(cluster string)
}

// bindingHandler handles the events of the bindings of a scope.
func (o *observer) bindingHandler(s *scope.Binding) toolscache.ResourceEventHandler {
	return controllers.Handler[workv1alpha2.Binding]{
		Added:   func(b workv1alpha2.Binding, _ bool) { o.bindingChanged(s, nil, b) },
		Updated: func(was, b workv1alpha2.Binding) { o.bindingChanged(s, was, b) },
		Deleted: func(b workv1alpha2.Binding) {
			o.bindings.remove(keyOf(b))
			o.assumed.drop(keyOf(b))
		},
	}
}

// bindingChanged takes a binding; was is nil for one that is new.
func (o *observer) bindingChanged(s *scope.Binding, was, b workv1alpha2.Binding) {
	k := keyOf(b)
	o.bindings.observe(s, b)
	if !owned(b, o.schedulerName) {
		o.assumed.drop(k)
		if o.needs.mustRelease(b) {
			o.push(s, b, eventBindingUpdate)
		}
		return
	}
	if was != nil {
		o.assumed.observe(k, was.GetStatus(), b.GetStatus())
	}
	switch {
	case was == nil || !owned(was, o.schedulerName):
		o.push(s, b, eventBindingAdd)
	case was.GetGeneration() == b.GetGeneration() || o.bindings.wroteVersion(k, b.GetResourceVersion()):
	case evictionEnded(was, b):
		o.metrics.incoming.WithLabelValues(eventBindingUpdate).Inc()
		o.queue.PushAfter(k, priority(s, b), confirmDelay)
	default:
		o.push(s, b, eventBindingUpdate)
	}
}

// confirmDelay is how long a binding waits whose eviction ended: what ended it confirms the generation with the status
// of the new clusters, which saves a write. Others' ends are confirmed after the delay.
const confirmDelay = 3 * time.Second

// evictionEnded reports whether a binding that needed nothing lost eviction tasks and changed in nothing else, so that it
// needs nothing again.
func evictionEnded(was, b workv1alpha2.Binding) bool {
	before, after := was.GetSpec(), b.GetSpec()
	if len(after.GracefulEvictionTasks) >= len(before.GracefulEvictionTasks) ||
		was.GetStatus().SchedulerObservedGeneration != was.GetGeneration() || core.FollowsClusters(after) {
		return false
	}
	same := *after
	same.GracefulEvictionTasks = before.GracefulEvictionTasks
	return equality.Semantic.DeepEqual(before, &same)
}

func (o *observer) push(s *scope.Binding, b workv1alpha2.Binding, event string) {
	o.metrics.incoming.WithLabelValues(event).Inc()
	o.queue.Push(keyOf(b), priority(s, b))
}

// priority returns the priority of the binding in the queue.
func priority(s *scope.Binding, b workv1alpha2.Binding) int32 {
	if p := b.GetSpec().SchedulePriority; s.Priority && p != nil {
		return p.Priority
	}
	return 0
}

// clusterHandler handles the events of clusters.
func (o *observer) clusterHandler() toolscache.ResourceEventHandler {
	return controllers.Handler[*clusterv1alpha1.Cluster]{
		Added:   o.clusterChanged,
		Updated: func(_, c *clusterv1alpha1.Cluster) { o.clusterChanged(c, false) },
		Deleted: func(c *clusterv1alpha1.Cluster) { o.clusterDeleted(c.Name) },
	}
}

// clusterChanged takes a cluster and queues the bindings to which its change may
// matter. The bindings are queued anyway when the scheduler starts.
func (o *observer) clusterChanged(object *clusterv1alpha1.Cluster, initial bool) {
	before, now := o.clusters.set(object)
	if initial {
		return
	}
	if now.Terminating && (before == nil || !before.Terminating) {
		o.requeueTargeting(now.Name())
	}
	if before == nil || !maps.Equal(before.Object.Labels, object.Labels) || before.Object.Generation != object.Generation || before.Terminating != now.Terminating {
		o.requeue(before, now, func(workv1alpha2.Binding) bool { return true })
		o.roomier.add(now)
		o.wake()
		return
	}
	if !now.SameAPIs(before) {
		o.requeue(before, now, func(b workv1alpha2.Binding) bool {
			r := &b.GetSpec().Resource
			return now.HasAPI(r.APIVersion, r.Kind) != before.HasAPI(r.APIVersion, r.Kind)
		})
	}
	if now.Capacity.Roomier(before.Capacity) || before.NotReady && !now.NotReady {
		o.roomier.add(now)
	}
}

// requeue queues the bindings that a cluster, as it was or as it is, concerns and
// that a change of a cluster can make due.
func (o *observer) requeue(before, now *framework.Cluster, concerned func(workv1alpha2.Binding) bool) {
	facts := o.needs.facts()
	o.pushAll(func(b known) bool {
		return b.owned && core.Reacts(b, facts) && concerned(b) && (before != nil && core.Affected(b, before) || core.Affected(b, now))
	})
}

// pushAll enqueues the bindings that a change of a cluster concerns.
func (o *observer) pushAll(concerned func(known) bool) {
	for _, b := range o.bindings.matching(concerned) {
		o.push(b.scope, b, eventCluster)
	}
}

// clusterDeleted removes a cluster from the facts and enqueues what still targets it.
func (o *observer) clusterDeleted(name string) {
	o.clusters.remove(name)
	if o.forget != nil {
		o.forget(name)
	}
	o.requeueTargeting(name)
}

// requeueTargeting enqueues the bindings that have the cluster as a target, also
// those that no policy claims and those whose affinity does not select it.
func (o *observer) requeueTargeting(cluster string) {
	o.pushAll(func(b known) bool { return b.GetSpec().TargetContains(cluster) && assigned(b, o.schedulerName) })
}

// wake moves the bindings that lacked room and that one of the roomier clusters
// concerns back into the queue.
func (o *observer) wake() {
	roomier := o.roomier.take()
	if len(roomier) == 0 {
		return
	}
	// Also those that are being scheduled: they may be about to wait for this room.
	o.queue.Wake(func(k key) bool {
		b, ok := o.bindings.get(k)
		if !ok {
			return true
		}
		for _, c := range roomier {
			if core.AffectedByAnyTerm(b, c) {
				return true
			}
		}
		return false
	})
}

// sweep enqueues the bindings that more room or time may affect.
func (o *observer) sweep() {
	o.wake()
	for _, b := range o.bindings.expire() {
		if b.owned || o.needs.mustRelease(b) {
			o.push(b.scope, b, eventBindingUpdate)
		}
	}
	o.assumed.sweep()
}

// quotaHandler handles the events of quotas. One that leaves more room wakes the
// bindings of its namespace.
func (o *observer) quotaHandler() toolscache.ResourceEventHandler {
	wake := func(namespace string) {
		o.queue.Wake(func(k key) bool { return k.Namespace == namespace })
	}
	return controllers.Handler[*policyv1alpha1.FederatedResourceQuota]{
		Updated: func(before, after *policyv1alpha1.FederatedResourceQuota) {
			if leavesMore(before, after) {
				wake(after.Namespace)
			}
		},
		Deleted: func(q *policyv1alpha1.FederatedResourceQuota) { wake(q.Namespace) },
	}
}

// leavesMore reports whether there is more left of some resource than before.
func leavesMore(before, after *policyv1alpha1.FederatedResourceQuota) bool {
	for name, had := range before.Spec.Overall {
		now, limited := after.Spec.Overall[name]
		if !limited {
			return true
		}
		left, was := now.DeepCopy(), had.DeepCopy()
		left.Sub(after.Status.OverallUsed[name])
		was.Sub(before.Status.OverallUsed[name])
		if left.Cmp(was) > 0 {
			return true
		}
	}
	return false
}
