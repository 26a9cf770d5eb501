package scheduler

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/keymutex"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/karmada-toolkit/karmada/pkg/controlplane/scheduler/core"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/scheduler/framework"
)

// Estimates asks the accurate estimators of clusters about the binding of a request. A cluster
// whose estimator fails is in the answer with the error; one without estimator is
// not in it.
type Estimates func(ctx context.Context, request *core.Request, clusters []*framework.Cluster) map[string]core.Estimate

// scheduler is the shell around the core.
type scheduler struct {
	options  *Options
	client   client.Client
	live     client.Reader
	events   record.EventRecorder
	clock    clock.WithTicker
	metrics  *metrics
	profiles *profiles
	// estimates is nil unless estimators are asked.
	estimates Estimates

	workloadAffinity     bool
	multiplePodTemplates bool

	clusters clusters
	bindings bindings
	queue    *queue
	assumed  assumptions
	roomier  marks
	// groups serializes the decisions about workloads that look at each other.
	groups keymutex.KeyMutex
}

func (s *scheduler) ladder() core.Ladder {
	return core.Ladder{Snapshot: s.clusters.Snapshot(), MultiplePodTemplates: s.multiplePodTemplates}
}

// attempts is how often a binding is read again when others write it too.
const attempts = 5

// work handles bindings until the queue is closed.
func (s *scheduler) work(ctx context.Context) {
	for {
		k, ok := s.queue.Pop()
		if !ok {
			return
		}
		o := s.handle(ctx, k)
		if o != finished {
			s.metrics.incoming.WithLabelValues(eventFailure).Inc()
		}
		s.queue.Done(k, o)
	}
}

// handle brings one binding up to date.
func (s *scheduler) handle(ctx context.Context, k key) outcome {
	found, ok := s.bindings.get(k)
	if !ok {
		return finished
	}
	if s.workloadAffinity && grouped(found) {
		s.groups.LockKey(k.Namespace)
		defer func() { _ = s.groups.UnlockKey(k.Namespace) }()
	}
	logger := log.FromContext(ctx).WithValues(found.scope.Kind, klog.KRef(k.Namespace, k.Name))
	for range attempts {
		o, err := s.once(ctx, found)
		switch {
		case err == nil:
			return o
		case apierrors.IsConflict(err):
			if found, err = s.refresh(ctx, found); err == nil {
				continue
			}
		}
		if apierrors.IsNotFound(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			return finished
		}
		logger.Error(err, "Failed to schedule, trying again")
		return failed
	}
	logger.Info("The binding keeps changing, trying again")
	return failed
}

// refresh reads the binding from the API server.
func (s *scheduler) refresh(ctx context.Context, b known) (known, error) {
	fresh := b.scope.New()
	if err := s.live.Get(ctx, types.NamespacedName{Namespace: b.GetNamespace(), Name: b.GetName()}, fresh); err != nil {
		return b, fmt.Errorf("reading %s: %w", core.Ref(b), err)
	}
	s.bindings.set(b.scope, fresh)
	b.Binding, b.owned = fresh, owned(fresh, s.options.SchedulerName)
	return b, nil
}

// once looks at a binding and does what is needed. It returns an error when a
// write failed or there is nothing to decide on; a decision that fails is an
// outcome.
func (s *scheduler) once(ctx context.Context, b known) (outcome, error) {
	if !b.owned && (b.GetSpec().Placement == nil || b.GetSpec().SchedulingSuspended() || !b.GetDeletionTimestamp().IsZero()) {
		return s.release(ctx, b)
	}
	if !b.GetDeletionTimestamp().IsZero() {
		s.deleting(b)
		return finished, nil
	}
	need, err := s.need(ctx, b)
	if err != nil {
		return failed, err
	}
	switch {
	case need.Due():
		return s.schedule(ctx, b, need)
	case !b.owned:
		return finished, nil
	default:
		return finished, s.confirm(ctx, b)
	}
}

// schedule decides about a binding and writes the decision.
func (s *scheduler) schedule(ctx context.Context, b known, need core.Need) (outcome, error) {
	start := s.clock.Now()
	decision, failure := s.decide(ctx, b)
	o, err := s.commit(ctx, b, &decision, failure)
	if apierrors.IsConflict(err) {
		return failed, err
	}
	result := "scheduled"
	if err != nil || o != finished {
		result = "error"
	}
	s.metrics.attempts.WithLabelValues(result, string(need.Type)).Inc()
	s.metrics.e2e.WithLabelValues(result, string(need.Type)).Observe(s.clock.Since(start).Seconds())
	return o, err
}

// decide has the core decide about a binding.
func (s *scheduler) decide(ctx context.Context, b known) (core.Decision, error) {
	snapshot := s.clusters.Snapshot()
	watch := s.metrics.watch(s.clock)
	request := &core.Request{
		Binding: framework.Binding{
			Namespace: b.GetNamespace(), Name: b.GetName(), Spec: b.GetSpec(), Status: b.GetStatus(), Peers: s.peersOf(b),
		},
		Profile:                  s.profiles.next(),
		EmptyWorkloadPropagation: s.options.EmptyWorkloadPropagation,
		MultiplePodTemplates:     s.multiplePodTemplates,
		Observe:                  watch.step,
	}
	if b.scope.Footprint {
		request.Assumed = s.assumed.others(keyOf(b))
	}
	if s.estimates != nil && core.UsesRoom(b.GetSpec()) {
		request.Estimates = s.estimates(ctx, request, s.estimated(snapshot))
	}
	decision, err := core.Schedule(snapshot, request)
	watch.done(err)
	return decision, err
}

// estimated returns the clusters whose estimators are asked.
func (s *scheduler) estimated(snapshot *framework.Snapshot) []*framework.Cluster {
	out := make([]*framework.Cluster, 0, snapshot.Len())
	for i := range snapshot.Len() {
		if c := snapshot.At(i); !c.Terminating {
			out = append(out, c.Cluster)
		}
	}
	return out
}

// outcomeOf says when a decision that failed is tried again. What only other
// clusters or more room can help waits for them.
func outcomeOf(failure error) outcome {
	_, spread := errors.AsType[*core.SpreadError](failure)
	switch {
	case spread, core.ClassOf(failure) == core.Unschedulable:
		return parked
	case core.ClassOf(failure) == core.NoClusterFit:
		return finished
	default:
		return failed
	}
}
