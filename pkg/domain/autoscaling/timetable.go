package autoscaling

import (
	"maps"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	autoscalingv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/autoscaling/v1alpha1"
)

// Timetable is when the rules of one CronFederatedHPA run next.
type Timetable struct {
	target autoscalingv2.CrossVersionObjectReference
	rules  map[string]entry
}

type entry struct {
	rule autoscalingv1alpha1.CronFederatedHPARule
	next time.Time
}

// Due is a rule that has to run, and the time for which it was scheduled.
type Due struct {
	Rule      autoscalingv1alpha1.CronFederatedHPARule
	Scheduled time.Time
}

// NewTimetable returns the timetable of an object that no controller of this process has seen. Rules that were missed
// no longer than deadline ago are due.
func NewTimetable(c *autoscalingv1alpha1.CronFederatedHPA, now time.Time, deadline time.Duration) *Timetable {
	t := &Timetable{target: c.Spec.ScaleTargetRef, rules: map[string]entry{}}
	for _, rule := range c.Spec.Rules {
		for _, h := range c.Status.ExecutionHistories {
			if h.RuleName == rule.Name && Missed(&rule, h.NextExecutionTime, now, deadline) {
				t.rules[rule.Name] = entry{rule, h.NextExecutionTime.Time}
			}
		}
	}
	return t
}

// Sync starts rules that are new or changed, ends those that are suspended or deleted, and writes the next times into the
// histories. The first rule that cannot start ends it with an error; rules that run go on.
func (t *Timetable) Sync(c *autoscalingv1alpha1.CronFederatedHPA, histories []autoscalingv1alpha1.ExecutionHistory, now time.Time) ([]autoscalingv1alpha1.ExecutionHistory, error) {
	if c.Spec.ScaleTargetRef != t.target {
		t.target, t.rules = c.Spec.ScaleTargetRef, map[string]entry{}
	}
	named := map[string]bool{}
	for _, rule := range c.Spec.Rules {
		named[rule.Name] = true
		if known, ok := t.rules[rule.Name]; ok && (Suspended(&rule) || !equality.Semantic.DeepEqual(known.rule, rule)) {
			delete(t.rules, rule.Name)
		}
	}
	maps.DeleteFunc(t.rules, func(name string, _ entry) bool { return !named[name] })
	for _, rule := range c.Spec.Rules {
		if Suspended(&rule) {
			histories = SetNext(histories, rule.Name, nil)
			continue
		}
		if _, running := t.rules[rule.Name]; !running {
			next, err := Next(&rule, now)
			if err != nil {
				return histories, err
			}
			t.rules[rule.Name] = entry{*rule.DeepCopy(), next}
		}
		histories = SetNext(histories, rule.Name, new(metav1.NewTime(t.rules[rule.Name].next)))
	}
	return Prune(histories, c.Spec.Rules), nil
}

// Take returns the rules that are due, in the order of the object, and schedules them anew.
func (t *Timetable) Take(c *autoscalingv1alpha1.CronFederatedHPA, now time.Time) []Due {
	var out []Due
	for _, rule := range c.Spec.Rules {
		e, ok := t.rules[rule.Name]
		if !ok || e.next.After(now) {
			continue
		}
		out = append(out, Due{e.rule, e.next})
		next, err := Next(&rule, now)
		if err != nil {
			delete(t.rules, rule.Name)
			continue
		}
		t.rules[rule.Name] = entry{e.rule, next}
	}
	return out
}

// Next returns when a rule runs next, nil if it does not.
func (t *Timetable) Next(rule string) *metav1.Time {
	e, ok := t.rules[rule]
	if !ok {
		return nil
	}
	return new(metav1.NewTime(e.next))
}

// Wait returns the time until the next rule is due, at most the limit.
func (t *Timetable) Wait(now time.Time, limit time.Duration) time.Duration {
	for _, e := range t.rules {
		limit = min(limit, max(0, e.next.Sub(now)))
	}
	return limit
}
