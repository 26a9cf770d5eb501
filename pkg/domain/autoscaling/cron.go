package autoscaling

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/robfig/cron/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	autoscalingv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/autoscaling/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/validation"
)

// defaultHistoryLimit is the number of executions that are kept of each kind.
const defaultHistoryLimit = 3

// Next returns the time after now at which a rule runs next. The zone of rules without one is that of now.
func Next(rule *autoscalingv1alpha1.CronFederatedHPARule, now time.Time) (time.Time, error) {
	schedule, location, err := ruleSchedule(rule, now)
	if err != nil {
		return time.Time{}, err
	}
	next := schedule.Next(now.In(location))
	if next.IsZero() {
		return next, fmt.Errorf("schedule %q never fires", rule.Schedule)
	}
	return next, nil
}

func ruleSchedule(rule *autoscalingv1alpha1.CronFederatedHPARule, now time.Time) (cron.Schedule, *time.Location, error) {
	location := now.Location()
	if rule.TimeZone != nil {
		var err error
		if location, err = time.LoadLocation(*rule.TimeZone); err != nil {
			return nil, nil, err
		}
	}
	schedule, err := validation.ParseCronSchedule(rule.Schedule)
	if err != nil {
		return nil, nil, fmt.Errorf("gocron: cron expression failed to be parsed: %w", err)
	}
	return schedule, location, nil
}

// Suspended reports whether a rule does not run.
func Suspended(rule *autoscalingv1alpha1.CronFederatedHPARule) bool {
	return rule.Suspend != nil && *rule.Suspend
}

// Missed reports whether a rule has to run that should have run at next while no controller ran: not longer ago than
// the deadline, and at a time of its schedule.
func Missed(rule *autoscalingv1alpha1.CronFederatedHPARule, next *metav1.Time, now time.Time, deadline time.Duration) bool {
	if next == nil || next.After(now) || now.Sub(next.Time) > deadline || Suspended(rule) {
		return false
	}
	schedule, location, err := ruleSchedule(rule, now)
	if err != nil {
		return false
	}
	if _, interval := schedule.(cron.ConstantDelaySchedule); interval {
		return true
	}
	return schedule.Next(next.Add(-time.Second).In(location)).Equal(next.Time)
}

// SetNext writes when a rule runs next, nil if it is suspended, into its history, and adds a missing history.
func SetNext(histories []autoscalingv1alpha1.ExecutionHistory, rule string, next *metav1.Time) []autoscalingv1alpha1.ExecutionHistory {
	i := slices.IndexFunc(histories, func(h autoscalingv1alpha1.ExecutionHistory) bool { return h.RuleName == rule })
	if i < 0 {
		return append(histories, autoscalingv1alpha1.ExecutionHistory{RuleName: rule, NextExecutionTime: next})
	}
	histories[i].NextExecutionTime = next
	return histories
}

// Prune removes the histories of rules that no longer exist.
func Prune(histories []autoscalingv1alpha1.ExecutionHistory, rules []autoscalingv1alpha1.CronFederatedHPARule) []autoscalingv1alpha1.ExecutionHistory {
	return slices.DeleteFunc(histories, func(h autoscalingv1alpha1.ExecutionHistory) bool {
		return !slices.ContainsFunc(rules, func(r autoscalingv1alpha1.CronFederatedHPARule) bool { return r.Name == h.RuleName })
	})
}

// Record adds an execution to the history of its rule, newest first. Without a history nothing is recorded.
func Record(histories []autoscalingv1alpha1.ExecutionHistory, rule *autoscalingv1alpha1.CronFederatedHPARule, scheduled, now time.Time, next *metav1.Time, failure error) {
	i := slices.IndexFunc(histories, func(h autoscalingv1alpha1.ExecutionHistory) bool { return h.RuleName == rule.Name })
	if i < 0 {
		return
	}
	h := &histories[i]
	at := stamp(scheduled)
	if failure != nil {
		entry := autoscalingv1alpha1.FailedExecution{ScheduleTime: at, ExecutionTime: stamp(now), Message: failure.Error()}
		h.FailedExecutions = keep(slices.Insert(h.FailedExecutions, 0, entry), rule, true)
	} else {
		entry := autoscalingv1alpha1.SuccessfulExecution{
			ScheduleTime: at, ExecutionTime: stamp(now),
			AppliedReplicas: rule.TargetReplicas, AppliedMinReplicas: rule.TargetMinReplicas, AppliedMaxReplicas: rule.TargetMaxReplicas,
		}
		h.SuccessfulExecutions = keep(slices.Insert(h.SuccessfulExecutions, 0, entry), rule, false)
	}
	h.NextExecutionTime = next
}

func keep[T any](list []T, rule *autoscalingv1alpha1.CronFederatedHPARule, failed bool) []T {
	return list[:min(len(list), HistoryLimit(rule, failed))]
}

// HistoryLimit returns the number of executions of a rule that are kept: of those that failed, or of the others.
func HistoryLimit(rule *autoscalingv1alpha1.CronFederatedHPARule, failed bool) int {
	limit := rule.SuccessfulHistoryLimit
	if failed {
		limit = rule.FailedHistoryLimit
	}
	if limit == nil {
		return defaultHistoryLimit
	}
	return int(max(*limit, 0))
}

// Rebound sets the bounds of a FederatedHPA that a rule gives, and reports whether that changes any.
func Rebound(h *autoscalingv1alpha1.FederatedHPA, rule *autoscalingv1alpha1.CronFederatedHPARule) (bool, error) {
	if rule.TargetMinReplicas == nil && rule.TargetMaxReplicas == nil {
		return false, errors.New("the rule has neither targetMinReplicas nor targetMaxReplicas: set at least one")
	}
	changed := false
	if upper := rule.TargetMaxReplicas; upper != nil && *upper != h.Spec.MaxReplicas {
		h.Spec.MaxReplicas, changed = *upper, true
	}
	if lower := rule.TargetMinReplicas; lower != nil && (h.Spec.MinReplicas == nil || *lower != *h.Spec.MinReplicas) {
		h.Spec.MinReplicas, changed = new(*lower), true
	}
	if lower := minReplicas(h); lower > h.Spec.MaxReplicas {
		return false, fmt.Errorf("FederatedHPA %q would get minReplicas %d above maxReplicas %d: give the rule both targetMinReplicas and targetMaxReplicas", h.Name, lower, h.Spec.MaxReplicas)
	}
	return changed, nil
}

// Target is what the rules of a CronFederatedHPA scale.
type Target struct {
	schema.GroupVersionKind
	// Bounds is true for a FederatedHPA, whose bounds are set, and false for a workload.
	Bounds bool
}

// CronTarget returns what a CronFederatedHPA scales, or an error if that is not possible.
func CronTarget(c *autoscalingv1alpha1.CronFederatedHPA) (Target, error) {
	ref := c.Spec.ScaleTargetRef
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return Target{}, err
	}
	t := Target{GroupVersionKind: gv.WithKind(ref.Kind), Bounds: gv.Group == autoscalingv1alpha1.SchemeGroupVersion.Group}
	if t.Bounds && ref.Kind != "FederatedHPA" {
		return t, fmt.Errorf("CronFederatedHPA(%s/%s) do not support scale target %s/%s", c.Namespace, c.Name, ref.APIVersion, ref.Kind)
	}
	return t, nil
}
