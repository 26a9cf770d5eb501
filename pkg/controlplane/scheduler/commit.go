package scheduler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/scheduler/core"
)

// commit writes what was decided about a binding.
func (s *scheduler) commit(ctx context.Context, b known, d *core.Decision, failure error) (outcome, error) {
	switch {
	case failure == nil:
		return s.succeed(ctx, b, d)
	case core.ClassOf(failure) == core.NoClusterFit:
		return s.clear(ctx, b, d, failure)
	default:
		return outcomeOf(failure), s.fail(ctx, b, d, string(core.ClassOf(failure)), failure.Error())
	}
}

// succeed writes the targets and that all is well.
func (s *scheduler) succeed(ctx context.Context, b known, d *core.Decision) (outcome, error) {
	updated, changed, err := s.writeTargets(ctx, b, d.Clusters)
	if err != nil {
		return s.notWritten(ctx, b, d, err)
	}
	if changed {
		s.assumed.record(keyOf(b), b.GetSpec(), b.GetSpec().Clusters, d.Clusters)
	}
	rescheduled := rescheduled(b)
	renew := changed || rescheduled
	news := changed || rescheduled && s.options.Events.All()
	updated, err = s.writeStatus(ctx, updated, func(status *workv1alpha2.ResourceBindingStatus) {
		if s.setScheduled(status, metav1.ConditionTrue, workv1alpha2.BindingReasonSuccess, workv1alpha2.ScheduledSuccessMessage) {
			renew, news = true, true
		}
		// The generation that the scheduler's own result has needs no second look.
		status.SchedulerObservedGeneration = updated.GetGeneration()
		if d.AffinityName != "" && d.AffinityName != status.SchedulerObservedAffinityName {
			status.SchedulerObservedAffinityName, renew = d.AffinityName, true
		}
		if renew {
			status.LastScheduledTime = &metav1.Time{Time: s.clock.Now()}
		}
	})
	if err != nil {
		return failed, err
	}
	if news {
		s.termsFailed(updated, d)
		s.scheduled(updated, d.Clusters)
	}
	return finished, nil
}

// notWritten records why the targets could not be written. A binding that a quota refused waits for the quota.
func (s *scheduler) notWritten(ctx context.Context, b known, d *core.Decision, err error) (outcome, error) {
	if gone(err) || apierrors.IsConflict(err) {
		return failed, err
	}
	reason, message := workv1alpha2.BindingReasonSchedulerError, err.Error()
	if denied, ok := quotaExceeded(err); ok {
		reason, message = workv1alpha2.BindingReasonQuotaExceeded, denied
		if s.watchesQuotas() {
			return parked, s.fail(ctx, b, d, reason, message)
		}
	}
	return failed, errors.Join(err, s.fail(ctx, b, d, reason, message))
}

// rescheduled reports whether an explicit reschedule is pending: one that is not
// older than the last scheduling. Both times are whole seconds.
func rescheduled(b known) bool {
	at, last := b.GetSpec().RescheduleTriggeredAt, b.GetStatus().LastScheduledTime
	return at != nil && last != nil && !at.Time.Before(last.Time)
}

// clear takes all targets away and says that no cluster fits.
func (s *scheduler) clear(ctx context.Context, b known, d *core.Decision, failure error) (outcome, error) {
	reason := string(core.NoClusterFit)
	updated, _, err := s.writeTargets(ctx, b, nil)
	if err != nil {
		if gone(err) || apierrors.IsConflict(err) {
			return failed, err
		}
		message := utilerrors.NewAggregate([]error{failure, err}).Error()
		return failed, errors.Join(err, s.fail(ctx, b, d, reason, message))
	}
	s.assumed.record(keyOf(b), b.GetSpec(), b.GetSpec().Clusters, nil)
	return finished, s.fail(ctx, updated, d, reason, failure.Error())
}

// longestMessage is what the API takes as the message of a condition.
const longestMessage = 32768

// fail says why the binding is not scheduled, if that is not said already.
func (s *scheduler) fail(ctx context.Context, b known, d *core.Decision, reason, message string) error {
	if len(message) > longestMessage {
		message = strings.ToValidUTF8(message[:longestMessage-len("…")], "") + "…"
	}
	news := false
	b, err := s.writeStatus(ctx, b, func(status *workv1alpha2.ResourceBindingStatus) {
		news = s.setScheduled(status, metav1.ConditionFalse, reason, message)
	})
	if err == nil && news {
		s.termsFailed(b, d)
		s.notScheduled(b, message)
	}
	return err
}

// confirm records that the binding needs nothing.
func (s *scheduler) confirm(ctx context.Context, b known) error {
	_, err := s.writeStatus(ctx, b, func(status *workv1alpha2.ResourceBindingStatus) {
		status.SchedulerObservedGeneration = b.GetGeneration()
	})
	return err
}

// setScheduled sets the condition and reports whether it was different.
func (s *scheduler) setScheduled(status *workv1alpha2.ResourceBindingStatus, is metav1.ConditionStatus, reason, message string) bool {
	return meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: workv1alpha2.Scheduled, Status: is, Reason: reason, Message: message, LastTransitionTime: metav1.Time{Time: s.clock.Now()},
	})
}

// gone says whether an error means that there is nothing left to write to.
func gone(err error) bool { return apierrors.IsNotFound(err) }

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

// writeTargets writes the targets and the placement that they come from, if they
// are not there already, to this version of the binding. It reports whether the
// targets are others than before.
func (s *scheduler) writeTargets(ctx context.Context, b known, targets []workv1alpha2.TargetCluster) (known, bool, error) {
	applied, err := json.Marshal(b.GetSpec().Placement)
	if err != nil {
		return b, false, fmt.Errorf("encoding the placement of %s: %w", core.Ref(b), err)
	}
	metadata := map[string]any{"resourceVersion": b.GetResourceVersion()}
	body := map[string]any{"metadata": metadata}
	write := false
	if b.GetAnnotations()[policyv1alpha1.AppliedPlacementAnnotation] != string(applied) {
		metadata["annotations"] = map[string]string{policyv1alpha1.AppliedPlacementAnnotation: string(applied)}
		write = true
	}
	changed := !sameTargets(b.GetSpec().Clusters, targets)
	if changed {
		body["spec"] = map[string]any{"clusters": targets}
		if len(targets) == 0 {
			body["spec"] = map[string]any{"clusters": nil}
		}
		write = true
	}
	if !write {
		return b, false, nil
	}
	updated, err := s.patch(ctx, s.client, b, body, true)
	return updated, changed, err
}

// sameTargets compares targets whatever their order.
func sameTargets(a, b []workv1alpha2.TargetCluster) bool {
	if len(a) != len(b) {
		return false
	}
	if slices.EqualFunc(a, b, sameTarget) {
		return true
	}
	byName := make(map[string]*workv1alpha2.TargetCluster, len(a))
	for i := range a {
		byName[a[i].Name] = &a[i]
	}
	return len(byName) == len(a) && !slices.ContainsFunc(b, func(t workv1alpha2.TargetCluster) bool {
		before := byName[t.Name]
		return before == nil || !sameTarget(*before, t)
	})
}

func sameTarget(a, b workv1alpha2.TargetCluster) bool {
	return a.Name == b.Name && a.Replicas == b.Replicas && slices.Equal(a.Components, b.Components)
}

// patcher is the client for an object or for its status.
type patcher interface {
	Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error
}

// statusPatcher is the client for the status of an object.
type statusPatcher struct{ client.SubResourceWriter }

// Patch implements patcher.
func (p statusPatcher) Patch(ctx context.Context, obj client.Object, patch client.Patch, _ ...client.PatchOption) error {
	return p.SubResourceWriter.Patch(ctx, obj, patch)
}

// patch sends a merge patch and keeps what comes back.
func (s *scheduler) patch(ctx context.Context, to patcher, b known, body map[string]any, echo bool) (known, error) {
	data, err := json.Marshal(body)
	if err != nil {
		return b, fmt.Errorf("encoding the patch of %s: %w", core.Ref(b), err)
	}
	updated := b.scope.New()
	updated.SetNamespace(b.GetNamespace())
	updated.SetName(b.GetName())
	if err := to.Patch(ctx, updated, client.RawPatch(types.MergePatchType, data)); err != nil {
		return b, err
	}
	s.bindings.wrote(b.scope, updated, echo)
	b.Binding = updated
	return b, nil
}

// writeStatus changes the status, with one patch of what differs, or none. If
// others write the binding meanwhile it starts again from what they wrote: the
// conditions are a list that is not the scheduler's alone.
func (s *scheduler) writeStatus(ctx context.Context, b known, change func(*workv1alpha2.ResourceBindingStatus)) (known, error) {
	var err error
	for try := range attempts {
		status := b.GetStatus().DeepCopy()
		change(status)
		diff := statusDiff(b.GetStatus(), status)
		if len(diff) == 0 {
			return b, nil
		}
		body := map[string]any{"metadata": map[string]any{"resourceVersion": b.GetResourceVersion()}, "status": diff}
		var updated known
		// On top of the version that was decided on, the version made is no news.
		updated, err = s.patch(ctx, statusPatcher{s.client.Status()}, b, body, try == 0)
		if !apierrors.IsConflict(err) {
			return updated, err
		}
		fresh, failure := s.refresh(ctx, b)
		if failure != nil {
			return b, failure
		}
		b = fresh
	}
	return b, err
}

// statusDiff returns the fields of the scheduler that differ.
func statusDiff(before, after *workv1alpha2.ResourceBindingStatus) map[string]any {
	diff := map[string]any{}
	if !equality.Semantic.DeepEqual(before.Conditions, after.Conditions) {
		diff["conditions"] = after.Conditions
	}
	if before.SchedulerObservedGeneration != after.SchedulerObservedGeneration {
		diff["schedulerObservedGeneration"] = after.SchedulerObservedGeneration
	}
	if before.SchedulerObservedAffinityName != after.SchedulerObservedAffinityName {
		diff["schedulerObservingAffinityName"] = after.SchedulerObservedAffinityName
	}
	if !before.LastScheduledTime.Equal(after.LastScheduledTime) {
		diff["lastScheduledTime"] = after.LastScheduledTime
	}
	return diff
}
