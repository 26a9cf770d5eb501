package estimate

import (
	"context"

	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/replicas"
)

// Sets returns how many sets of the components fit on the nodes, once the assumed workloads are placed: sets are
// placed one after the other, the replicas of each component on the first nodes with room, by name. A list without
// replicas is unlimited. It returns an error only when ctx ends.
func (s *Snapshot) Sets(ctx context.Context, components []workv1alpha2.Component, assumed []replicas.Workload) (int32, error) {
	if s.Nodes() == 0 {
		return 0, nil
	}
	list := s.components(components)
	if len(list) == 0 {
		return Unlimited, nil
	}
	s, err := s.without(ctx, assumed)
	if err != nil {
		return 0, err
	}
	f := filling{Snapshot: s.clone(), needs: map[slot]int64{}}
	count := int64(0)
	for count < Unlimited {
		complete, alike, err := f.place(ctx, list)
		if err != nil {
			return 0, err
		}
		if !complete {
			break
		}
		count++
		if alike {
			count += f.repeat(Unlimited - count)
		}
	}
	return int32(min(count, Unlimited)), nil
}

// components prepares the components that have replicas.
func (s *Snapshot) components(from []workv1alpha2.Component) []component {
	out := make([]component, 0, len(from))
	for i := range from {
		if from[i].Replicas <= 0 {
			continue
		}
		var c component
		if r := from[i].ReplicaRequirements; r != nil {
			c = s.component(r.NodeClaim, r.ResourceRequest)
		} else {
			c = s.component(nil, nil)
		}
		c.replicas = int64(from[i].Replicas)
		out = append(out, c)
	}
	return out
}

// filling is a snapshot of its own on which sets are placed.
type filling struct {
	*Snapshot
	// needs is what the last set takes.
	needs map[slot]int64
}

// slot is a resource of a node, or its pods.
type slot struct{ node, column int }

// podsColumn stands for the pods of a node in a slot.
const podsColumn = -1

func (f *filling) left(at slot) *int64 {
	if at.column == podsColumn {
		return &f.pods[at.node]
	}
	return &f.free[at.column][at.node]
}

// place puts one set on the nodes and reports whether all of it fits; what was placed before stays. alike reports
// whether each component is on one node, so that the next set goes there too as long as there is room: the nodes before
// are full for that component, and stay so.
func (f *filling) place(ctx context.Context, list []component) (complete, alike bool, err error) {
	clear(f.needs)
	alike = true
	for i := range list {
		c := &list[i]
		for left := c.replicas; left > 0; {
			n, err := f.next(ctx, c)
			if err != nil || n == 0 {
				return false, false, err
			}
			n = min(n, left)
			f.take(c, n)
			left -= n
			alike = alike && n == c.replicas
		}
	}
	return true, alike, nil
}

// take places n replicas on the node at which a component is.
func (f *filling) take(c *component, n int64) {
	f.pods[c.at] -= n
	f.needs[slot{c.at, podsColumn}] += n
	for _, d := range c.demand {
		f.free[d.column][c.at] -= n * d.amount
		f.needs[slot{c.at, d.column}] += n * d.amount
	}
}

// next moves to the first node with room for the component and returns for how many replicas; 0 if there is none.
func (s *Snapshot) next(ctx context.Context, c *component) (int64, error) {
	if c.impossible {
		return 0, nil
	}
	for ; c.at < len(s.pods); c.at++ {
		if c.at%checkEvery == 0 && ctx.Err() != nil {
			return 0, ctx.Err()
		}
		if n := s.fits(c, c.at); n > 0 && c.nodes.match(c.at) {
			return n, nil
		}
	}
	return 0, nil
}

// repeat places further sets where the last one is, as many as fit there, up to a limit, and returns their number.
func (f *filling) repeat(limit int64) int64 {
	times := limit
	for at, need := range f.needs {
		times = min(times, *f.left(at)/need)
	}
	for at, need := range f.needs {
		*f.left(at) -= times * need
	}
	return times
}

// without returns what is left once one set of each workload is placed; a set that does not fit takes what it got.
func (s *Snapshot) without(ctx context.Context, workloads []replicas.Workload) (*Snapshot, error) {
	if len(workloads) == 0 {
		return s, nil
	}
	f := filling{Snapshot: s.clone(), needs: map[slot]int64{}}
	for i := range workloads {
		if _, _, err := f.place(ctx, s.components(workloads[i].Components)); err != nil {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	return f.Snapshot, nil
}
