package execution

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/karmada-toolkit/karmada/internal/status"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/execution/member"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/execution/workstatus"
)

// statusWriter writes the status of Works.
type statusWriter = status.Writer[*workv1alpha1.Work, *workv1alpha1.WorkStatus]

func newStatusWriter(c *Controller) *statusWriter {
	return status.NewWriter(status.Options[*workv1alpha1.Work, *workv1alpha1.WorkStatus]{
		Get:    func(w *workv1alpha1.Work) *workv1alpha1.WorkStatus { return &w.Status },
		Client: c.client, Clock: c.deps.Clock,
	})
}

// reporter writes the status of the Works of one cluster and publishes their events.
type reporter struct {
	c         *Controller
	cluster   string
	debouncer *workstatus.Debouncer
}

// report is what the status of a Work is computed from, beside its objects.
type report struct {
	suspended bool
	// reachable reports that the objects can be observed.
	reachable bool
	// result is how the objects were applied; nil if that was not tried.
	result *result
}

// report writes the status of a Work if it differs from the stored one and is due. It
// returns when to report again.
func (r *reporter) report(ctx context.Context, work *workv1alpha1.Work, s *workState, rep report) (time.Duration, error) {
	now := r.c.deps.Clock.Now()
	before := r.c.status.Current(work, &s.written)
	after := before.DeepCopy()
	facts := workstatus.Facts{Generation: work.Generation, Suspended: rep.suspended}
	if rep.result != nil {
		facts.Result = &rep.result.Result
	}
	workstatus.SetConditions(after, facts, now)
	workstatus.SetContested(after, s.contested(), now)
	var err error
	change := workstatus.Stable
	if rep.reachable && workstatus.Applied(after) && len(s.objects) > 0 {
		err = r.observe(work, s, rep.suspended)
		change = workstatus.SetObjects(after, s.statusObjects(), now)
	}
	if equality.Semantic.DeepEqual(before, after) {
		s.dirtySince = time.Time{}
		r.debouncer.Unchanged(work.Name, change, now)
		return 0, err
	}
	if s.dirtySince.IsZero() {
		s.dirtySince = now
	}
	switch {
	case workstatus.Transitioned(before, after, workv1alpha1.WorkDispatching):
		change = workstatus.Stable
	case rep.result != nil && rep.result.Err != nil:
		change = workstatus.Failed
	}
	if wait := r.debouncer.Delay(work.Name, change, now, s.dirtySince, s.written.At()); wait > 0 {
		return wait, err
	}
	wrote, writeErr := r.c.status.Write(ctx, work, &s.written, func(status *workv1alpha1.WorkStatus) { *status = *after })
	if writeErr != nil || !wrote {
		return 0, errors.Join(err, writeErr)
	}
	s.dirtySince = time.Time{}
	r.debouncer.Written(work.Name)
	r.publish(work, before, after, rep)
	return status.WrittenTTL, err // to detect that the write was undone by a restore
}

// observe updates the status of the objects of a Work.
func (r *reporter) observe(work *workv1alpha1.Work, s *workState, suspended bool) error {
	var errs []error
	for _, o := range s.objects {
		if o.informer == nil {
			continue
		}
		view := o.informer.Get(o.key)
		snapshot, revision := o.applied.Latest(view.Snapshot), r.c.revisions.of(o.gvk)
		switch {
		case snapshot == nil && suspended && view.Synced:
			o.observed = o.observed.Missing()
		case snapshot != nil && !o.observed.UpToDate(snapshot, revision):
			errs = append(errs, r.observeObject(work, s, o, snapshot, revision))
		}
	}
	return errors.Join(errs...)
}

func (r *reporter) observeObject(work *workv1alpha1.Work, s *workState, o *object, snapshot *member.Snapshot, revision uint64) error {
	observed, events, err := workstatus.Observe(r.c.interpreter(r.cluster), o.gvk, o.key, o.observed, snapshot, revision)
	o.observed = observed
	for _, e := range events {
		if e.Type == corev1.EventTypeNormal || s.isNews(e.Reason, o.key.String(), e.Message) {
			r.c.events.objectObserved(work, e)
		}
	}
	return err
}

// publish records the events about a status that was written.
func (r *reporter) publish(work *workv1alpha1.Work, before, after *workv1alpha1.WorkStatus, rep report) {
	if workstatus.Transitioned(before, after, workv1alpha1.WorkDispatching) {
		r.c.events.dispatching(work, meta.FindStatusCondition(after.Conditions, workv1alpha1.WorkDispatching).Message)
	}
	if r.c.events.all && meta.FindStatusCondition(before.Conditions, workv1alpha1.WorkDispatching) == nil && !rep.suspended {
		r.c.events.dispatching(work, workv1alpha1.WorkDispatchingMessage)
	}
	if rep.result == nil {
		return
	}
	old := meta.FindStatusCondition(before.Conditions, workv1alpha1.WorkApplied)
	if rep.result.Err == nil {
		if now := meta.FindStatusCondition(after.Conditions, workv1alpha1.WorkApplied); now != nil && !rep.result.Incomplete &&
			(old == nil || old.Status != now.Status || old.ObservedGeneration != now.ObservedGeneration) {
			r.c.events.workApplied(work, r.cluster)
		}
		return
	}
	if old == nil || old.Status != metav1.ConditionFalse || old.Message != rep.result.Message() {
		r.c.events.failed(work, rep.result.failed, r.cluster, member.Text(rep.result.Err.Error()))
	}
}
