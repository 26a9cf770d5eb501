package scheduler

import (
	"context"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/schedule/core"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

// Direct has bindings scheduled that controllers in the same process create or evict, with one write of the binding instead of two. The
// zero value schedules nothing until a scheduler with it as its option runs.
type Direct struct {
	running atomic.Pointer[scheduler]
}

// Evict schedules a binding as read, with a spec that lacks targets and has tasks for them instead, and writes the tasks
// together with the new targets. It reports whether it did: it does not if no scheduler runs, or if the binding is not to
// be scheduled, cannot be or waits to be. The caller then writes the tasks, and the scheduler handles the binding as any other.
func (e *Direct) Evict(ctx context.Context, s *scope.Binding, binding workv1alpha2.Binding, spec *workv1alpha2.ResourceBindingSpec) (bool, error) {
	running := e.running.Load()
	if running == nil {
		return false, nil
	}
	evicted := binding.DeepCopyObject().(workv1alpha2.Binding)
	*evicted.GetSpec() = *spec
	return running.evict(ctx, running.bindings.known(s, evicted))
}

// evict is Direct.Evict of a binding that has the tasks.
func (s *scheduler) evict(ctx context.Context, b known) (bool, error) {
	if !b.owned || !s.queue.Claim(keyOf(b)) {
		return false, nil
	}
	return s.direct(ctx, b, func(d *core.Decision) (known, error) {
		updated, _, err := s.writer.targets(ctx, b, d.Clusters, true)
		return updated, err
	})
}

// Create schedules a binding and creates it with its targets. It reports whether it did: it does not if no scheduler runs, if others of
// higher priority may wait, or if the binding is not to be scheduled, cannot be, or needs the answers of estimators. The caller then
// creates the binding, and the scheduler handles it as any other. The error is that of a binding which exists already.
func (e *Direct) Create(ctx context.Context, s *scope.Binding, binding workv1alpha2.Binding) (bool, error) {
	running := e.running.Load()
	if running == nil {
		return false, nil
	}
	return running.create(ctx, running.bindings.known(s, binding))
}

// create is Direct.Create.
func (s *scheduler) create(ctx context.Context, b known) (bool, error) {
	if !b.owned || s.decider.estimates != nil && core.UsesRoom(b.GetSpec()) || !s.queue.claimNew(keyOf(b)) {
		return false, nil
	}
	return s.direct(ctx, b, func(d *core.Decision) (known, error) { return s.writer.create(ctx, b, d.Clusters) })
}

// createdDelay is how long the status of a binding waits that was created with its targets: the first status of the clusters has that of
// the scheduler, too, which saves a write. Clusters that get many objects report later.
var createdDelay = controllers.Debounce{Stable: 10 * time.Second, PerWaiting: 200 * time.Millisecond, PerWaitingMax: 15 * time.Second}

// creation is when a binding was created with its targets, and its version.
type creation struct {
	version string
	at      time.Time
}

// confirmCreated writes the status of a binding that was created with its targets. It reports whether the status may wait instead: nothing
// else has changed since, see createdDelay.
func (s *scheduler) confirmCreated(ctx context.Context, b known) (known, bool, error) {
	k := keyOf(b)
	made, ok := s.bindings.created.Get(k)
	if !ok {
		return b, false, nil
	}
	if b.GetResourceVersion() == made.version && s.clock.Since(made.at) < s.bindings.waiting.Wait(k, made.at, createdDelay) {
		return b, true, nil
	}
	updated, err := s.writer.status(ctx, b, func(status *workv1alpha2.ResourceBindingStatus) { core.ConfirmCreated(b, status) })
	if err == nil {
		s.bindings.forgetCreated(k)
	}
	return updated, false, err
}

// direct schedules a binding that is claimed from the queue, and writes its targets and then its status; that of a new one follows, see
// createdDelay. It reports whether it wrote the targets, and returns only the errors of write that the caller needs to know: the binding is
// not as it was given.
func (s *scheduler) direct(ctx context.Context, b known, write func(*core.Decision) (known, error)) (bool, error) {
	k, before, isNew, result := keyOf(b), b.GetSpec().Clusters, b.GetResourceVersion() == "", finished
	defer func() { s.queue.Finish(k, result) }()
	defer s.peers.lock(b)()
	need, err := s.needs.of(ctx, b)
	if err != nil || !need.Due() {
		return false, nil // the queue tries again and reports it
	}
	start := s.clock.Now()
	decision, failure := s.decider.decide(ctx, b)
	if failure != nil {
		return false, nil // the queue decides again and reports it
	}
	updated, err := write(&decision)
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return false, err
	}
	if err != nil {
		return false, nil // a quota may refuse the targets; the caller writes the rest alone
	}
	s.committer.assumed.record(k, b.GetSpec(), before, decision.Clusters)
	if isNew && len(updated.GetSpec().Placement.ClusterAffinities) == 0 {
		s.bindings.created.Set(k, creation{updated.GetResourceVersion(), s.clock.Now()})
		s.recorder.scheduled(updated, decision.Clusters)
	} else if _, err := s.committer.scheduled(ctx, updated, &decision, true, false); err != nil {
		log.FromContext(ctx).V(2).Info("The status of a binding is written later", b.scope.Kind, k, "error", err)
		result = failed
	}
	s.metrics.attempts.WithLabelValues("scheduled", string(need.Type)).Inc()
	s.metrics.e2e.WithLabelValues("scheduled", string(need.Type)).Observe(s.clock.Since(start).Seconds())
	return true, nil
}
