package autoscaling

import (
	"math"
	"slices"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"

	autoscalingv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/autoscaling/v1alpha1"
)

// History is what earlier passes over a FederatedHPA leave for later ones.
type History struct {
	Recommendations      []Recommendation
	ScaleUps, ScaleDowns []ScaleEvent
	// EventsFrom is the time from which on all scale events are known. Zero: all are.
	EventsFrom time.Time
}

// Recommendation is a number of replicas that was computed from metrics.
type Recommendation struct {
	Replicas int32
	At       time.Time
}

// ScaleEvent is a change of the replicas. Change is positive for both directions.
type ScaleEvent struct {
	Change int32
	At     time.Time
}

// Resume returns the history of a FederatedHPA of which earlier passes are not known, after a start or a change of the
// leader. The first pass records the current replicas as a recommendation, which delays a scale-down by a whole
// stabilization window. Scale events are lost: until their policies' periods are over, those policies allow no
// scale-down.
func Resume(h *autoscalingv1alpha1.FederatedHPA, current int32, now time.Time) History {
	last := h.Status.LastScaleTime
	switch {
	case last == nil && len(h.Status.Conditions) == 0:
		return History{}
	case h.Status.DesiredReplicas != current:
		// The previous controller may have stopped between the change and the status.
		return History{EventsFrom: now}
	case last == nil:
		return History{}
	}
	// The stored time lacks fractions of a second.
	return History{EventsFrom: last.Add(time.Second)}
}

func (h History) clone() History {
	h.Recommendations, h.ScaleUps, h.ScaleDowns = slices.Clone(h.Recommendations), slices.Clone(h.ScaleUps), slices.Clone(h.ScaleDowns)
	return h
}

// start records the first recommendation.
func (h *History) start(current int32, now time.Time) {
	if len(h.Recommendations) == 0 {
		h.Recommendations = append(h.Recommendations, Recommendation{current, now})
	}
}

// recommend records a recommendation in place of the last outdated one.
func (h *History) recommend(replicas int32, now time.Time, outdated func(Recommendation) bool) {
	h.Recommendations = replaceLast(h.Recommendations, Recommendation{replicas, now}, outdated)
}

// stabilize records a proposal and returns the highest one within the window.
func (h *History) stabilize(proposal int32, window time.Duration, now time.Time) int32 {
	cutoff := now.Add(-window)
	stable := proposal
	for _, r := range h.Recommendations {
		if !r.At.Before(cutoff) {
			stable = max(stable, r.Replicas)
		}
	}
	h.recommend(proposal, now, func(r Recommendation) bool { return r.At.Before(cutoff) })
	return stable
}

// stabilizeBehavior records a proposal. It returns the number nearest to the current one that is at least the lowest
// recommendation within the window of scaling up, and at most the highest within that of scaling down. The latter window
// is byDefault unless the behavior has one.
func (h *History) stabilizeBehavior(current, proposal int32, b *autoscalingv2.HorizontalPodAutoscalerBehavior, byDefault time.Duration, now time.Time) int32 {
	upCutoff, downCutoff := now.Add(-window(b.ScaleUp, 0)), now.Add(-window(b.ScaleDown, byDefault))
	up, down := proposal, proposal
	for _, r := range h.Recommendations {
		if r.At.After(upCutoff) {
			up = min(up, r.Replicas)
		}
		if r.At.After(downCutoff) {
			down = max(down, r.Replicas)
		}
	}
	h.recommend(proposal, now, func(r Recommendation) bool { return r.At.Before(upCutoff) && r.At.Before(downCutoff) })
	return min(max(current, up), down)
}

func window(rules *autoscalingv2.HPAScalingRules, byDefault time.Duration) time.Duration {
	if rules.StabilizationWindowSeconds == nil {
		return byDefault
	}
	return seconds(*rules.StabilizationWindowSeconds)
}

// rescaled records a scale event, if there is a behavior. By the contract it replaces one that is too old for the policies
// of its own direction, even if those of the other direction count it.
func (h *History) rescaled(b *autoscalingv2.HorizontalPodAutoscalerBehavior, from, to int32, now time.Time) {
	if b == nil {
		return
	}
	add := func(events []ScaleEvent, rules *autoscalingv2.HPAScalingRules) []ScaleEvent {
		cutoff := now.Add(-longestPeriod(rules))
		change := to - from
		return replaceLast(events, ScaleEvent{max(change, -change), now}, func(e ScaleEvent) bool { return e.At.Before(cutoff) })
	}
	if to > from {
		h.ScaleUps = add(h.ScaleUps, b.ScaleUp)
	} else {
		h.ScaleDowns = add(h.ScaleDowns, b.ScaleDown)
	}
}

func replaceLast[T any](list []T, entry T, outdated func(T) bool) []T {
	for i := len(list) - 1; i >= 0; i-- {
		if outdated(list[i]) {
			list[i] = entry
			return list
		}
	}
	return append(list, entry)
}

func longestPeriod(rules *autoscalingv2.HPAScalingRules) time.Duration {
	longest := int32(0)
	for _, p := range rules.Policies {
		longest = max(longest, p.PeriodSeconds)
	}
	return seconds(longest)
}

func seconds(n int32) time.Duration { return time.Duration(n) * time.Second }

// upLimit returns the most replicas that the rules allow.
func (h *History) upLimit(current int32, rules *autoscalingv2.HPAScalingRules, now time.Time) int32 {
	return limit(current, rules, true, func(p autoscalingv2.HPAScalingPolicy) int32 {
		start := h.periodStart(current, p, now)
		if p.Type == autoscalingv2.PodsScalingPolicy {
			return clamp(float64(start) + float64(p.Value))
		}
		return clamp(math.Ceil(float64(start) * (1 + float64(p.Value)/100)))
	})
}

// downLimit returns the least replicas that the rules allow.
func (h *History) downLimit(current int32, rules *autoscalingv2.HPAScalingRules, now time.Time) int32 {
	return limit(current, rules, false, func(p autoscalingv2.HPAScalingPolicy) int32 {
		start := h.periodStart(current, p, now)
		switch {
		case h.EventsFrom.After(now.Add(-seconds(p.PeriodSeconds))):
			return current
		case p.Type == autoscalingv2.PodsScalingPolicy:
			return clamp(float64(start) - float64(p.Value))
		}
		return clamp(math.Trunc(float64(start) * (1 - float64(p.Value)/100)))
	})
}

// limit combines the limits of all policies. Without one that allows a change it is the current number.
func limit(current int32, rules *autoscalingv2.HPAScalingRules, up bool, of func(autoscalingv2.HPAScalingPolicy) int32) int32 {
	if len(rules.Policies) == 0 || *rules.SelectPolicy == autoscalingv2.DisabledPolicySelect {
		return current
	}
	limits := make([]int32, 0, len(rules.Policies))
	for _, p := range rules.Policies {
		limits = append(limits, of(p))
	}
	if (*rules.SelectPolicy == autoscalingv2.MinChangePolicySelect) == up {
		return slices.Min(limits)
	}
	return slices.Max(limits)
}

// periodStart returns the replicas at the begin of the period of a policy.
func (h *History) periodStart(current int32, p autoscalingv2.HPAScalingPolicy, now time.Time) int32 {
	cutoff := now.Add(-seconds(p.PeriodSeconds))
	sum := func(events []ScaleEvent) (n int32) {
		for _, e := range events {
			if e.At.After(cutoff) {
				n += e.Change
			}
		}
		return n
	}
	return current - sum(h.ScaleUps) + sum(h.ScaleDowns)
}

// clamp converts a number of replicas. What is not a number becomes 0.
func clamp(n float64) int32 {
	switch {
	case n >= math.MaxInt32:
		return math.MaxInt32
	case n <= math.MinInt32:
		return math.MinInt32
	case math.IsNaN(n):
		return 0
	}
	return int32(n)
}
