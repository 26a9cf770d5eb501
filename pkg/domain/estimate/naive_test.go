package estimate

import (
	corev1 "k8s.io/api/core/v1"

	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/replicas"
)

// naive applies the rules by a walk over all nodes and all their pods for every estimate.
type naive struct {
	nodes []corev1.Node // sorted by name
	pods  map[string][]*corev1.Pod
}

// room is what is left of a node.
type room struct {
	pods int64
	free map[corev1.ResourceName]int64
}

func (n *naive) rooms() []room {
	out := make([]room, len(n.nodes))
	for i := range n.nodes {
		node := NodeOf(&n.nodes[i])
		out[i] = room{pods: node.Allocatable.get(corev1.ResourcePods), free: map[corev1.ResourceName]int64{}}
		for _, a := range node.Allocatable {
			out[i].free[a.Name] = a.Value
		}
		for _, p := range n.pods[node.Name] {
			pod, ok := PodOf(p)
			if !ok {
				continue
			}
			out[i].pods--
			for _, a := range pod.Requests {
				out[i].free[a.Name] = max(out[i].free[a.Name], 0) - a.Value // does not overflow
			}
		}
		out[i].pods = max(out[i].pods, 0)
	}
	return out
}

func (r *room) fits(requests corev1.ResourceList) int64 {
	n := r.pods
	for name, q := range requests {
		if v := replicas.Value(name, q); v > 0 {
			n = min(n, max(r.free[name], 0)/v)
		}
	}
	return n
}

func (r *room) take(requests corev1.ResourceList, n int64) {
	r.pods -= n
	for name, q := range requests {
		r.free[name] -= n * replicas.Value(name, q)
	}
}

func (n *naive) matches(claim *workv1alpha2.NodeClaim) []bool {
	out := make([]bool, len(n.nodes))
	for i := range n.nodes {
		node := NodeOf(&n.nodes[i])
		m := newMatcher(newLayout([]*Node{&node}), claim)
		out[i] = m.match(0)
	}
	return out
}

// place puts a set on the rooms and reports whether all of it fits.
func (n *naive) place(rooms []room, components []workv1alpha2.Component) bool {
	for i := range components {
		c := &components[i]
		r := c.ReplicaRequirements
		if r == nil {
			r = &workv1alpha2.ComponentReplicaRequirements{}
		}
		matches := n.matches(r.NodeClaim)
		left := int64(c.Replicas)
		for at := range rooms {
			if left > 0 && matches[at] {
				k := min(left, rooms[at].fits(r.ResourceRequest))
				rooms[at].take(r.ResourceRequest, k)
				left -= k
			}
		}
		if left > 0 {
			return false
		}
	}
	return true
}

func (n *naive) replicas(r *workv1alpha2.ReplicaRequirements, assumed []replicas.Workload) int32 {
	rooms := n.rooms()
	for _, w := range assumed {
		n.place(rooms, w.Components)
	}
	matches := n.matches(r.NodeClaim)
	sum := int64(0)
	for i := range rooms {
		if matches[i] {
			sum += rooms[i].fits(r.ResourceRequest)
		}
	}
	return int32(min(sum, Unlimited))
}

func (n *naive) sets(components []workv1alpha2.Component, assumed []replicas.Workload) int32 {
	rooms := n.rooms()
	for _, w := range assumed {
		n.place(rooms, w.Components)
	}
	count := int32(0)
	for n.place(rooms, components) {
		count++
	}
	return count
}
