package execution

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/status"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/domain/execution"
)

// statusWriter writes the status of Works.
type statusWriter = status.Writer[*workv1alpha1.Work, *workv1alpha1.WorkStatus]

// report writes the status of a Work if it differs from the stored one and is due, and publishes its events.
func (r *runner) report(ctx context.Context, t *reconciliation) error {
	now, s := r.deps.Clock.Now(), t.state
	before := r.status.Current(t.work, &s.written)
	after := before.DeepCopy()
	change, err := r.describe(t, after, now)
	if equality.Semantic.DeepEqual(before, after) {
		s.dirtySince = time.Time{}
		r.debouncer.Unchanged(t.work.Name, change, now)
		return err
	}
	if s.dirtySince.IsZero() {
		s.dirtySince = now
	}
	switch {
	case execution.Transitioned(before, after, workv1alpha1.WorkDispatching):
		change = controllers.Stable
	case t.result != nil && t.result.Err != nil:
		change = controllers.Failed
	}
	if wait := r.debouncer.Due(t.work.Name, change, 0, s.dirtySince, s.written.At(), now).Sub(now); wait > 0 {
		t.again = controllers.Earliest(t.again, wait)
		return err
	}
	wrote, writeErr := r.status.Write(ctx, t.work, &s.written, func(status *workv1alpha1.WorkStatus) { *status = *after })
	if writeErr != nil || !wrote {
		return errors.Join(err, writeErr)
	}
	s.dirtySince = time.Time{}
	r.debouncer.Publish(t.work.Name)
	r.publish(t, before, after)
	t.again = controllers.Earliest(t.again, status.WrittenTTL) // to detect that the write was undone by a restore
	return err
}

// describe sets the status of a Work, and returns whether it is stable.
func (r *runner) describe(t *reconciliation, status *workv1alpha1.WorkStatus, now time.Time) (change controllers.Change, err error) {
	var res *execution.Result
	if t.result != nil {
		res = &t.result.Result
	}
	execution.SetConditions(t.work, status, res, now)
	fields, ports := t.state.contested()
	execution.SetContested(status, fields, ports, now)
	if t.member == nil || !execution.IsApplied(status) || len(t.state.objects) == 0 {
		return controllers.Stable, nil
	}
	err = r.observe(t)
	if !execution.SetObjects(status, t.state.statusObjects(), now) {
		change = controllers.Unstable
	}
	return change, err
}

// observe updates the status of the objects of a Work.
func (r *runner) observe(t *reconciliation) error {
	var errs []error
	for _, o := range t.state.objects {
		if o.kind == nil {
			continue
		}
		view, revision := r.view(o.kind, o.key)
		snapshot := o.applied.Latest(view.Snapshot)
		switch {
		case snapshot == nil && t.step == execution.StepObserve && view.Synced:
			o.observed = o.observed.Missing()
		case snapshot != nil && !o.observed.UpToDate(snapshot, revision):
			observed, events, err := execution.Observe(r.rules, o.gvk, o.key, o.observed, snapshot, revision)
			o.observed, errs = observed, append(errs, err)
			for _, e := range events {
				if e.Type == corev1.EventTypeNormal || t.state.isNews(e.Reason, o.key.String(), e.Message) {
					r.events.objectObserved(t.work, e)
				}
			}
		}
	}
	return errors.Join(errs...)
}

// publish records the events about a status that was written.
func (r *runner) publish(t *reconciliation, before, after *workv1alpha1.WorkStatus) {
	if execution.Transitioned(before, after, workv1alpha1.WorkDispatching) {
		r.events.dispatching(t.work, meta.FindStatusCondition(after.Conditions, workv1alpha1.WorkDispatching).Message)
	}
	if dispatched := meta.IsStatusConditionTrue(after.Conditions, workv1alpha1.WorkDispatching); r.events.all && dispatched &&
		meta.FindStatusCondition(before.Conditions, workv1alpha1.WorkDispatching) == nil {
		r.events.dispatching(t.work, workv1alpha1.WorkDispatchingMessage)
	}
	if portsTakenAnew(before, after) != "" {
		r.events.nodePorts(t.work, t.state, r.cluster)
	}
	old, now := meta.FindStatusCondition(before.Conditions, workv1alpha1.WorkApplied), meta.FindStatusCondition(after.Conditions, workv1alpha1.WorkApplied)
	switch anew := appliedAnew(old, now); {
	case t.result == nil || !anew:
	case t.result.Err != nil:
		r.events.failed(t.work, t.result.failed, r.cluster, execution.Text(t.result.Err.Error()))
	case !t.result.Incomplete:
		r.events.workApplied(t.work, r.cluster)
	}
}

// reportRemoving records that the objects of a Work that is being deleted stay in the cluster, and why.
func (r *runner) reportRemoving(ctx context.Context, t *reconciliation, reason, message string) error {
	message = execution.Text(message)
	r.deps.Stuck.set(r.cluster, stuckRemoval, t.work.Name, message)
	old := meta.FindStatusCondition(r.status.Current(t.work, &t.state.written).Conditions, workv1alpha1.WorkRemoved)
	if old != nil && old.Reason == reason && old.Message == message {
		return nil
	}
	_, err := r.status.Write(ctx, t.work, &t.state.written, func(status *workv1alpha1.WorkStatus) {
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{
			Type: workv1alpha1.WorkRemoved, Status: metav1.ConditionFalse, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(r.deps.Clock.Now()),
		})
	})
	r.events.applied.Event(t.work, corev1.EventTypeWarning, reason, fmt.Sprintf("The objects of work(%s/%s) stay in cluster(%s): %s", t.work.Namespace, t.work.Name, r.cluster, message))
	return err
}

// newDebouncer returns what delays the writes of the status of the Works of one cluster. Objects have at least 1 s to become healthy, up to 10 s where
// they often need longer, and 200 ms up to 15 s more for each Work of the cluster that waits too.
func newDebouncer() *controllers.Debouncer[string] {
	return &controllers.Debouncer[string]{Failure: 250 * time.Millisecond, Interval: 250 * time.Millisecond, Stable: controllers.Debounce{
		Stable: time.Second, StableMax: 10 * time.Second, PerWaiting: 200 * time.Millisecond, PerWaitingMax: 15 * time.Second,
	}}
}
