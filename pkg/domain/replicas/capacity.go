package replicas

import (
	"cmp"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
)

// podsPerNode is the number of pods that a modeled node takes.
const podsPerNode = 110

// Capacity is what a cluster has left, made ready for many questions. It is
// immutable.
type Capacity struct {
	known bool
	pods  int64
	free  []amount
	// graded is set if the nodes are modeled; then they count instead of free.
	graded bool
	grades []grade
}

// amount is how much there is of a resource, in its unit: milli for cpu.
type amount struct {
	name  corev1.ResourceName
	value int64
}

// grade is a number of equal nodes.
type grade struct {
	count int64
	pods  int64
	caps  []amount
}

// NewCapacity reads the resource summary of a cluster; with models also its
// nodes by grade.
func NewCapacity(cluster *clusterv1alpha1.Cluster, models bool) *Capacity {
	summary := cluster.Status.ResourceSummary
	if summary == nil {
		return &Capacity{}
	}
	c := &Capacity{known: true, pods: Value(corev1.ResourcePods, left(summary, corev1.ResourcePods))}
	c.free = make([]amount, 0, len(summary.Allocatable))
	for name := range summary.Allocatable {
		c.free = append(c.free, amount{name: name, value: Value(name, left(summary, name))})
	}
	slices.SortFunc(c.free, func(a, b amount) int { return cmp.Compare(a.name, b.name) })
	if models && len(summary.AllocatableModelings) > 0 {
		c.grades, c.graded = grades(cluster.Spec.ResourceModels, summary.AllocatableModelings)
	}
	return c
}

func left(summary *clusterv1alpha1.ResourceSummary, name corev1.ResourceName) resource.Quantity {
	free := summary.Allocatable[name].DeepCopy()
	free.Sub(summary.Allocated[name])
	free.Sub(summary.Allocating[name])
	return free
}

// Value returns a quantity in the unit in which its resource is computed: thousandths for cpu. Numbers that do not fit
// become the largest or smallest.
func Value(name corev1.ResourceName, quantity resource.Quantity) int64 {
	limit := int64(math.MaxInt64)
	if name == corev1.ResourceCPU {
		limit /= 1000
	}
	switch {
	case quantity.CmpInt64(limit) >= 0:
		return math.MaxInt64
	case quantity.CmpInt64(-limit) <= 0:
		return math.MinInt64
	case name == corev1.ResourceCPU:
		// What does not round up to one core is still worth its thousandths.
		return quantity.MilliValue()
	}
	return quantity.Value()
}

// grades pairs the counts of nodes with the least a node of that grade has. It
// reports false when they do not fit together.
func grades(models []clusterv1alpha1.ResourceModel, counts []clusterv1alpha1.AllocatableModeling) ([]grade, bool) {
	if len(models) == 0 {
		return nil, false
	}
	counts = slices.SortedStableFunc(slices.Values(counts), func(a, b clusterv1alpha1.AllocatableModeling) int {
		return cmp.Compare(a.Grade, b.Grade)
	})
	out := make([]grade, 0, len(counts))
	for _, c := range counts {
		if c.Count < 0 {
			return nil, false
		}
		at := slices.IndexFunc(models, func(m clusterv1alpha1.ResourceModel) bool { return m.Grade == c.Grade })
		if at < 0 || c.Count == 0 {
			continue
		}
		caps := make([]amount, 0, len(models[at].Ranges))
		for _, r := range models[at].Ranges {
			caps = append(caps, amount{name: r.Name, value: Value(r.Name, r.Min)})
		}
		out = append(out, grade{count: int64(c.Count), pods: podsPerNode, caps: caps})
	}
	return out, true
}

func find(list []amount, name corev1.ResourceName) (int64, bool) {
	for i := range list {
		if list[i].name == name {
			return list[i].value, true
		}
	}
	return 0, false
}

// Replicas returns how many replicas of the demand still fit, and what keeps it
// from being more.
func (c *Capacity) Replicas(d *Demand) (int32, Bound) {
	if !c.known {
		return 0, BoundNoSummary
	}
	if c.pods <= 0 {
		return 0, BoundPods
	}
	best, bound := c.pods, BoundPods
	switch {
	case d.Nothing:
	case c.graded:
		if n, b := c.onNodes(d); n < best {
			best, bound = n, b
		}
	default:
		if n, b := c.inSum(d); n < best {
			best, bound = n, b
		}
	}
	return clamp(best), bound
}

func clamp(n int64) int32 { return int32(min(max(n, 0), math.MaxInt32)) }

// inSum holds the demand against what is free in the whole cluster.
func (c *Capacity) inSum(d *Demand) (int64, Bound) {
	best, bound := int64(math.MaxInt64), BoundNone
	for i := range d.items {
		free, ok := find(c.free, d.items[i].name)
		if !ok || free <= 0 {
			return 0, Bound(i)
		}
		if n := free / d.items[i].amount; n < best {
			best, bound = n, Bound(i)
		}
	}
	return best, bound
}

// onNodes adds up what fits on each node.
func (c *Capacity) onNodes(d *Demand) (int64, Bound) {
	var sum, most int64
	bound := BoundNone
	for i := range c.grades {
		g := &c.grades[i]
		n, b := g.fits(d)
		sum += n * g.count
		if bound == BoundNone || n*g.count >= most {
			most, bound = n*g.count, b
		}
		if sum >= math.MaxInt32 {
			break
		}
	}
	return sum, bound
}

// fits returns how many replicas one node takes.
func (g *grade) fits(d *Demand) (int64, Bound) {
	best, bound := g.pods, BoundPods
	for i := range d.items {
		if !d.items[i].modeled {
			continue
		}
		free, _ := find(g.caps, d.items[i].name)
		if n := max(free, 0) / d.items[i].amount; n < best {
			best, bound = n, Bound(i)
		}
	}
	return best, bound
}

// Roomier reports whether the capacity has more of anything than another.
func (c *Capacity) Roomier(than *Capacity) bool {
	if !c.known {
		return false
	}
	if !than.known || c.pods > than.pods || c.graded != than.graded {
		return true
	}
	for i := range c.free {
		if before, ok := find(than.free, c.free[i].name); !ok || c.free[i].value > before {
			return true
		}
	}
	return c.graded && !slices.EqualFunc(c.grades, than.grades, func(a, b grade) bool {
		return a.count == b.count && slices.Equal(a.caps, b.caps)
	})
}
