package autoscaling

import (
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
		stable = v.History.stabilize(proposal, f.Settings.DownscaleStabilization, f.Now)
		v.Report.stabilized(stable != proposal, false)
		lower, upper = plainBounds(f)
	} else {
		stable = v.History.stabilizeBehavior(f.Current, proposal, f.HPA.Spec.Behavior, f.Settings.DownscaleStabilization, f.Now)
		v.Report.stabilized(stable != proposal, proposal >= f.Current)
		lower, upper = v.behaviorBounds(f)
	}
	switch {
	case stable < lower.replicas:
		v.Report.condition(autoscalingv2.ScalingLimited, corev1.ConditionTrue, lower.reason, lower.message)
		return lower.replicas
	case stable > upper.replicas:
		v.Report.condition(autoscalingv2.ScalingLimited, corev1.ConditionTrue, upper.reason, upper.message)
		return upper.replicas
	}
	v.Report.condition(autoscalingv2.ScalingLimited, corev1.ConditionFalse, inRange, inRangeText)
	return stable
}

func plainBounds(f Facts) (lower, upper bound) {
	rate := clamp(max(scaleUpFactor*float64(f.Current), scaleUpFloor))
	if most := f.HPA.Spec.MaxReplicas; most <= rate {
		return tooFewReplicas(minReplicas(f.HPA)), tooManyReplicas(most)
	}
	return tooFewReplicas(minReplicas(f.HPA)), scaleUpLimit(rate)
}

func (v *Verdict) behaviorBounds(f Facts) (lower, upper bound) {
	b, least, most := f.HPA.Spec.Behavior, minReplicas(f.HPA), f.HPA.Spec.MaxReplicas
	lower, upper = tooFewReplicas(least), tooManyReplicas(most)
	if rate := max(f.Current, v.History.upLimit(f.Current, b.ScaleUp, f.Now)); rate < most {
		upper = scaleUpLimit(rate)
	}
	if rate := min(f.Current, v.History.downLimit(f.Current, b.ScaleDown, f.Now)); rate > least {
		lower = scaleDownLimit(rate)
	}
	return lower, upper
}
