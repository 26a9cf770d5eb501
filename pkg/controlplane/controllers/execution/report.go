package execution

import (
	"cmp"
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
func (r *runner) report(ctx context.Context, t *turn) error {
	now, s := r.deps.Clock.Now(), t.state
	before := r.status.Current(t.work, &s.written)
	after := before.DeepCopy()
	change, err := r.describe(t, after, now)
	if equality.Semantic.DeepEqual(before, after) {
		s.dirtySince = time.Time{}
		r.debouncer.unchanged(t.work.Name, change, now)
		return err
	}
	if s.dirtySince.IsZero() {
		s.dirtySince = now
	}
	switch {
	case execution.Transitioned(before, after, workv1alpha1.WorkDispatching):
		change = execution.Stable
	case t.result != nil && t.result.Err != nil:
		change = execution.Failed
	}
	if wait := r.debouncer.delay(t.work.Name, change, now, s.dirtySince, s.written.At()); wait > 0 {
		t.again = controllers.Earliest(t.again, wait)
		return err
	}
	wrote, writeErr := r.status.Write(ctx, t.work, &s.written, func(status *workv1alpha1.WorkStatus) { *status = *after })
	if writeErr != nil || !wrote {
		return errors.Join(err, writeErr)
	}
	s.dirtySince = time.Time{}
	r.debouncer.backlog.Publish(t.work.Name)
	r.publish(t, before, after)
	t.again = controllers.Earliest(t.again, status.WrittenTTL) // to detect that the write was undone by a restore
	return err
}

// describe sets the status of a Work, and returns whether it is stable.
func (r *runner) describe(t *turn, status *workv1alpha1.WorkStatus, now time.Time) (change execution.Change, err error) {
	var res *execution.Result
	if t.result != nil {
		res = &t.result.Result
	}
	execution.SetConditions(t.work, status, res, now)
	fields, ports := t.state.contested()
	execution.SetContested(status, fields, ports, now)
	if t.member == nil || !execution.IsApplied(status) || len(t.state.objects) == 0 {
		return execution.Stable, nil
	}
	err = r.observe(t)
	return execution.SetObjects(status, t.state.statusObjects(), now), err
}

// observe updates the status of the objects of a Work.
func (r *runner) observe(t *turn) error {
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
func (r *runner) publish(t *turn, before, after *workv1alpha1.WorkStatus) {
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
func (r *runner) reportRemoving(ctx context.Context, t *turn, reason, message string) error {
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

// Policy bounds the delay of writes of the status of Works. Each of them causes others.
type Policy struct {
	// Failure is the time that a failure must last. Default 250 ms.
	Failure time.Duration
	// Stable is the time that objects have to become healthy: at least 1 s, up to 10 s
	// where they often need longer, and 200 ms up to 15 s more for each Work of the
	// cluster that waits too.
	Stable controllers.Debounce
	// Interval is the least time between two writes. Default 250 ms.
	Interval time.Duration
}

func (p Policy) complete() Policy {
	p.Failure = cmp.Or(max(p.Failure, 0), 250*time.Millisecond)
	p.Interval = cmp.Or(max(p.Interval, 0), 250*time.Millisecond)
	if p.Stable == (controllers.Debounce{}) {
		p.Stable = controllers.Debounce{
			Stable: time.Second, StableMax: 10 * time.Second,
			PerWaiting: 200 * time.Millisecond, PerWaitingMax: 15 * time.Second,
		}
	}
	return p
}

// delay returns the time until a status is written that differs since dirty from what
// was written at written. stable is the time that objects have to become healthy.
func (p Policy) delay(c execution.Change, now, dirty, written time.Time, stable time.Duration) time.Duration {
	due := dirty
	switch c {
	case execution.Failed:
		due = dirty.Add(p.Failure)
	case execution.Unstable:
		due = dirty.Add(stable)
	case execution.Stable:
	}
	if next := written.Add(p.Interval); next.After(due) {
		due = next
	}
	return max(0, due.Sub(now))
}

// debouncer delays writes of the status of the Works of one cluster.
type debouncer struct {
	policy  Policy
	backlog controllers.Backlog[string]
}

// delay returns the time until the status of a Work is written that differs since dirty from what was written at written. 0 means that it is
// written now.
func (d *debouncer) delay(work string, c execution.Change, now, dirty, written time.Time) time.Duration {
	var stable time.Duration
	switch c {
	case execution.Unstable:
		stable = d.backlog.Wait(work, now, d.policy.Stable)
	case execution.Stable:
		d.backlog.Done(work, now)
	case execution.Failed:
		d.backlog.Forget(work)
	}
	return d.policy.delay(c, now, dirty, written, stable)
}

// unchanged records that the status of a Work does not differ from what was written.
func (d *debouncer) unchanged(work string, c execution.Change, now time.Time) {
	if c == execution.Stable {
		d.backlog.Done(work, now)
	}
}

// forget drops what is known of a Work.
func (d *debouncer) forget(work string) { d.backlog.Forget(work) }
