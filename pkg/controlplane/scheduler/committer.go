package scheduler

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/utils/clock"

	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/schedule/core"
)

// committer writes decisions to bindings, and records events about them.
type committer struct {
	writer   *writer
	recorder *recorder
	assumed  *assumptions
	clock    clock.PassiveClock
	// quotas is set when bindings that a quota refused wait for the quota.
	quotas bool
}

// commit writes what was decided about a binding.
func (c *committer) commit(ctx context.Context, b known, d *core.Decision, failure error) (outcome, error) {
	switch {
	case failure == nil:
		return c.succeed(ctx, b, d)
	case core.ClassOf(failure) == core.NoClusterFit:
		return c.clear(ctx, b, d, failure)
	default:
		return outcomeOf(failure), c.fail(ctx, b, d, string(core.ClassOf(failure)), withEstimators(withRoom(b, failure, d), d))
	}
}

// withRoom returns the message of a failure. If the clusters lack room it says which has how much, bound by what, and how to see
// it of all.
func withRoom(b known, failure error, d *core.Decision) string {
	message := failure.Error()
	room := d.Room()
	if room == "" {
		return message
	}
	ref := b.GetSpec().Resource
	workload := strings.ToLower(ref.Kind) + "/" + ref.Name
	if ref.Namespace != "" {
		workload += " -n " + ref.Namespace
	}
	return fmt.Sprintf("%s. Room for more: %s; see \"karmadactl capacity --for %s\".", strings.TrimSuffix(message, "."), room, workload)
}

// withEstimators adds to the message about a decision which estimators did not answer.
func withEstimators(message string, d *core.Decision) string {
	if problem := d.Unestimated(); problem != "" {
		return strings.TrimSuffix(message, ".") + ". " + problem
	}
	return message
}

// succeed writes the targets and the condition of success.
func (c *committer) succeed(ctx context.Context, b known, d *core.Decision) (outcome, error) {
	updated, changed, err := c.writer.targets(ctx, b, d.Clusters, false)
	if err != nil {
		return c.notWritten(ctx, b, d, err)
	}
	if changed {
		c.assumed.record(keyOf(b), b.GetSpec(), b.GetSpec().Clusters, d.Clusters)
	}
	return c.scheduled(ctx, updated, d, changed, rescheduled(b))
}

// scheduled writes the condition of success to a binding that has its targets; changed reports whether it has others than
// before, and rescheduled whether a reschedule was triggered.
func (c *committer) scheduled(ctx context.Context, updated known, d *core.Decision, changed, rescheduled bool) (outcome, error) {
	renew := changed || rescheduled
	news := changed || rescheduled && c.recorder.mode.All()
	updated, err := c.writer.status(ctx, updated, func(status *workv1alpha2.ResourceBindingStatus) {
		if c.setScheduled(status, metav1.ConditionTrue, workv1alpha2.BindingReasonSuccess, withEstimators(workv1alpha2.ScheduledSuccessMessage, d)) {
			renew, news = true, true
		}
		// The generation of the scheduler's own result needs no further scheduling.
		status.SchedulerObservedGeneration = updated.GetGeneration()
		if d.AffinityName != "" && d.AffinityName != status.SchedulerObservedAffinityName {
			status.SchedulerObservedAffinityName, renew = d.AffinityName, true
		}
		if renew {
			status.LastScheduledTime = &metav1.Time{Time: c.clock.Now()}
		}
	})
	if err != nil {
		return failed, err
	}
	if news {
		c.recorder.termsFailed(updated, d)
		c.recorder.scheduled(updated, d.Clusters)
	}
	return finished, nil
}

// notWritten records why the targets could not be written. A binding that a quota refused waits for the quota.
func (c *committer) notWritten(ctx context.Context, b known, d *core.Decision, err error) (outcome, error) {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return failed, err
	}
	reason, message := workv1alpha2.BindingReasonSchedulerError, err.Error()
	if denied, ok := quotaExceeded(err); ok {
		reason, message = workv1alpha2.BindingReasonQuotaExceeded, denied
		if c.quotas {
			return parked, c.fail(ctx, b, d, reason, message)
		}
	}
	return failed, errors.Join(err, c.fail(ctx, b, d, reason, message))
}

// rescheduled reports whether an explicit reschedule is pending: one that is not
// older than the last scheduling. Both times are whole seconds.
func rescheduled(b known) bool {
	at, last := b.GetSpec().RescheduleTriggeredAt, b.GetStatus().LastScheduledTime
	return at != nil && last != nil && !at.Time.Before(last.Time)
}

// clear removes all targets and writes that no cluster fits.
func (c *committer) clear(ctx context.Context, b known, d *core.Decision, failure error) (outcome, error) {
	reason := string(core.NoClusterFit)
	updated, _, err := c.writer.targets(ctx, b, nil, false)
	if err != nil {
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			return failed, err
		}
		message := utilerrors.NewAggregate([]error{failure, err}).Error()
		return failed, errors.Join(err, c.fail(ctx, b, d, reason, message))
	}
	c.assumed.record(keyOf(b), b.GetSpec(), b.GetSpec().Clusters, nil)
	return finished, c.fail(ctx, updated, d, reason, failure.Error())
}

// longestMessage is what the API takes as the message of a condition.
const longestMessage = 32768

// fail writes why the binding is not scheduled, unless the condition has that.
func (c *committer) fail(ctx context.Context, b known, d *core.Decision, reason, message string) error {
	if len(message) > longestMessage {
		message = strings.ToValidUTF8(message[:longestMessage-len("…")], "") + "…"
	}
	news := false
	b, err := c.writer.status(ctx, b, func(status *workv1alpha2.ResourceBindingStatus) {
		news = c.setScheduled(status, metav1.ConditionFalse, reason, message)
	})
	if err == nil && news {
		c.recorder.termsFailed(b, d)
		c.recorder.notScheduled(b, message)
	}
	return err
}

// confirm records that the binding needs nothing.
func (c *committer) confirm(ctx context.Context, b known) error {
	_, err := c.writer.status(ctx, b, func(status *workv1alpha2.ResourceBindingStatus) {
		status.SchedulerObservedGeneration = b.GetGeneration()
	})
	return err
}

// setScheduled sets the condition and reports whether it was different.
func (c *committer) setScheduled(status *workv1alpha2.ResourceBindingStatus, is metav1.ConditionStatus, reason, message string) bool {
	return meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: workv1alpha2.Scheduled, Status: is, Reason: reason, Message: message, LastTransitionTime: metav1.Time{Time: c.clock.Now()},
	})
}

// reasonQuotaExceeded is the reason with which admission refuses a result.
const reasonQuotaExceeded metav1.StatusReason = "QuotaExceeded"

// quotaExceeded returns the message of a write that a quota refused.
func quotaExceeded(err error) (string, bool) {
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Code == http.StatusForbidden && status.Status().Reason == reasonQuotaExceeded {
		return status.Status().Message, true
	}
	return "", false
}
