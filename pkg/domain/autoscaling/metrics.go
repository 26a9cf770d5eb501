package autoscaling

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/metrics/pkg/apis/custom_metrics/v1beta2"

	"github.com/karmada-toolkit/karmada/pkg/apis/validation"
)

// ClusterAnnotation names the cluster of an object that the metrics APIs return.
const ClusterAnnotation = "resource.karmada.io/query-from-cluster"

// defaultWindow is the window of a custom metric that has none.
const defaultWindow = time.Minute

// proposal is what one metric proposes.
type proposal struct {
	replicas int32
	name     string
	status   autoscalingv2.MetricStatus
}

// metricError is the error of one metric.
type metricError struct {
	// reason is that of the condition ScalingActive.
	reason string
	// prefix is put before the error in those of the pass.
	prefix string
	err    error
}

// readError is the error of a metric that cannot be read.
type readError struct{ error }

// Unwrap returns the cause.
func (e *readError) Unwrap() error { return e.error }

// computation is what the metrics of one pass are computed from.
type computation struct {
	Facts
	size size
	pods podSet
	// selector is the first one that a member has.
	selector string
}

// newComputation adds up the members. Members whose selector is not usable are reported, and count with their replicas,
// without pods.
func newComputation(f Facts, report *Report) *computation {
	c := &computation{
		Facts: f, selector: Selector(f.Members), pods: podSet{settings: f.Settings, now: f.Now},
		size: size{current: f.Current, tolerance: f.Settings.Tolerance, behavior: f.HPA.Spec.Behavior},
	}
	for _, m := range f.Members {
		c.size.add(m)
		if selector, err := report.parseSelector(m.Selector); err == nil {
			c.pods.add(m, selector)
		}
	}
	return c
}

// unique returns an error if several FederatedHPAs select pods of the target. own is the selector of this one, which may
// select none of them where the selectors of members differ.
func (c *computation) unique(own labels.Selector) error {
	all := append([]Other{{Key: types.NamespacedName{Namespace: c.HPA.Namespace, Name: c.HPA.Name}, Selector: own}}, c.Others...)
	var keys []types.NamespacedName
	for _, o := range all {
		if o.Key.Namespace == c.HPA.Namespace && c.pods.selected(o.Selector) {
			keys = append(keys, o.Key)
		}
	}
	if len(keys) <= 1 {
		return nil
	}
	slices.SortFunc(keys, func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
	return fmt.Errorf("pods by selector %v are controlled by multiple HPAs: %v", c.selector, keys)
}

// compute returns the largest proposal of all metrics, or -1. The error is that of the metrics that failed.
func (v *Verdict) compute(c *computation) (int32, error) {
	selector := labels.Everything() // if no member has a selector; there are no pods then, but metrics of objects
	if c.selector != "" {
		var err error
		if selector, err = v.Report.parseSelector(c.selector); err != nil {
			return -1, err
		}
	}
	if err := c.unique(selector); err != nil {
		const reason = "AmbiguousSelector"
		v.Report.inactive(reason, reason, err, "%v", err)
		return -1, err
	}
	specs := c.HPA.Spec.Metrics
	v.metrics = make([]autoscalingv2.MetricStatus, len(specs))
	best, invalid := proposal{replicas: -1}, 0
	var first *metricError
	var err error
	for i := range specs {
		p, failed := c.propose(i)
		if failed != nil {
			v.Report.event(corev1.EventTypeWarning, failed.reason, failed.err.Error())
			if first == nil {
				first = failed
			}
			invalid++
			continue
		}
		v.metrics[i] = p.status
		if p.replicas > best.replicas {
			best = p
		}
	}
	if first != nil {
		err = fmt.Errorf("invalid metrics (%v invalid out of %v), first error is: %s%w", invalid, len(specs), first.prefix, first.err)
		if invalid == len(specs) || best.replicas < c.Current {
			v.Report.condition(autoscalingv2.ScalingActive, corev1.ConditionFalse, first.reason, "the HPA was unable to compute the replica count: %v", first.err)
			return -1, err
		}
	}
	v.Report.condition(autoscalingv2.ScalingActive, corev1.ConditionTrue, "ValidMetricFound", "the HPA was able to successfully calculate a replica count from %s", best.name)
	switch {
	case best.replicas > c.Current:
		v.Reason = best.name + " above target"
	case best.replicas < c.Current:
		v.Reason = "All metrics below target"
	}
	return best.replicas, err
}

func (c *computation) propose(i int) (proposal, *metricError) {
	spec := &c.HPA.Spec.Metrics[i]
	failed := &metricError{}
	var p proposal
	switch {
	case spec.Type == autoscalingv2.ObjectMetricSourceType && spec.Object != nil:
		failed.reason, failed.prefix = "FailedGetObjectMetric", "failed to get object metric value: "
		p, failed.err = c.object(spec.Object, c.Metrics.Custom[i])
		if unread := (*readError)(nil); errors.As(failed.err, &unread) && spec.Object.Target.Value == nil {
			failed.prefix += fmt.Sprintf("failed to get %s object metric: ", spec.Object.Metric.Name)
		}
	case spec.Type == autoscalingv2.PodsMetricSourceType && spec.Pods != nil:
		failed.reason, failed.prefix = "FailedGetPodsMetric", "failed to get pods metric value: "
		p, failed.err = c.perPodMetric(spec.Pods, c.Metrics.Custom[i])
	case spec.Type == autoscalingv2.ResourceMetricSourceType && spec.Resource != nil:
		failed.reason, failed.prefix = "FailedGetResourceMetric", fmt.Sprintf("failed to get %s resource metric value: ", spec.Resource.Name)
		var current autoscalingv2.MetricValueStatus
		p, current, failed.err = c.resource(spec.Resource.Name, "", spec.Resource.Target)
		p.status = autoscalingv2.MetricStatus{Type: spec.Type, Resource: &autoscalingv2.ResourceMetricStatus{Name: spec.Resource.Name, Current: current}}
	case spec.Type == autoscalingv2.ContainerResourceMetricSourceType && spec.ContainerResource != nil:
		s := spec.ContainerResource
		failed.reason, failed.prefix = "FailedGetContainerResourceMetric", fmt.Sprintf("failed to get %s container metric value: ", s.Container)
		var current autoscalingv2.MetricValueStatus
		p, current, failed.err = c.resource(s.Name, s.Container, s.Target)
		p.status = autoscalingv2.MetricStatus{Type: spec.Type, ContainerResource: &autoscalingv2.ContainerResourceMetricStatus{Name: s.Name, Container: s.Container, Current: current}}
	default:
		failed.reason, failed.err = "InvalidMetricSourceType", fmt.Errorf("unknown metric source type %q", string(spec.Type))
	}
	if failed.err != nil {
		return p, failed
	}
	return p, nil
}

// resource proposes replicas from the usage of a resource, by all containers or one of them.
func (c *computation) resource(name corev1.ResourceName, container string, target autoscalingv2.MetricTarget) (proposal, autoscalingv2.MetricValueStatus, error) {
	text := "%s resource utilization (percentage of request)"
	if container != "" {
		text = "%s container resource utilization (percentage of request)"
	}
	newGoal := func() (goal, error) {
		requests, err := c.pods.requests(name, container)
		if err != nil {
			return goal{}, err
		}
		return utilizationGoal(*target.AverageUtilization, requests), nil
	}
	switch {
	case target.AverageValue != nil:
		text = "%s resource"
		newGoal = func() (goal, error) { return averageGoal(target.AverageValue.MilliValue()), nil }
	case target.AverageUtilization == nil:
		return proposal{}, autoscalingv2.MetricValueStatus{}, errors.New("invalid resource metric source: neither an average utilization target nor an average value target was set")
	}
	var p proposal
	var u usage
	err := positive(target)
	if err == nil {
		var samples []sample
		if samples, err = c.Metrics.usage(name, container); err == nil {
			p.replicas, u, err = c.perPod(c.pods.resolve(samples), name, newGoal)
		} else {
			err = fmt.Errorf("unable to get metrics for resource %s: %w", name, err)
		}
	}
	if err != nil {
		return proposal{}, autoscalingv2.MetricValueStatus{}, fmt.Errorf("failed to get %s utilization: %w", name, err)
	}
	p.name = fmt.Sprintf(text, name)
	return p, autoscalingv2.MetricValueStatus{AverageUtilization: u.utilization, AverageValue: milli(u.average)}, nil
}

// positive checks a target that admission refuses, since it is divided by.
func positive(target autoscalingv2.MetricTarget) error {
	for _, q := range []*resource.Quantity{target.AverageValue, target.Value} {
		if q != nil && q.MilliValue() <= 0 {
			return fmt.Errorf("the target %s is not larger than 0", q)
		}
	}
	if target.AverageUtilization != nil && *target.AverageUtilization <= 0 {
		return fmt.Errorf("the target %d%% is not larger than 0", *target.AverageUtilization)
	}
	return nil
}

// usage reads the usage of pods. Pods without usage of the resource in each container are left out.
func (a *Metrics) usage(name corev1.ResourceName, container string) ([]sample, error) {
	if err := a.PodsErr; err != nil {
		return nil, fmt.Errorf("unable to fetch metrics from resource metrics API: %w", err)
	}
	if len(a.Pods) == 0 {
		return nil, errors.New("no metrics returned from resource metrics API")
	}
	var out []sample
	for i := range a.Pods {
		m := &a.Pods[i]
		sum, found, complete := int64(0), false, true
		for j := range m.Containers {
			if container != "" && m.Containers[j].Name != container {
				continue
			}
			found = true
			value, ok := m.Containers[j].Usage[name]
			// A negative value is not one.
			complete = complete && ok && value.Sign() >= 0
			sum = add(sum, value.MilliValue())
		}
		if container != "" && !found {
			return nil, fmt.Errorf("failed to get container metrics: container %s not present in metrics for pod %s/%s", container, m.Namespace, m.Name)
		}
		if found && complete {
			out = append(out, sample{podKey{m.Annotations[ClusterAnnotation], m.Name}, sum, m.Timestamp.Time, m.Window.Duration})
		}
	}
	return out, nil
}

// perPodMetric proposes replicas from a custom metric of the pods.
func (c *computation) perPodMetric(s *autoscalingv2.PodsMetricSource, answer Custom) (proposal, error) {
	if _, err := validation.LabelSelector(s.Metric.Selector); err != nil {
		return proposal{}, err
	}
	if s.Target.AverageValue == nil {
		return proposal{}, errors.New("invalid pods metric source: no average value target was set")
	}
	if err := positive(s.Target); err != nil {
		return proposal{}, err
	}
	if err := customErr(answer, true); err != nil {
		return proposal{}, fmt.Errorf("unable to get metric %s: %w", s.Metric.Name, err)
	}
	samples := make([]sample, 0, len(answer.Values))
	for i := range answer.Values {
		samples = append(samples, customSample(&answer.Values[i]))
	}
	target := s.Target.AverageValue.MilliValue()
	replicas, u, err := c.perPod(c.pods.resolve(samples), "", func() (goal, error) { return averageGoal(target), nil })
	if err != nil {
		return proposal{}, err
	}
	return proposal{replicas, "pods metric " + s.Metric.Name, autoscalingv2.MetricStatus{
		Type: autoscalingv2.PodsMetricSourceType,
		Pods: &autoscalingv2.PodsMetricStatus{
			Metric:  autoscalingv2.MetricIdentifier{Name: s.Metric.Name, Selector: s.Metric.Selector},
			Current: autoscalingv2.MetricValueStatus{AverageValue: milli(u.average)},
		},
	}}, nil
}

func customErr(answer Custom, list bool) error {
	if answer.Err != nil {
		return fmt.Errorf("unable to fetch metrics from custom metrics API: %w", answer.Err)
	}
	if len(answer.Values) == 0 && list {
		return errors.New("no metrics returned from custom metrics API")
	}
	return nil
}

func customSample(v *v1beta2.MetricValue) sample {
	s := sample{podKey{"", v.DescribedObject.Name}, v.Value.MilliValue(), v.Timestamp.Time, defaultWindow}
	if v.WindowSeconds != nil {
		s.window = time.Duration(*v.WindowSeconds) * time.Second
	}
	return s
}

// object proposes replicas from a custom metric of another object.
func (c *computation) object(s *autoscalingv2.ObjectMetricSource, answer Custom) (proposal, error) {
	if _, err := validation.LabelSelector(s.Metric.Selector); err != nil {
		return proposal{}, err
	}
	if s.Target.Value == nil && s.Target.AverageValue == nil {
		return proposal{}, errors.New("invalid object metric source: neither a value target nor an average value target was set")
	}
	if err := positive(s.Target); err != nil {
		return proposal{}, err
	}
	used, err := c.objectValue(s, answer)
	if err != nil {
		return proposal{}, err
	}
	status := &autoscalingv2.ObjectMetricStatus{Metric: autoscalingv2.MetricIdentifier{Name: s.Metric.Name, Selector: s.Metric.Selector}}
	p := proposal{status: autoscalingv2.MetricStatus{Type: autoscalingv2.ObjectMetricSourceType, Object: status}}
	if s.Target.Value != nil {
		p.name = fmt.Sprintf("%s metric %s", s.DescribedObject.Kind, s.Metric.Name)
		status.DescribedObject, status.Current.Value = s.DescribedObject, milli(used)
		ratio := float64(used) / float64(s.Target.Value.MilliValue())
		if c.size.tolerated(ratio) {
			p.replicas = c.Current
			return p, nil
		}
		ready, err := c.pods.readyPods()
		if err != nil {
			return proposal{}, err
		}
		p.replicas = c.size.calibrated(ratio * float64(ready))
		return p, nil
	}
	p.name = fmt.Sprintf("external metric %s(%+v)", s.Metric.Name, s.Metric.Selector)
	target, pods := float64(s.Target.AverageValue.MilliValue()), float64(max(c.size.status, 1))
	status.Current.AverageValue = milli(int64(math.Ceil(float64(used) / pods)))
	replicas := c.size.status
	if replicas == 0 || !c.size.tolerated(float64(used)/(target*pods)) {
		replicas = c.size.calibrated(float64(used) / target)
	}
	// The contract calibrates twice.
	p.replicas = c.size.calibrated(float64(replicas))
	return p, nil
}

func (c *computation) objectValue(s *autoscalingv2.ObjectMetricSource, answer Custom) (int64, error) {
	err := customErr(answer, false)
	if err == nil && len(answer.Values) == 0 {
		err = errors.New("no metrics returned from custom metrics API")
	}
	if err == nil && answer.Values[0].Value.Sign() < 0 {
		err = fmt.Errorf("the value %s is negative", &answer.Values[0].Value)
	}
	if err != nil {
		return 0, &readError{fmt.Errorf("unable to get metric %s: %s on %s %s/%w", s.Metric.Name, s.DescribedObject.Kind, c.HPA.Namespace, s.DescribedObject.Name, err)}
	}
	return answer.Values[0].Value.MilliValue(), nil
}

func milli(n int64) *resource.Quantity { return resource.NewMilliQuantity(n, resource.DecimalSI) }

// OfNamespace reports whether a metric describes the namespace itself.
func OfNamespace(s *autoscalingv2.ObjectMetricSource) bool {
	return s.DescribedObject.Kind == "Namespace" && group(s.DescribedObject.APIVersion) == ""
}
