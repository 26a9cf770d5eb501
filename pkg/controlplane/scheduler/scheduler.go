// Package scheduler is the role that decides which clusters get what. It keeps a
// snapshot of the clusters, queues the bindings that may need a decision, has the
// core decide, and commits the result: one patch of the binding and one of its
// status, and nothing at all when nothing has changed. Both scopes share one
// body. Several workers decide and write at the same time; a binding is never
// handled twice at once.
package scheduler

import (
	"context"
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/keymutex"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/karmada-toolkit/karmada/internal/gates"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/delivery"
	"github.com/karmada-toolkit/karmada/pkg/domain/schedule/core"
	"github.com/karmada-toolkit/karmada/pkg/domain/schedule/framework"
)

// deps are what a scheduler works with.
type deps struct {
	client  client.Client
	live    client.Reader
	events  record.EventRecorder
	clock   clock.WithTicker
	metrics *metrics
	// registry is for the metrics of the queue; nil for none.
	registry prometheus.Registerer
}

// scheduler is the shell around the core: it takes a binding off the queue, finds
// out what it needs, decides and commits.
type scheduler struct {
	clock     clock.WithTicker
	metrics   *metrics
	queue     *queue
	bindings  *bindings
	observer  *observer
	needs     *needs
	peers     *peers
	decider   *decider
	writer    *writer
	recorder  *recorder
	committer *committer
	prober    *prober
}

func newScheduler(o *Options, d deps) (*scheduler, error) {
	registry, err := o.registry()
	if err != nil {
		return nil, err
	}
	enabled, err := registry.New(o.Plugins)
	if err != nil {
		return nil, err
	}
	profiles, err := newProfiles(enabled, d.metrics, d.clock)
	if err != nil {
		return nil, err
	}
	multiplePodTemplates := o.Gates.Enabled(gates.MultiplePodTemplatesScheduling)
	clusters := &clusters{facts: framework.Facts{ResourceModels: o.Gates.Enabled(gates.CustomizedClusterResourceModeling)}}
	assumed := &assumptions{enabled: o.Gates.Enabled(gates.SchedulingOvercommitProtection), clock: d.clock}
	s := &scheduler{
		clock: d.clock, metrics: d.metrics, queue: newQueue(o, d.clock, d.registry), bindings: newBindings(o.SchedulerName, d.clock),
		recorder: &recorder{events: d.events, mode: o.Events},
	}
	s.needs = &needs{schedulerName: o.SchedulerName, clusters: clusters, live: d.live, multiplePodTemplates: multiplePodTemplates}
	s.observer = &observer{
		schedulerName: o.SchedulerName, clusters: clusters, bindings: s.bindings, assumed: assumed, needs: s.needs,
		queue: s.queue, metrics: d.metrics,
	}
	s.peers = &peers{enabled: o.Gates.Enabled(gates.WorkloadAffinity), bindings: s.bindings, groups: keymutex.NewHashed(0)}
	s.decider = &decider{
		clusters: clusters, peers: s.peers, assumed: assumed, profiles: profiles, clock: d.clock, metrics: d.metrics,
		emptyWorkloadPropagation: o.EmptyWorkloadPropagation, multiplePodTemplates: multiplePodTemplates,
	}
	s.prober = &prober{decider: s.decider, queue: s.queue, bindings: s.bindings, clock: d.clock}
	s.writer = &writer{client: d.client, live: d.live, bindings: s.bindings, statuses: delivery.NewStatusWriter(d.client, d.live, d.clock)}
	s.committer = &committer{
		writer: s.writer, recorder: s.recorder, assumed: assumed, clock: d.clock,
		quotas: o.Gates.Enabled(gates.FederatedQuotaEnforcement),
	}
	return s, nil
}

// work schedules bindings until the queue is closed.
func (s *scheduler) work(ctx context.Context) {
	for {
		k, shutdown := s.queue.Get()
		if shutdown {
			return
		}
		o := s.handle(ctx, k)
		if o != finished && o != delayed {
			s.metrics.incoming.WithLabelValues(eventFailure).Inc()
		}
		s.queue.Finish(k, o)
	}
}

// handle schedules one binding. If others write it meanwhile, it is read again and
// scheduled again.
func (s *scheduler) handle(ctx context.Context, k key) outcome {
	found, ok := s.bindings.get(k)
	if !ok {
		return finished
	}
	defer s.peers.lock(found)()
	logger := log.FromContext(ctx).WithValues(found.scope.Kind, klog.KRef(k.Namespace, k.Name))
	for range attempts {
		o, err := s.scheduleOne(ctx, found)
		switch {
		case err == nil:
			return o
		case apierrors.IsConflict(err):
			if found, err = s.writer.refresh(ctx, found); err == nil {
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

// scheduleOne finds out what a version of a binding needs, and does it. It returns
// an error if a write failed or the need is unknown; a decision that fails is an
// outcome.
func (s *scheduler) scheduleOne(ctx context.Context, b known) (outcome, error) {
	if !b.owned && (b.GetSpec().Placement == nil || b.GetSpec().SchedulingSuspended() || !b.GetDeletionTimestamp().IsZero()) {
		return s.release(ctx, b)
	}
	if !b.GetDeletionTimestamp().IsZero() {
		s.recorder.deleting(b)
		return finished, nil
	}
	b, wait, err := s.confirmCreated(ctx, b)
	if err != nil || wait {
		return delayed, err
	}
	need, err := s.needs.of(ctx, b)
	if err != nil {
		return failed, err
	}
	switch {
	case need.Due():
		return s.schedule(ctx, b, need)
	case !b.owned:
		return finished, nil
	case !unconfirmed(b):
		return finished, s.committer.confirm(ctx, b)
	case len(b.GetSpec().Placement.ClusterAffinities) > 0: // the status has the term that the targets come from
		return s.schedule(ctx, b, core.Need{Cause: core.CausePlacement, Type: core.ReconcileSchedule})
	default:
		return s.committer.scheduled(ctx, b, &core.Decision{Clusters: b.GetSpec().Clusters}, false, false)
	}
}

// unconfirmed reports whether a binding that needs no decision lacks the condition of its result: the scheduler ended, or
// a write failed, between the targets and the status; or what could not be scheduled was taken back.
func unconfirmed(b known) bool {
	return len(b.GetSpec().Clusters) > 0 && !meta.IsStatusConditionTrue(b.GetStatus().Conditions, workv1alpha2.Scheduled)
}

// schedule decides about a binding and commits the decision.
func (s *scheduler) schedule(ctx context.Context, b known, need core.Need) (outcome, error) {
	start := s.clock.Now()
	decision, failure := s.decider.decide(ctx, b)
	o, err := s.committer.commit(ctx, b, &decision, failure)
	if apierrors.IsConflict(err) {
		return failed, err
	}
	if failure != nil && o == parked {
		s.prober.record(keyOf(b), decision.Estimates())
	}
	result := "scheduled"
	if err != nil || o != finished {
		result = "error"
	}
	s.metrics.attempts.WithLabelValues(result, string(need.Type)).Inc()
	s.metrics.e2e.WithLabelValues(result, string(need.Type)).Observe(s.clock.Since(start).Seconds())
	return o, err
}

// release removes the clusters that leave from the targets of a binding that is not
// scheduled.
func (s *scheduler) release(ctx context.Context, b known) (outcome, error) {
	if !assigned(b, s.needs.schedulerName) || !b.GetDeletionTimestamp().IsZero() {
		return finished, nil
	}
	leaving, err := s.needs.leaving(ctx, b)
	if err != nil || len(leaving) == 0 {
		return finished, err
	}
	if err := s.writer.removeTargets(ctx, b, leaving); client.IgnoreNotFound(err) != nil {
		return failed, err
	}
	return finished, nil
}

// outcomeOf returns when a decision that failed is tried again. What only other
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
