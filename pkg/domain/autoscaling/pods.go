package autoscaling

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
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

// podSet is the pods of the target in all clusters, with what decides how they count.
type podSet struct {
	list     []pod
	settings Settings
	now      time.Time
}

// add adds the selected pods of a member.
func (ps *podSet) add(m Member, selector labels.Selector) {
	for _, p := range m.Pods {
		if selector.Matches(labels.Set(p.Labels)) {
			ps.list = append(ps.list, pod{podKey{m.Cluster, p.Name}, p})
		}
	}
}

// selected reports whether a selector selects a pod of the set.
func (ps *podSet) selected(selector labels.Selector) bool {
	return slices.ContainsFunc(ps.list, func(p pod) bool { return selector.Matches(labels.Set(p.Labels)) })
}

// resolve assigns samples to pods. A sample that does not name its cluster belongs to the pods of its name; several of
// them share its value, since sources without clusters add up.
func (ps *podSet) resolve(samples []sample) map[podKey]sample {
	named := map[string][]podKey{}
	for _, p := range ps.list {
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

func (ps *podSet) group(resource corev1.ResourceName, samples map[podKey]sample) groups {
	var g groups
	for _, p := range ps.list {
		s, measured := samples[p.key]
		switch {
		case p.DeletionTimestamp != nil, p.Status.Phase == corev1.PodFailed:
			g.ignored = append(g.ignored, p.key)
		case p.Status.Phase == corev1.PodPending:
			g.unready = append(g.unready, p.key)
		case !measured:
			g.missing = append(g.missing, p.key)
		case resource == corev1.ResourceCPU && ps.unready(p.Pod, s):
			g.unready = append(g.unready, p.key)
		default:
			g.ready++
		}
	}
	return g
}

// unready reports whether the CPU usage of a pod does not represent its load yet.
func (ps *podSet) unready(p *corev1.Pod, s sample) bool {
	ready := readyCondition(p)
	if ready == nil || p.Status.StartTime == nil {
		return true
	}
	started, changed := p.Status.StartTime.Time, ready.LastTransitionTime.Time
	if started.Add(ps.settings.CPUInitialization).After(ps.now) {
		return ready.Status == corev1.ConditionFalse || s.at.Before(changed.Add(s.window))
	}
	return ready.Status == corev1.ConditionFalse && started.Add(ps.settings.InitialReadiness).After(changed)
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
func (ps *podSet) readyPods() (int, error) {
	if len(ps.list) == 0 {
		return 0, fmt.Errorf("unable to calculate ready pods: %w", errNoPods)
	}
	n := 0
	for _, p := range ps.list {
		ready := readyCondition(p.Pod)
		if p.Status.Phase == corev1.PodRunning && ready != nil && ready.Status == corev1.ConditionTrue {
			n++
		}
	}
	return n, nil
}

// MissingRequestError is the error for a container whose pod has no utilization, because the container does not request
// the resource. The metric has no value then, also for the pods of other clusters.
type MissingRequestError struct {
	Resource                corev1.ResourceName
	Container, Pod, Cluster string
}

func (e *MissingRequestError) Error() string {
	return fmt.Sprintf("missing request for %s in container %s of Pod %s", e.Resource, e.Container, e.Pod)
}

// requests returns what each pod, or one container of it, requests of a resource, in thousandths.
func (ps *podSet) requests(resource corev1.ResourceName, container string) (map[podKey]int64, error) {
	out := make(map[podKey]int64, len(ps.list))
	for _, p := range ps.list {
		sum := int64(0)
		for i := range p.Spec.Containers {
			if container != "" && p.Spec.Containers[i].Name != container {
				continue
			}
			request, ok := p.Spec.Containers[i].Resources.Requests[resource]
			if !ok {
				return nil, &MissingRequestError{Resource: resource, Container: p.Spec.Containers[i].Name, Pod: p.Name, Cluster: p.key.cluster}
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
	if len(c.pods.list) == 0 {
		return 0, usage{}, errNoPods
	}
	groups := c.pods.group(resource, samples)
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
		if c.size.tolerated(first.ratio) {
			return c.Current, first, nil
		}
		return c.size.calibrated(first.ratio * float64(groups.ready)), first, nil
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
	if c.size.tolerated(second.ratio) || ratio < 1 && second.ratio > 1 || ratio > 1 && second.ratio < 1 {
		return c.Current, nil
	}
	n := c.size.calibrated(second.ratio * float64(len(filled)))
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
