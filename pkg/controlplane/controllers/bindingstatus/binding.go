package bindingstatus

import (
	"cmp"
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/status"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/delivery"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/env"
	"github.com/karmada-toolkit/karmada/pkg/domain/eviction"
	"github.com/karmada-toolkit/karmada/pkg/domain/schedule/core"
)

// bindingState is the state of the status of one binding.
type bindingState struct {
	written status.Written[*workv1alpha2.ResourceBindingStatus]
	// dirtySince is the time when the status first differed from the written one.
	dirtySince time.Time
	// revision is that of the Works, and changed when it was first seen.
	revision uint64
	changed  time.Time
}

// observe records when the Works changed.
func (s *bindingState) observe(revision uint64, now time.Time) {
	if s.revision != revision {
		s.revision, s.changed = revision, now
	}
}

// bindings writes the status of bindings when the Policy allows it.
type bindings struct {
	policy    Policy
	debouncer *controllers.Debouncer[types.NamespacedName]
	clock     clock.PassiveClock
	writer    *delivery.StatusWriter
	// evictions is nil if no task ends here.
	evictions *evictions
	// confirm is set if bindings are created with their targets in this process: the first status has what the scheduler reports of these,
	// too.
	confirm bool
}

func newBindings(e *env.Env, o Options) *bindings {
	policy := cmp.Or(o.Policy, DefaultPolicy())
	return &bindings{
		policy: policy, debouncer: policy.debouncer(), confirm: e.Scheduler != nil, clock: e.Clock, writer: delivery.NewStatusWriter(e.Client, e.Live, e.Clock),
	}
}

// current returns the status of a binding as it is stored, as far as is known.
func (w *bindings) current(binding workv1alpha2.Binding, s *bindingState) *workv1alpha2.ResourceBindingStatus {
	return w.writer.Current(binding, &s.written)
}

// result is the result of write.
type result struct {
	// wrote is set if the status was written, and items if its items changed.
	wrote, items bool
	// completed is set if it became complete.
	completed bool
	// delay is the time until the status is to be written, if it is not yet, and that of the template.
	delay time.Duration
}

// write writes the status of a binding if it differs and its delay is over.
func (w *bindings) write(ctx context.Context, binding workv1alpha2.Binding, s *bindingState, sum *summary) (result, error) {
	now, key := w.clock.Now(), client.ObjectKeyFromObject(binding)
	s.observe(sum.revision, now)
	before := w.current(binding, s)
	same := sameItems(before.AggregatedStatus, sum.items)
	condition := fullyAppliedCondition(sum, now)
	unchanged := same && sameConditions(before, &condition, sum.contested)
	if unchanged && !sum.moving {
		s.dirtySince = time.Time{}
		change, _ := w.policy.change(sum)
		w.debouncer.Unchanged(key, change, now)
		return result{}, nil
	}
	if s.dirtySince.IsZero() {
		s.dirtySince = now
	}
	t := times{dirty: s.dirtySince, changed: s.changed, written: s.written.At()}
	if delay := w.policy.delay(w.debouncer, key, sum, now, t); delay > 0 {
		return result{delay: delay}, nil
	}
	if unchanged {
		return result{}, nil
	}
	completed := complete(sum.want, sum.items) && !complete(sum.want, before.AggregatedStatus)
	binding, confirmed, err := w.endEvictions(ctx, binding, sum, now)
	if err != nil {
		return result{}, err
	}
	wrote, err := w.writer.Write(ctx, binding, &s.written, func(status *workv1alpha2.ResourceBindingStatus) {
		status.AggregatedStatus = sum.items
		status.SchedulerObservedGeneration = max(status.SchedulerObservedGeneration, confirmed)
		if sum.items == nil {
			status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{}
		}
		if w.confirm {
			core.ConfirmCreated(binding, status)
		}
		meta.SetStatusCondition(&status.Conditions, condition)
		setContested(status, sum.contested, sum.contestedReason, now)
	})
	if err != nil {
		return result{}, err
	}
	s.dirtySince = time.Time{}
	w.debouncer.Publish(key)
	return result{wrote: wrote, items: !same, completed: completed}, nil
}

// endEvictions ends the eviction tasks that end because of a summary, see evictions.end.
func (w *bindings) endEvictions(ctx context.Context, binding workv1alpha2.Binding, sum *summary, now time.Time) (workv1alpha2.Binding, int64, error) {
	if w.evictions == nil || sum.progress != stable || len(binding.GetSpec().GracefulEvictionTasks) == 0 {
		return binding, 0, nil
	}
	return w.evictions.end(ctx, binding, eviction.GracefulFacts{Now: now, Status: &workv1alpha2.ResourceBindingStatus{
		SchedulerObservedGeneration: binding.GetStatus().SchedulerObservedGeneration, AggregatedStatus: sum.items,
	}})
}

// sameConditions reports whether a status has the condition FullyApplied, and Contested with a message, or not if that is empty.
func sameConditions(status *workv1alpha2.ResourceBindingStatus, applied *metav1.Condition, contested string) bool {
	message := ""
	if condition := meta.FindStatusCondition(status.Conditions, workv1alpha1.WorkContested); condition != nil {
		message = condition.Message
	}
	old := meta.FindStatusCondition(status.Conditions, workv1alpha2.FullyApplied)
	return old != nil && old.Status == applied.Status && old.Reason == applied.Reason && old.Message == applied.Message && message == contested
}

// setContested sets the condition Contested, or removes it if there is no message.
func setContested(status *workv1alpha2.ResourceBindingStatus, message, reason string, now time.Time) {
	if message == "" {
		meta.RemoveStatusCondition(&status.Conditions, workv1alpha1.WorkContested)
		return
	}
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: workv1alpha1.WorkContested, Status: metav1.ConditionTrue, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(now),
	})
}

func fullyAppliedCondition(sum *summary, now time.Time) metav1.Condition {
	c := metav1.Condition{Type: workv1alpha2.FullyApplied, LastTransitionTime: metav1.NewTime(now)}
	switch {
	case sum.fullyApplied:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, workv1alpha2.FullyAppliedSuccessReason, workv1alpha2.FullyAppliedSuccessMessage
	case !sum.targeted:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, workv1alpha2.FullyAppliedFailedReason, workv1alpha2.FullyAppliedNoTargetMessage
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, workv1alpha2.FullyAppliedFailedReason, workv1alpha2.FullyAppliedFailedMessage
	}
	return c
}
