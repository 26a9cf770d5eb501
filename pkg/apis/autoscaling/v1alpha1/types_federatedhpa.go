package v1alpha1

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FederatedHPA scales a workload across its clusters by metrics.
//
// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=federatedhpas,scope=Namespaced,shortName=fhpa,categories={karmada-io}
// +kubebuilder:printcolumn:JSONPath=`.spec.scaleTargetRef.kind`,name="REFERENCE-KIND",type=string
// +kubebuilder:printcolumn:JSONPath=`.spec.scaleTargetRef.name`,name="REFERENCE-NAME",type=string
// +kubebuilder:printcolumn:JSONPath=`.spec.minReplicas`,name="MINPODS",type=integer
// +kubebuilder:printcolumn:JSONPath=`.spec.maxReplicas`,name="MAXPODS",type=integer
// +kubebuilder:printcolumn:JSONPath=`.status.currentReplicas`,name="REPLICAS",type=integer
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name="AGE",type=date
type FederatedHPA struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec holds the scale target, the bounds and the metrics.
	// +required
	Spec FederatedHPASpec `json:"spec"`

	// Status has the fields of the status of a HorizontalPodAutoscaler.
	// +optional
	Status autoscalingv2.HorizontalPodAutoscalerStatus `json:"status"`
}

// FederatedHPAList is a list of FederatedHPA.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type FederatedHPAList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []FederatedHPA `json:"items"`
}

// FederatedHPASpec holds the scale target, the bounds and the metrics.
type FederatedHPASpec struct {
	// ScaleTargetRef refers to the workload to scale.
	// +required
	ScaleTargetRef autoscalingv2.CrossVersionObjectReference `json:"scaleTargetRef"`

	// MinReplicas is the minimum number of replicas over all clusters. Default 1,
	// set by admission.
	// +optional
	MinReplicas *int32 `json:"minReplicas,omitempty"`

	// MaxReplicas is the maximum number of replicas over all clusters.
	MaxReplicas int32 `json:"maxReplicas"`

	// Metrics determine the number of replicas; the largest result is used. Empty
	// means 80 % CPU utilization.
	// +optional
	Metrics []autoscalingv2.MetricSpec `json:"metrics,omitempty"`

	// Behavior limits the rate of scaling up and down.
	// +optional
	Behavior *autoscalingv2.HorizontalPodAutoscalerBehavior `json:"behavior,omitempty"`
}

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
