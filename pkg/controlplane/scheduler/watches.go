package scheduler

import (
	"maps"
	"sync"

	toolscache "k8s.io/client-go/tools/cache"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/scheduler/core"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/scheduler/framework"
)

// bindingHandler is told of changes of the bindings of a scope.
func (s *scheduler) bindingHandler(scope *scope) toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			if b, ok := obj.(workv1alpha2.Binding); ok {
				s.bindingChanged(scope, nil, b)
			}
		},
		UpdateFunc: func(old, obj any) {
			was, okWas := old.(workv1alpha2.Binding)
			b, ok := obj.(workv1alpha2.Binding)
			if ok && okWas {
				s.bindingChanged(scope, was, b)
			}
		},
		DeleteFunc: func(obj any) {
			if gone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
				obj = gone.Obj
			}
			if b, ok := obj.(workv1alpha2.Binding); ok {
				s.bindings.remove(keyOf(b))
				s.assumed.drop(keyOf(b))
			}
		},
	}
}

// bindingChanged takes a binding; was is nil for one that is new.
func (s *scheduler) bindingChanged(scope *scope, was, b workv1alpha2.Binding) {
	k := keyOf(b)
	before, _ := s.bindings.get(k)
	s.bindings.set(scope, b)
	if !owned(b, s.options.SchedulerName) {
		s.assumed.drop(k)
		if s.mustRelease(b) {
			s.push(scope, b, eventBindingUpdate)
		}
		return
	}
	if was != nil {
		s.assumed.observe(k, was.GetStatus(), b.GetStatus())
	}
	switch {
	case was == nil || !owned(was, s.options.SchedulerName):
		s.push(scope, b, eventBindingAdd)
	case was.GetGeneration() != b.GetGeneration() && !before.echo(b.GetResourceVersion()):
		s.push(scope, b, eventBindingUpdate)
	}
}

func (s *scheduler) push(scope *scope, b workv1alpha2.Binding, event string) {
	s.metrics.incoming.WithLabelValues(event).Inc()
	s.queue.Push(keyOf(b), scope.priority(b))
}

// clusterHandler is told of changes of the clusters.
func (s *scheduler) clusterHandler() toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) {
			if c, ok := obj.(*clusterv1alpha1.Cluster); ok {
				s.clusterChanged(c, initial)
			}
		},
		UpdateFunc: func(_, obj any) {
			if c, ok := obj.(*clusterv1alpha1.Cluster); ok {
				s.clusterChanged(c, false)
			}
		},
		DeleteFunc: func(obj any) {
			if gone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
				obj = gone.Obj
			}
			if c, ok := obj.(*clusterv1alpha1.Cluster); ok {
				s.clusterGone(c.Name)
			}
		},
	}
}

// clusterChanged takes a cluster and queues the bindings to which its change may
// matter. The bindings are queued anyway when the scheduler starts.
func (s *scheduler) clusterChanged(object *clusterv1alpha1.Cluster, initial bool) {
	before, now := s.clusters.set(object)
	if initial {
		return
	}
	if now.Terminating && (before == nil || !before.Terminating) {
		s.requeueTargeting(now.Name())
	}
	if before == nil || !maps.Equal(before.Object.Labels, object.Labels) || before.Object.Generation != object.Generation || before.Terminating != now.Terminating {
		s.requeue(before, now, func(workv1alpha2.Binding) bool { return true })
		s.roomier.add(now)
		s.wake()
		return
	}
	if !now.SameAPIs(before) {
		s.requeue(before, now, func(b workv1alpha2.Binding) bool {
			r := &b.GetSpec().Resource
			return now.HasAPI(r.APIVersion, r.Kind) != before.HasAPI(r.APIVersion, r.Kind)
		})
	}
	if now.Capacity.Roomier(before.Capacity) {
		s.roomier.add(now)
	}
}

// requeue queues the bindings that a cluster, as it was or as it is, concerns and
// that a change of a cluster can make due.
func (s *scheduler) requeue(before, now *framework.Cluster, concerned func(workv1alpha2.Binding) bool) {
	ladder := s.ladder()
	var found []known
	s.bindings.each(func(_ key, b known) {
		if b.owned && core.Reacts(b, ladder) && concerned(b) && (before != nil && core.Affected(b, before) || core.Affected(b, now)) {
			found = append(found, b)
		}
	})
	for _, b := range found {
		s.push(b.scope, b, eventCluster)
	}
}

// marks collects the clusters that have got more room, so that bindings which
// lack it are looked at once for all of them.
type marks struct {
	mu  sync.Mutex
	set map[string]*framework.Cluster
}

func (m *marks) add(c *framework.Cluster) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.set == nil {
		m.set = map[string]*framework.Cluster{}
	}
	m.set[c.Name()] = c
}

func (m *marks) take() map[string]*framework.Cluster {
	m.mu.Lock()
	defer m.mu.Unlock()
	set := m.set
	m.set = nil
	return set
}

// wake moves the bindings that lacked room and that one of the roomier clusters
// concerns back into the queue.
func (s *scheduler) wake() {
	roomier := s.roomier.take()
	if len(roomier) == 0 {
		return
	}
	// Also those that are being scheduled: they may be about to wait for this room.
	s.queue.Recheck(func(k key) bool {
		b, ok := s.bindings.get(k)
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
