package autoscaling

import (
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
)

// The floor of the replicas to which one pass may scale up without a behavior, and the factor for more.
const (
	scaleUpFloor  = 4
	scaleUpFactor = 2
)

const (
	inRange     = "DesiredWithinRange"
	inRangeText = "the desired count is within the acceptable range"
)

// bound is a limit of the replicas with the reason that is reported where it changes them.
type bound struct {
	replicas        int32
	reason, message string
}

func scaleUpLimit(n int32) bound {
	return bound{n, "ScaleUpLimit", "the desired replica count is increasing faster than the maximum scale rate"}
}

func scaleDownLimit(n int32) bound {
	return bound{n, "ScaleDownLimit", "the desired replica count is decreasing faster than the maximum scale rate"}
}

func tooManyReplicas(n int32) bound {
	return bound{n, "TooManyReplicas", "the desired replica count is more than the maximum replica count"}
}

func tooFewReplicas(n int32) bound {
	return bound{n, "TooFewReplicas", "the desired replica count is less than the minimum replica count"}
}

// normalize applies stabilization and limits to a proposal.
func (v *Verdict) normalize(f Facts, proposal int32) int32 {
	var stable int32
	var lower, upper bound
	if f.HPA.Spec.Behavior == nil {
		stable = v.stabilize(proposal, f.Settings.DownscaleStabilization)
		lower, upper = plainBounds(f)
	} else {
		stable = v.stabilizeBehavior(f, proposal)
		lower, upper = v.behaviorBounds(f)
	}
	switch {
	case stable < lower.replicas:
		v.condition(autoscalingv2.ScalingLimited, corev1.ConditionTrue, lower.reason, lower.message)
		return lower.replicas
	case stable > upper.replicas:
		v.condition(autoscalingv2.ScalingLimited, corev1.ConditionTrue, upper.reason, upper.message)
		return upper.replicas
	}
	v.condition(autoscalingv2.ScalingLimited, corev1.ConditionFalse, inRange, inRangeText)
	return stable
}

func (v *Verdict) stabilized(up bool) {
	if up {
		v.condition(autoscalingv2.AbleToScale, corev1.ConditionTrue, "ScaleUpStabilized",
			"recent recommendations were lower than current one, applying the lowest recent recommendation")
		return
	}
	v.condition(autoscalingv2.AbleToScale, corev1.ConditionTrue, "ScaleDownStabilized",
		"recent recommendations were higher than current one, applying the highest recent recommendation")
}

func (v *Verdict) unstabilized() {
	v.condition(autoscalingv2.AbleToScale, corev1.ConditionTrue, "ReadyForNewScale", "recommended size matches current size")
}

func (v *Verdict) stabilize(proposal int32, window time.Duration) int32 {
	cutoff := v.now.Add(-window)
	stable := proposal
	for _, r := range v.History.Recommendations {
		if !r.At.Before(cutoff) {
			stable = max(stable, r.Replicas)
		}
	}
	v.History.recommend(proposal, v.now, func(r Recommendation) bool { return r.At.Before(cutoff) })
	if stable != proposal {
		v.stabilized(false)
	} else {
		v.unstabilized()
	}
	return stable
}

func plainBounds(f Facts) (lower, upper bound) {
	rate := int32(max(scaleUpFactor*int64(f.Current), scaleUpFloor))
	if most := f.HPA.Spec.MaxReplicas; most <= rate {
		return tooFewReplicas(minReplicas(f.HPA)), tooManyReplicas(most)
	}
	return tooFewReplicas(minReplicas(f.HPA)), scaleUpLimit(rate)
}

func (v *Verdict) stabilizeBehavior(f Facts, proposal int32) int32 {
	b := f.HPA.Spec.Behavior
	upCutoff := v.now.Add(-window(b.ScaleUp, 0))
	downCutoff := v.now.Add(-window(b.ScaleDown, f.Settings.DownscaleStabilization))
	up, down := proposal, proposal
	for _, r := range v.History.Recommendations {
		if r.At.After(upCutoff) {
			up = min(up, r.Replicas)
		}
		if r.At.After(downCutoff) {
			down = max(down, r.Replicas)
		}
	}
	v.History.recommend(proposal, v.now, func(r Recommendation) bool { return r.At.Before(upCutoff) && r.At.Before(downCutoff) })
	stable := min(max(f.Current, up), down)
	if stable != proposal {
		v.stabilized(proposal >= f.Current)
	} else {
		v.unstabilized()
	}
	return stable
}

func window(rules *autoscalingv2.HPAScalingRules, byDefault time.Duration) time.Duration {
	if rules.StabilizationWindowSeconds == nil {
		return byDefault
	}
	return seconds(*rules.StabilizationWindowSeconds)
}

func (v *Verdict) behaviorBounds(f Facts) (lower, upper bound) {
	b, least, most := f.HPA.Spec.Behavior, minReplicas(f.HPA), f.HPA.Spec.MaxReplicas
	lower, upper = tooFewReplicas(least), tooManyReplicas(most)
	if rate := max(f.Current, v.History.upLimit(f.Current, b.ScaleUp, v.now)); rate < most {
		upper = scaleUpLimit(rate)
	}
	if rate := min(f.Current, v.History.downLimit(f.Current, b.ScaleDown, v.now)); rate > least {
		lower = scaleDownLimit(rate)
	}
	return lower, upper
}
