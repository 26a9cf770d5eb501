// Package autoscaling decides how many replicas a template gets: from the metrics of its pods in all clusters, and from
// times of day. It needs no API server: facts go in, verdicts come out.
package autoscaling

import (
	"fmt"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/metrics/pkg/apis/custom_metrics/v1beta2"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	autoscalingv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/autoscaling/v1alpha1"
)

// Settings bound the decisions about all FederatedHPAs.
type Settings struct {
	// DownscaleStabilization is how long a recommendation delays a scale-down. Default 5 min.
	DownscaleStabilization time.Duration
	// Tolerance is the relative distance of usage from target that changes nothing. Default 0.1.
	Tolerance float64
	// CPUInitialization is the time after the start of a pod in which CPU usage counts only if it was measured after the
	// pod was ready. Default 5 min.
	CPUInitialization time.Duration
	// InitialReadiness is the time after the start of a pod in which a pod that is not ready counts as one that was never
	// ready. Default 30 s.
	InitialReadiness time.Duration
}

// Facts are what one pass over a FederatedHPA depends on.
type Facts struct {
	Now      time.Time
	HPA      *autoscalingv1alpha1.FederatedHPA
	Settings Settings
	History  History
	// Current is spec.replicas of the template's Scale.
	Current int32
	// Members are the target clusters that answered, in the order of the binding.
	Members []Member
	// Others are other FederatedHPAs; those of other namespaces do not count.
	Others []Other
	// Metrics are needed unless Bounded reports true.
	Metrics Metrics
}

// Member is the target in one cluster.
type Member struct {
	Cluster string
	// Spec and Status are spec.replicas and status.replicas of the target's Scale.
	Spec, Status int32
	// Selector is status.selector of the Scale.
	Selector string
	// Pods are pods of the namespace; those that Selector does not select are left out.
	Pods []*corev1.Pod
}

// Other is another FederatedHPA with the selector of its target.
type Other struct {
	Key      types.NamespacedName
	Selector labels.Selector
}

// Metrics are the answers of the metrics APIs of the control plane.
type Metrics struct {
	// Pods are the PodMetrics that the selector selects, for Resource and ContainerResource metrics.
	Pods []metricsv1beta1.PodMetrics
	// PodsErr is the error of that request.
	PodsErr error
	// Custom are the answers for Pods and Object metrics, by index in spec.metrics.
	Custom map[int]Custom
}

// Custom is the answer of the custom metrics API for one metric.
type Custom struct {
	Values []v1beta2.MetricValue
	Err    error
}

// Verdict is the result of a pass. If Rescale is set, the caller writes Replicas to the template's Scale and then calls
// Rescaled.
type Verdict struct {
	Replicas int32
	Rescale  bool
	// Reason is why the replicas change.
	Reason  string
	Report  Report
	History History
	// Err is the error with which the pass ends, after everything is written.
	Err error

	current  int32
	metrics  []autoscalingv2.MetricStatus
	target   string
	behavior *autoscalingv2.HorizontalPodAutoscalerBehavior
}

// minReplicas returns spec.minReplicas with its default.
func minReplicas(h *autoscalingv1alpha1.FederatedHPA) int32 {
	if h.Spec.MinReplicas == nil {
		return 1
	}
	return *h.Spec.MinReplicas
}

// Bounded reports whether minReplicas and maxReplicas alone decide, so that no metrics are needed.
func Bounded(h *autoscalingv1alpha1.FederatedHPA, current int32) bool {
	return current > h.Spec.MaxReplicas || current < minReplicas(h)
}

// newVerdict starts from the status of the object.
func newVerdict(h *autoscalingv1alpha1.FederatedHPA, now time.Time, history History) *Verdict {
	ref := h.Spec.ScaleTargetRef
	return &Verdict{
		Report: Report{Status: *h.Status.DeepCopy(), now: now}, History: history.clone(),
		target: fmt.Sprintf("%s/%s/%s", ref.Kind, h.Namespace, ref.Name), behavior: h.Spec.Behavior,
	}
}

// Evaluate decides the replicas of the target of a FederatedHPA.
func Evaluate(f Facts) *Verdict {
	f.HPA = f.HPA.DeepCopy()
	autoscalingv1alpha1.DefaultFederatedHPA(f.HPA)
	v := newVerdict(f.HPA, f.Now, f.History)
	v.current = f.Current
	lower, upper := minReplicas(f.HPA), f.HPA.Spec.MaxReplicas
	if lower > upper {
		return v.fail(stageBounds, fmt.Errorf("spec.minReplicas (%d) is larger than spec.maxReplicas (%d): correct one of them", lower, upper))
	}
	c := newComputation(f, &v.Report)
	if c.size.spec == 0 {
		return v.fail(stageReplicas, errNoReplicas)
	}
	v.Report.condition(autoscalingv2.AbleToScale, corev1.ConditionTrue, "SucceededGetScale", "the HPA controller was able to get the target's current scale")
	v.History.start(f.Current, f.Now)
	var desired int32
	switch {
	case f.Current > upper:
		desired, v.Reason = upper, "Current number of replicas above Spec.MaxReplicas"
	case f.Current < lower:
		desired, v.Reason = lower, "Current number of replicas below Spec.MinReplicas"
	default:
		proposal, err := v.compute(c)
		if proposal < 0 {
			v.Report.event(corev1.EventTypeWarning, "FailedComputeMetricsReplicas", err.Error())
			v.Report.Status.CurrentReplicas = f.Current
			v.Err = fmt.Errorf("failed to compute desired number of replicas based on listed metrics for %s: %w", v.target, err)
			return v
		}
		v.Err = err
		desired = v.normalize(f, proposal)
	}
	v.Replicas, v.Rescale = desired, desired != f.Current
	if !v.Rescale {
		v.Report.replicas(f.Current, desired, v.metrics)
	}
	return v
}

// Rescaled completes the verdict after the replicas were written to the template, or could not be.
func (v *Verdict) Rescaled(err error) {
	if err != nil {
		v.Report.event(corev1.EventTypeWarning, "FailedRescale", fmt.Sprintf("New size: %d; reason: %s; error: %v", v.Replicas, v.Reason, err))
		v.Report.condition(autoscalingv2.AbleToScale, corev1.ConditionFalse, "FailedUpdateScale", "the HPA controller was unable to update the target scale: %v", err)
		v.Report.Status.CurrentReplicas = v.current
		v.Err = fmt.Errorf("failed to rescale %s: %w", v.target, err)
		return
	}
	v.Report.condition(autoscalingv2.AbleToScale, corev1.ConditionTrue, "SucceededRescale", "the HPA controller was able to update the target scale to %d", v.Replicas)
	v.Report.event(corev1.EventTypeNormal, "SuccessfulRescale", fmt.Sprintf("New size: %d; reason: %s", v.Replicas, v.Reason))
	v.History.rescaled(v.behavior, v.current, v.Replicas, v.Report.now)
	v.Report.replicas(v.current, v.Replicas, v.metrics)
	v.Report.Status.LastScaleTime = stamp(v.Report.now)
}
