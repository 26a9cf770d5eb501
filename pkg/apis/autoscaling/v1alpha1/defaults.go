package v1alpha1

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
)

// DefaultFederatedHPA sets the defaults of admission, in place: minReplicas 1, a
// CPU utilization of 80%, and missing fields of a given behavior.
func DefaultFederatedHPA(h *FederatedHPA) {
	if h.Spec.MinReplicas == nil {
		h.Spec.MinReplicas = new(int32(1))
	}
	if len(h.Spec.Metrics) == 0 {
		h.Spec.Metrics = []autoscalingv2.MetricSpec{{
			Type: autoscalingv2.ResourceMetricSourceType,
			Resource: &autoscalingv2.ResourceMetricSource{
				Name:   corev1.ResourceCPU,
				Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: new(int32(80))},
			},
		}}
	}
	if h.Spec.Behavior == nil {
		return
	}
	hundredPercent := autoscalingv2.HPAScalingPolicy{Type: autoscalingv2.PercentScalingPolicy, Value: 100, PeriodSeconds: 15}
	h.Spec.Behavior.ScaleUp = defaultScaling(h.Spec.Behavior.ScaleUp, autoscalingv2.HPAScalingRules{
		StabilizationWindowSeconds: new(int32(0)),
		Policies: []autoscalingv2.HPAScalingPolicy{
			{Type: autoscalingv2.PodsScalingPolicy, Value: 4, PeriodSeconds: 15},
			hundredPercent,
		},
	})
	h.Spec.Behavior.ScaleDown = defaultScaling(h.Spec.Behavior.ScaleDown, autoscalingv2.HPAScalingRules{
		Policies: []autoscalingv2.HPAScalingPolicy{hundredPercent},
	})
}

// defaultScaling sets the missing fields of rules from defaults.
func defaultScaling(rules *autoscalingv2.HPAScalingRules, defaults autoscalingv2.HPAScalingRules) *autoscalingv2.HPAScalingRules {
	if rules == nil {
		rules = &autoscalingv2.HPAScalingRules{}
	}
	if rules.SelectPolicy == nil {
		rules.SelectPolicy = new(autoscalingv2.MaxChangePolicySelect)
	}
	if rules.StabilizationWindowSeconds == nil {
		rules.StabilizationWindowSeconds = defaults.StabilizationWindowSeconds
	}
	if rules.Policies == nil {
		rules.Policies = defaults.Policies
	}
	return rules
}
