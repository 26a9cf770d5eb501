package clusterstatus

import (
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/domain/replicas"
	"github.com/karmada-toolkit/karmada/pkg/member/follow"
)

// amounts are quantities by resource: in thousandths for cpu, else in units.
type amounts map[corev1.ResourceName]int64

func amountsOf(list corev1.ResourceList) amounts {
	out := make(amounts, len(list))
	for name, q := range list {
		if follow.Counted(name) {
			out[name] = replicas.Value(name, q)
		}
	}
	return out
}

// add adds without overflow. It ignores new resources beyond maxSummed.
func (a amounts) add(b amounts) {
	for name, v := range b {
		have, known := a[name]
		switch {
		case !known && len(a) >= maxSummed:
		case v > 0 && have > math.MaxInt64-v:
			a[name] = math.MaxInt64
		default:
			a[name] = have + v
		}
	}
}

// maxSummed limits the number of resources that are summed for a cluster.
const maxSummed = 256

// size returns the approximate size of the amounts in bytes.
func (a amounts) size() int {
	const perEntry = 40
	n := 0
	for name := range a {
		n += perEntry + len(name)
	}
	return n
}

// list returns the amounts above 0.
func (a amounts) list() corev1.ResourceList {
	out := corev1.ResourceList{}
	for name, v := range a {
		if v <= 0 {
			continue
		}
		switch {
		case name == corev1.ResourceCPU:
			out[name] = *resource.NewMilliQuantity(v, resource.DecimalSI)
		case name == corev1.ResourceMemory, name == corev1.ResourceEphemeralStorage, hugepages(name):
			out[name] = *resource.NewQuantity(v, resource.BinarySI)
		default:
			out[name] = *resource.NewQuantity(v, resource.DecimalSI)
		}
	}
	return out
}

func hugepages(name corev1.ResourceName) bool {
	return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

// node has the fields of a node that are summed.
type node struct {
	allocatable amounts
	ready       bool
}

func keepNode(n *follow.Node) node {
	out := node{allocatable: amountsOf(n.Status.Allocatable.List())}
	for i := range n.Status.Conditions {
		if c := &n.Status.Conditions[i]; c.Type == corev1.NodeReady {
			out.ready = c.Status == corev1.ConditionTrue
		}
	}
	return out
}

// pod has the fields of a running pod that are summed.
type pod struct {
	node     string
	requests amounts
}

func keepPod(v *follow.Pod, old *pod) pod {
	p := v.Object()
	out := pod{node: p.Spec.NodeName, requests: amountsOf(resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{}))}
	out.requests[corev1.ResourcePods] = 1
	if old != nil && maps.Equal(old.requests, out.requests) {
		out.requests = old.requests
	}
	return out
}

// summarize sums nodes and pods.
func summarize(nodes map[string]node, pods []pod, models []clusterv1alpha1.ResourceModel) (*clusterv1alpha1.NodeSummary, *clusterv1alpha1.ResourceSummary) {
	count := &clusterv1alpha1.NodeSummary{TotalNum: int32(len(nodes))}
	allocatable, allocating, allocated := amounts{}, amounts{}, amounts{}
	for _, n := range nodes {
		allocatable.add(n.allocatable)
		if n.ready {
			count.ReadyNum++
		}
	}
	used := map[string]amounts{}
	for _, p := range pods {
		if p.node == "" {
			allocating.add(p.requests)
			continue
		}
		allocated.add(p.requests)
		if len(models) > 0 {
			if used[p.node] == nil {
				used[p.node] = amounts{}
			}
			used[p.node].add(p.requests)
		}
	}
	sum := &clusterv1alpha1.ResourceSummary{Allocatable: allocatable.list(), Allocating: allocating.list(), Allocated: allocated.list()}
	sum.AllocatableModelings = modelings(nodes, used, models)
	return count, sum
}

// modelings counts the nodes with free pods, by grade.
func modelings(nodes map[string]node, used map[string]amounts, models []clusterv1alpha1.ResourceModel) []clusterv1alpha1.AllocatableModeling {
	if len(models) == 0 {
		return nil
	}
	out := make([]clusterv1alpha1.AllocatableModeling, len(models))
	for i := range models {
		out[i].Grade = models[i].Grade
	}
	for name, n := range nodes {
		free := maps.Clone(n.allocatable)
		for r, v := range used[name] {
			free[r] -= v
		}
		if free[corev1.ResourcePods] <= 0 {
			continue
		}
		if i := grade(free, models); i >= 0 {
			out[i].Count++
		}
	}
	return out
}

// grade returns the index of the grade of a node with these free resources, or -1.
func grade(free amounts, models []clusterv1alpha1.ResourceModel) int {
	lowest := len(models) - 1
	for _, r := range models[0].Ranges {
		of := -1
		for i := range models {
			at := slices.IndexFunc(models[i].Ranges, func(m clusterv1alpha1.ResourceModelRange) bool { return m.Name == r.Name })
			if at >= 0 && replicas.Value(r.Name, models[i].Ranges[at].Min) <= free[r.Name] {
				of = i
			}
		}
		lowest = min(lowest, of)
	}
	return lowest
}
