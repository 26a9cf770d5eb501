package validation

import (
	"fmt"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	autoscalingv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/autoscaling/v1alpha1"
)

// Bounds of the speed of scaling.
const (
	maxStabilizationSeconds = 3600
	maxPeriodSeconds        = 1800
)

// ValidateFederatedHPA checks a FederatedHPA.
func ValidateFederatedHPA(h *autoscalingv1alpha1.FederatedHPA) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&h.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	spec, at := &h.Spec, field.NewPath("spec")
	if spec.MinReplicas != nil && *spec.MinReplicas < 1 {
		errs = append(errs, field.Invalid(at.Child("minReplicas"), *spec.MinReplicas, "must be greater than or equal to 1"))
	}
	if spec.MaxReplicas < 1 {
		errs = append(errs, field.Invalid(at.Child("maxReplicas"), spec.MaxReplicas, "must be greater than 0"))
	}
	if spec.MinReplicas != nil && spec.MaxReplicas < *spec.MinReplicas {
		errs = append(errs, field.Invalid(at.Child("maxReplicas"), spec.MaxReplicas, "must be greater than or equal to `minReplicas`"))
	}
	errs = append(errs, validateScaleTarget(spec.ScaleTargetRef, at.Child("scaleTargetRef"))...)
	for i := range spec.Metrics {
		errs = append(errs, validateMetric(&spec.Metrics[i], at.Child("metrics").Index(i))...)
	}
	if b := spec.Behavior; b != nil {
		errs = append(errs, validateScalingRules(b.ScaleUp, at.Child("behavior", "scaleUp"))...)
		errs = append(errs, validateScalingRules(b.ScaleDown, at.Child("behavior", "scaleDown"))...)
	}
	status := field.NewPath("status")
	errs = append(errs, apivalidation.ValidateNonnegativeField(int64(h.Status.CurrentReplicas), status.Child("currentReplicas"))...)
	return append(errs, apivalidation.ValidateNonnegativeField(int64(h.Status.DesiredReplicas), status.Child("desiredReplicas"))...)
}

func validateScaleTarget(ref autoscalingv2.CrossVersionObjectReference, at *field.Path) field.ErrorList {
	return append(validateSegment(ref.Kind, "", at.Child("kind")), validateSegment(ref.Name, "", at.Child("name"))...)
}

// validateSegment checks what becomes one segment of a URL's path. Absent is the
// detail when there is nothing.
func validateSegment(value, absent string, at *field.Path) field.ErrorList {
	if value == "" {
		return field.ErrorList{field.Required(at, absent)}
	}
	return invalidEach(at, value, content.IsPathSegmentName(value))
}

// metricSource is one of the places a metric can come from.
type metricSource struct {
	name     string
	kind     autoscalingv2.MetricSourceType
	validate func(at *field.Path) field.ErrorList
}

// metricSources returns the sources that are filled in.
func metricSources(m *autoscalingv2.MetricSpec) []metricSource {
	var out []metricSource
	if s := m.Object; s != nil {
		out = append(out, metricSource{"object", autoscalingv2.ObjectMetricSourceType, func(at *field.Path) field.ErrorList { return validateObjectMetric(s, at) }})
	}
	if s := m.Pods; s != nil {
		out = append(out, metricSource{"pods", autoscalingv2.PodsMetricSourceType, func(at *field.Path) field.ErrorList { return validatePodsMetric(s, at) }})
	}
	if s := m.Resource; s != nil {
		out = append(out, metricSource{"resource", autoscalingv2.ResourceMetricSourceType, func(at *field.Path) field.ErrorList { return validateResourceMetric(s, at) }})
	}
	if s := m.ContainerResource; s != nil {
		out = append(out, metricSource{"containerResource", autoscalingv2.ContainerResourceMetricSourceType, func(at *field.Path) field.ErrorList { return validateContainerMetric(s, at) }})
	}
	return out
}

// sourceField returns the field that a type of metric needs.
func sourceField(t autoscalingv2.MetricSourceType) string {
	switch t {
	case autoscalingv2.ObjectMetricSourceType:
		return "object"
	case autoscalingv2.PodsMetricSourceType:
		return "pods"
	case autoscalingv2.ResourceMetricSourceType:
		return "resource"
	case autoscalingv2.ContainerResourceMetricSourceType:
		return "containerResource"
	}
	return ""
}

// validateMetric checks the first source that is filled in; there must be no
// other.
func validateMetric(m *autoscalingv2.MetricSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	expected := sourceField(m.Type)
	switch {
	case m.Type == "":
		errs = append(errs, field.Required(at.Child("type"), "must specify a metric source type"))
	case expected == "":
		errs = append(errs, field.NotSupported(at.Child("type"), m.Type, []autoscalingv2.MetricSourceType{
			autoscalingv2.ContainerResourceMetricSourceType, autoscalingv2.ObjectMetricSourceType,
			autoscalingv2.PodsMetricSourceType, autoscalingv2.ResourceMetricSourceType,
		}))
	}
	sources, found := metricSources(m), false
	for i, s := range sources {
		if i == 0 {
			errs = append(errs, s.validate(at.Child(s.name))...)
		}
		found = found || s.name == expected
	}
	if expected != "" && !found {
		errs = append(errs, field.Required(at.Child(expected), "must populate information for the given metric source"))
	}
	if len(sources) == 1 {
		return errs
	}
	for _, s := range sources {
		if s.name != expected {
			errs = append(errs, field.Forbidden(at.Child(s.name), "must populate the given metric source only"))
		}
	}
	return errs
}

func validateObjectMetric(s *autoscalingv2.ObjectMetricSource, at *field.Path) field.ErrorList {
	errs := validateScaleTarget(s.DescribedObject, at.Child("describedObject"))
	errs = append(errs, validateSegment(s.Metric.Name, "must specify a metric name", at.Child("metric", "name"))...)
	errs = append(errs, forbidden(at.Child("metric", "selector"), CheckLabelSelector(s.Metric.Selector))...)
	errs = append(errs, validateMetricTarget(&s.Target, at.Child("target"))...)
	if s.Target.Value == nil && s.Target.AverageValue == nil {
		errs = append(errs, field.Required(at.Child("target", "averageValue"), "must set either a target value or averageValue"))
	}
	return errs
}

func validatePodsMetric(s *autoscalingv2.PodsMetricSource, at *field.Path) field.ErrorList {
	errs := validateSegment(s.Metric.Name, "must specify a metric name", at.Child("metric", "name"))
	errs = append(errs, forbidden(at.Child("metric", "selector"), CheckLabelSelector(s.Metric.Selector))...)
	errs = append(errs, validateMetricTarget(&s.Target, at.Child("target"))...)
	if s.Target.AverageValue == nil {
		errs = append(errs, field.Required(at.Child("target", "averageValue"), "must specify a positive target averageValue"))
	}
	return errs
}

func validateResourceMetric(s *autoscalingv2.ResourceMetricSource, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if s.Name == "" {
		errs = append(errs, field.Required(at.Child("name"), "must specify a resource name"))
	}
	return append(errs, validateUse(&s.Target, at.Child("target"))...)
}

func validateContainerMetric(s *autoscalingv2.ContainerResourceMetricSource, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if s.Name == "" {
		errs = append(errs, field.Required(at.Child("name"), "must specify a resource name"))
	} else {
		errs = append(errs, validateContainerResourceName(string(s.Name), at.Child("name"))...)
	}
	if s.Container == "" {
		errs = append(errs, field.Required(at.Child("container"), "must specify a container"))
	} else {
		errs = append(errs, invalidEach(at.Child("container"), s.Container, apivalidation.NameIsDNSLabel(s.Container, false))...)
	}
	return append(errs, validateUse(&s.Target, at.Child("target"))...)
}

// validateUse checks the target of a metric that pods use: an amount or a share.
func validateUse(t *autoscalingv2.MetricTarget, at *field.Path) field.ErrorList {
	errs := validateMetricTarget(t, at)
	switch {
	case t.AverageUtilization == nil && t.AverageValue == nil:
		errs = append(errs, field.Required(at.Child("averageUtilization"), "must set either a target raw value or a target utilization"))
	case t.AverageUtilization != nil && t.AverageValue != nil:
		errs = append(errs, field.Forbidden(at.Child("averageValue"), "may not set both a target raw value and a target utilization"))
	}
	return errs
}

func validateMetricTarget(t *autoscalingv2.MetricTarget, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch t.Type {
	case autoscalingv2.UtilizationMetricType, autoscalingv2.ValueMetricType, autoscalingv2.AverageValueMetricType:
	default:
		if t.Type == "" {
			errs = append(errs, field.Required(at.Child("type"), "must specify a metric target type"))
		}
		errs = append(errs, field.Invalid(at.Child("type"), t.Type, "must be either Utilization, Value, or AverageValue"))
	}
	if t.Value != nil && t.Value.Sign() <= 0 {
		errs = append(errs, field.Invalid(at.Child("value"), t.Value.String(), "must be positive"))
	}
	if t.AverageValue != nil && t.AverageValue.Sign() <= 0 {
		errs = append(errs, field.Invalid(at.Child("averageValue"), t.AverageValue.String(), "must be positive"))
	}
	if t.AverageUtilization != nil && *t.AverageUtilization < 1 {
		errs = append(errs, field.Invalid(at.Child("averageUtilization"), *t.AverageUtilization, "must be greater than 0"))
	}
	return errs
}

func validateScalingRules(rules *autoscalingv2.HPAScalingRules, at *field.Path) field.ErrorList {
	if rules == nil {
		return nil
	}
	var errs field.ErrorList
	if s := rules.StabilizationWindowSeconds; s != nil && *s < 0 {
		errs = append(errs, field.Invalid(at.Child("stabilizationWindowSeconds"), *s, "must be greater than or equal to zero"))
	} else if s != nil && *s > maxStabilizationSeconds {
		errs = append(errs, field.Invalid(at.Child("stabilizationWindowSeconds"), *s, fmt.Sprintf("must be less than or equal to %d", maxStabilizationSeconds)))
	}
	if s := rules.SelectPolicy; s != nil {
		switch *s {
		case autoscalingv2.DisabledPolicySelect, autoscalingv2.MaxChangePolicySelect, autoscalingv2.MinChangePolicySelect:
		default:
			errs = append(errs, field.NotSupported(at.Child("selectPolicy"), *s, []autoscalingv2.ScalingPolicySelect{
				autoscalingv2.DisabledPolicySelect, autoscalingv2.MaxChangePolicySelect, autoscalingv2.MinChangePolicySelect,
			}))
		}
	}
	if len(rules.Policies) == 0 {
		errs = append(errs, field.Required(at.Child("policies"), "must specify at least one Policy"))
	}
	for i, p := range rules.Policies {
		errs = append(errs, validateScalingPolicy(p, at.Child("policies").Index(i))...)
	}
	return errs
}

func validateScalingPolicy(p autoscalingv2.HPAScalingPolicy, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if p.Type != autoscalingv2.PodsScalingPolicy && p.Type != autoscalingv2.PercentScalingPolicy {
		errs = append(errs, field.NotSupported(at.Child("type"), p.Type,
			[]autoscalingv2.HPAScalingPolicyType{autoscalingv2.PercentScalingPolicy, autoscalingv2.PodsScalingPolicy}))
	}
	if p.Value <= 0 {
		errs = append(errs, field.Invalid(at.Child("value"), p.Value, "must be greater than zero"))
	}
	if p.PeriodSeconds <= 0 {
		errs = append(errs, field.Invalid(at.Child("periodSeconds"), p.PeriodSeconds, "must be greater than zero"))
	}
	if p.PeriodSeconds > maxPeriodSeconds {
		errs = append(errs, field.Invalid(at.Child("periodSeconds"), p.PeriodSeconds, fmt.Sprintf("must be less than or equal to %d", maxPeriodSeconds)))
	}
	return errs
}
