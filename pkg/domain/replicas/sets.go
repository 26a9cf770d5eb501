package replicas

import (
	"cmp"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"

	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// Workload is what an earlier decision placed on a cluster that the resource
// summary may not show yet.
type Workload struct {
	Namespace  string
	Components []workv1alpha2.Component
}

// SetDemand is the requests of one set of components: each component with all of
// its replicas.
type SetDemand struct {
	components []componentDemand
	pods       int64
	total      Demand
}

type componentDemand struct {
	replicas int64
	demand   Demand
}

// NewSetDemand returns the demand of the components.
func NewSetDemand(components []workv1alpha2.Component) SetDemand {
	s := SetDemand{components: make([]componentDemand, 0, len(components))}
	for i := range components {
		n := int64(components[i].Replicas)
		if n <= 0 {
			continue
		}
		var requests corev1.ResourceList
		if r := components[i].ReplicaRequirements; r != nil {
			requests = r.ResourceRequest
		}
		one := componentDemand{replicas: n, demand: NewDemand(requests)}
		s.components = append(s.components, one)
		s.pods += n
		for _, item := range one.demand.items {
			s.total.add(item, n)
		}
	}
	slices.SortFunc(s.total.items, func(a, b request) int { return cmp.Compare(a.name, b.name) })
	return s
}

func (d *Demand) add(item request, times int64) {
	item.amount = Product(item.amount, times)
	for i := range d.items {
		if d.items[i].name == item.name {
			d.items[i].amount = Sum(d.items[i].amount, item.amount)
			return
		}
	}
	d.items = append(d.items, item)
}

// Product multiplies two numbers that are not negative without overflow: the result is at most the largest number.
func Product(a, b int64) int64 {
	if b > 0 && a > math.MaxInt64/b {
		return math.MaxInt64
	}
	return a * b
}

// Sum adds two numbers that are not negative without overflow.
func Sum(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// BoundName puts the bound of a number of sets in words.
func (s *SetDemand) BoundName(b Bound) string { return s.total.BoundName(b) }

// Sets returns how many sets still fit, and what keeps it from being more.
func (c *Capacity) Sets(s *SetDemand) (int32, Bound) {
	if !c.known {
		return 0, BoundNoSummary
	}
	if c.pods <= 0 {
		return 0, BoundPods
	}
	if s.pods <= 0 {
		return clamp(c.pods), BoundPods
	}
	best, bound := c.pods/s.pods, BoundPods
	if n, b := c.inSum(&s.total); n < best {
		best, bound = n, b
	}
	if !c.graded || best <= 0 {
		return clamp(best), bound
	}
	free := newNodes(c.grades)
	if n := free.sets(s, best); n < best {
		best, bound = n, BoundReplicas
	}
	return clamp(best), bound
}

// Without returns what is left of the capacity once the workloads are there too.
func (c *Capacity) Without(workloads []Workload) *Capacity {
	if len(workloads) == 0 || !c.known {
		return c
	}
	out := &Capacity{known: true, pods: c.pods, graded: c.graded, free: slices.Clone(c.free)}
	free := newNodes(c.grades)
	for i := range workloads {
		s := NewSetDemand(workloads[i].Components)
		out.pods -= s.pods
		for _, item := range s.total.items {
			for j := range out.free {
				if out.free[j].name == item.name {
					out.free[j].value -= min(item.amount, max(out.free[j].value, 0))
				}
			}
		}
		if c.graded {
			free.place(&s)
		}
	}
	out.grades = free
	return out
}

// nodes are runs of equal nodes, to be filled first-fit.
type nodes []grade

func newNodes(from []grade) nodes {
	out := make(nodes, len(from))
	for i := range from {
		out[i] = from[i]
		out[i].caps = slices.Clone(from[i].caps)
	}
	return out
}

// sets counts the sets that can be placed one after the other, up to a limit.
func (n *nodes) sets(s *SetDemand, limit int64) int64 {
	for count := range limit {
		if !n.place(s) {
			return count
		}
	}
	return limit
}

// place puts one set on the nodes and reports whether all of it fit.
func (n *nodes) place(s *SetDemand) bool {
	complete := true
	for i := range s.components {
		left := s.components[i].replicas
		for at := 0; at < len(*n) && left > 0; at++ {
			left -= n.take(at, &s.components[i].demand, left)
		}
		complete = complete && left == 0
	}
	return complete
}

// take puts up to want replicas on the run of nodes at an index, splitting it
// where only some of its nodes are used.
func (n *nodes) take(at int, d *Demand, want int64) int64 {
	run := (*n)[at]
	each, _ := run.fits(d)
	if each <= 0 || run.count <= 0 {
		return 0
	}
	full := min(run.count, want/each)
	rest := int64(0)
	if full < run.count {
		rest = want - full*each
	}
	parts := make(nodes, 0, 3)
	if full > 0 {
		parts = append(parts, run.filled(full, d, each))
	}
	if rest > 0 {
		parts = append(parts, run.filled(1, d, rest))
	}
	if untouched := run.count - full - min(rest, 1); untouched > 0 {
		parts = append(parts, grade{count: untouched, pods: run.pods, caps: run.caps})
	}
	*n = slices.Replace(*n, at, at+1, parts...)
	return full*each + rest
}

// filled returns count of the nodes, each with some replicas on it.
func (g *grade) filled(count int64, d *Demand, replicas int64) grade {
	out := grade{count: count, pods: g.pods - replicas, caps: slices.Clone(g.caps)}
	for _, item := range d.items {
		for i := range out.caps {
			if out.caps[i].name == item.name {
				out.caps[i].value -= item.amount * replicas
			}
		}
	}
	return out
}
