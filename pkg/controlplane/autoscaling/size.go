package autoscaling

import (
	"math"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
)

// size is how many replicas the target has, and how far usage is from its target before it gets others.
type size struct {
	// current is spec.replicas of the template.
	current int32
	// spec and status are the sums of spec.replicas and status.replicas of the members that answered.
	spec, status int32
	tolerance    float64
	// behavior may have tolerances of its own. Default nil.
	behavior *autoscalingv2.HorizontalPodAutoscalerBehavior
}

// add counts a member, which may report any number.
func (s *size) add(m Member) {
	s.spec = clamp(float64(s.spec) + float64(max(0, m.Spec)))
	s.status = clamp(float64(s.status) + float64(max(0, m.Status)))
}

// tolerated reports whether a ratio is too near to 1 to change anything.
func (s *size) tolerated(ratio float64) bool {
	tolerance := s.tolerance
	if b := s.behavior; b != nil {
		rules := b.ScaleUp
		if ratio < 1 {
			rules = b.ScaleDown
		}
		if rules.Tolerance != nil {
			tolerance = rules.Tolerance.AsApproximateFloat64()
		}
	}
	return math.Abs(1-ratio) <= tolerance
}

// calibrated converts replicas of the members that answered into replicas of the template, rounded up.
func (s *size) calibrated(replicas float64) int32 {
	return clamp(math.Ceil(replicas / (float64(s.spec) / float64(s.current))))
}
