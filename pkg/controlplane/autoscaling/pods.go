package autoscaling

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

var errNoPods = errors.New("no pods returned by selector while calculating replica count")

// podKey identifies a pod of the namespace: clusters may have pods of the same name.
type podKey struct{ cluster, name string }

type pod struct {
	key podKey
	*corev1.Pod
}

// sample is a metric of a pod in thousandths.
type sample struct {
	podKey
	value  int64
	at     time.Time
	window time.Duration
}

// computation is what the metrics of one pass are computed from.
type computation struct {
	Facts
	memberSpec, memberStatus int32
	// selector is the first one that a member has.
	selector string
	pods     []pod
}

// collect adds up the members. Members whose selector is not usable count with their replicas, without pods.
func (v *Verdict) collect(f Facts) *computation {
	c := &computation{Facts: f, selector: Selector(f.Members)}
	for _, m := range f.Members {
		// A member may report any number.
		c.memberSpec = clamp(float64(c.memberSpec) + float64(max(0, m.Spec)))
		c.memberStatus = clamp(float64(c.memberStatus) + float64(max(0, m.Status)))
		selector, err := v.parseSelector(m.Selector)
		if err != nil {
			continue
		}
		for _, p := range m.Pods {
			if selector.Matches(labels.Set(p.Labels)) {
				c.pods = append(c.pods, pod{podKey{m.Cluster, p.Name}, p})
			}
		}
	}
	return c
}

// parseSelector parses the selector of a Scale and reports one that is not usable.
func (v *Verdict) parseSelector(text string) (labels.Selector, error) {
	if text == "" {
		err := errors.New("selector is required")
		v.event(corev1.EventTypeWarning, "SelectorRequired", err.Error())
		v.condition(autoscalingv2.ScalingActive, corev1.ConditionFalse, "InvalidSelector", "the HPA target's scale is missing a selector")
		return nil, err
	}
	selector, err := labels.Parse(text)
	if err != nil {
		err = fmt.Errorf("couldn't convert selector into a corresponding internal selector object: %w", err)
		v.event(corev1.EventTypeWarning, "InvalidSelector", err.Error())
		v.condition(autoscalingv2.ScalingActive, corev1.ConditionFalse, "InvalidSelector", "%v", err)
		return nil, err
	}
	return selector, nil
}

// unique reports an error if the targets of several FederatedHPAs have pods in common.
func (v *Verdict) unique(c *computation) error {
	keys := []types.NamespacedName{{Namespace: c.HPA.Namespace, Name: c.HPA.Name}}
	for _, o := range c.Others {
		if o.Key.Namespace == c.HPA.Namespace && slices.ContainsFunc(c.pods, func(p pod) bool { return o.Selector.Matches(labels.Set(p.Labels)) }) {
			keys = append(keys, o.Key)
		}
	}
	if len(keys) == 1 {
		return nil
	}
	slices.SortFunc(keys, func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
	err := fmt.Errorf("pods by selector %v are controlled by multiple HPAs: %v", c.selector, keys)
	v.event(corev1.EventTypeWarning, "AmbiguousSelector", err.Error())
	v.condition(autoscalingv2.ScalingActive, corev1.ConditionFalse, "AmbiguousSelector", "%v", err)
	return err
}

// resolve assigns samples to pods. A sample that does not name its cluster belongs to the pods of its name; several of
// them share its value, since sources without clusters add up.
func (c *computation) resolve(samples []sample) map[podKey]sample {
	named := map[string][]podKey{}
	for _, p := range c.pods {
		named[p.Name] = append(named[p.Name], p.key)
	}
	out := make(map[podKey]sample, len(samples))
	for _, s := range samples {
		if s.value < 0 {
			continue
		}
		keys := []podKey{s.podKey}
		if s.cluster == "" && len(named[s.name]) > 0 {
			keys = named[s.name]
			s.value /= int64(len(keys))
		}
		for _, key := range keys {
			s.podKey = key
			out[key] = s
		}
	}
	return out
}

// groups are pods by how they count.
type groups struct {
	ready                     int
	missing, unready, ignored []podKey
}

func (c *computation) group(resource corev1.ResourceName, samples map[podKey]sample) groups {
	var g groups
	for _, p := range c.pods {
		s, measured := samples[p.key]
		switch {
		case p.DeletionTimestamp != nil, p.Status.Phase == corev1.PodFailed:
			g.ignored = append(g.ignored, p.key)
		case p.Status.Phase == corev1.PodPending:
			g.unready = append(g.unready, p.key)
		case !measured:
			g.missing = append(g.missing, p.key)
		case resource == corev1.ResourceCPU && c.unready(p.Pod, s):
			g.unready = append(g.unready, p.key)
		default:
			g.ready++
		}
	}
	return g
}

// unready reports whether the CPU usage of a pod says nothing about its load yet.
func (c *computation) unready(p *corev1.Pod, s sample) bool {
	ready := readyCondition(p)
	if ready == nil || p.Status.StartTime == nil {
		return true
	}
	started, changed := p.Status.StartTime.Time, ready.LastTransitionTime.Time
	if started.Add(c.Settings.CPUInitialization).After(c.Now) {
		return ready.Status == corev1.ConditionFalse || s.at.Before(changed.Add(s.window))
	}
	return ready.Status == corev1.ConditionFalse && started.Add(c.Settings.InitialReadiness).After(changed)
}

func readyCondition(p *corev1.Pod) *corev1.PodCondition {
	for i := range p.Status.Conditions {
		if p.Status.Conditions[i].Type == corev1.PodReady {
			return &p.Status.Conditions[i]
		}
	}
	return nil
}

// readyPods counts the pods that are running and ready.
func (c *computation) readyPods() (int, error) {
	if len(c.pods) == 0 {
		return 0, fmt.Errorf("unable to calculate ready pods: %w", errNoPods)
	}
	n := 0
	for _, p := range c.pods {
		ready := readyCondition(p.Pod)
		if p.Status.Phase == corev1.PodRunning && ready != nil && ready.Status == corev1.ConditionTrue {
			n++
		}
	}
	return n, nil
}

// requests returns what each pod, or one container of it, requests of a resource, in thousandths.
func (c *computation) requests(resource corev1.ResourceName, container string) (map[podKey]int64, error) {
	out := make(map[podKey]int64, len(c.pods))
	for _, p := range c.pods {
		sum := int64(0)
		for i := range p.Spec.Containers {
			if container != "" && p.Spec.Containers[i].Name != container {
				continue
			}
			request, ok := p.Spec.Containers[i].Resources.Requests[resource]
			if !ok {
				return nil, fmt.Errorf("missing request for %s in container %s of Pod %s", resource, p.Spec.Containers[i].Name, p.Name)
			}
			sum = add(sum, request.MilliValue())
		}
		out[p.key] = sum
	}
	return out, nil
}

// add adds values that are not negative and stops at the largest number.
func add(a, b int64) int64 {
	if b > math.MaxInt64-a {
		return math.MaxInt64
	}
	return a + max(b, 0)
}

// usage is a ratio of usage to target with what is reported about it.
type usage struct {
	ratio float64
	// utilization is a percentage of requests, nil for a target that is an average value.
	utilization *int32
	average     int64
}

// goal computes the usage of samples, and what stands for a pod without a sample if it is below its target.
type goal struct {
	usage func(map[podKey]sample) (usage, error)
	fill  func(podKey) int64
}

func averageGoal(target int64) goal {
	return goal{
		usage: func(samples map[podKey]sample) (usage, error) {
			total := int64(0)
			for _, s := range samples {
				total = add(total, s.value)
			}
			average := total / int64(len(samples))
			return usage{ratio: float64(average) / float64(target), average: average}, nil
		},
		fill: func(podKey) int64 { return target },
	}
}

func utilizationGoal(target int32, requests map[podKey]int64) goal {
	return goal{
		usage: func(samples map[podKey]sample) (usage, error) {
			used, requested, n := int64(0), int64(0), int64(0)
			for key, s := range samples {
				if request, ok := requests[key]; ok {
					used, requested, n = add(used, s.value), add(requested, request), n+1
				}
			}
			if requested == 0 {
				return usage{}, errors.New("no metrics returned matched known pods")
			}
			percent := clamp(math.Trunc(float64(used) * 100 / float64(requested)))
			if used <= math.MaxInt64/100 {
				percent = clamp(float64(used * 100 / requested))
			}
			return usage{ratio: float64(percent) / float64(target), utilization: &percent, average: used / n}, nil
		},
		fill: func(key podKey) int64 { return requests[key] * int64(max(100, target)) / 100 },
	}
}

// perPod proposes replicas from samples of pods. The usage is that of the samples themselves.
func (c *computation) perPod(samples map[podKey]sample, resource corev1.ResourceName, newGoal func() (goal, error)) (int32, usage, error) {
	if len(c.pods) == 0 {
		return 0, usage{}, errNoPods
	}
	groups := c.group(resource, samples)
	for _, key := range slices.Concat(groups.ignored, groups.unready) {
		delete(samples, key)
	}
	if len(samples) == 0 {
		return 0, usage{}, errors.New("did not receive metrics for any ready pods")
	}
	goal, err := newGoal()
	if err != nil {
		return 0, usage{}, err
	}
	first, err := goal.usage(samples)
	if err != nil {
		return 0, usage{}, err
	}
	unready := len(groups.unready) > 0 && first.ratio > 1
	if len(groups.missing) == 0 && !unready {
		if c.tolerated(first.ratio) {
			return c.Current, first, nil
		}
		return c.calibrated(first.ratio * float64(groups.ready)), first, nil
	}
	replicas, err := c.refilled(samples, groups, goal, first.ratio)
	return replicas, first, err
}

// refilled proposes replicas with pods without a sample assumed to change the result as little as possible.
func (c *computation) refilled(samples map[podKey]sample, g groups, goal goal, ratio float64) (int32, error) {
	filled := filled(samples, g, goal, ratio)
	second, err := goal.usage(filled)
	if err != nil {
		return 0, err
	}
	if c.tolerated(second.ratio) || ratio < 1 && second.ratio > 1 || ratio > 1 && second.ratio < 1 {
		return c.Current, nil
	}
	n := c.calibrated(second.ratio * float64(len(filled)))
	if second.ratio < 1 && n > c.Current || second.ratio > 1 && n < c.Current {
		return c.Current, nil
	}
	return n, nil
}

// filled returns samples with those of pods that have none: no usage before a scale-up, the goal before a scale-down.
func filled(samples map[podKey]sample, g groups, goal goal, ratio float64) map[podKey]sample {
	out := maps.Clone(samples)
	if ratio != 1 {
		for _, key := range g.missing {
			out[key] = sample{podKey: key}
			if ratio < 1 {
				out[key] = sample{podKey: key, value: goal.fill(key)}
			}
		}
	}
	if ratio > 1 {
		for _, key := range g.unready {
			out[key] = sample{podKey: key}
		}
	}
	return out
}

// tolerated reports whether a ratio is too near to 1 to change anything.
func (c *computation) tolerated(ratio float64) bool {
	tolerance := c.Settings.Tolerance
	if b := c.HPA.Spec.Behavior; b != nil {
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
func (c *computation) calibrated(replicas float64) int32 {
	return clamp(math.Ceil(replicas / (float64(c.memberSpec) / float64(c.Current))))
}
