package estimate

import (
	"context"
	"math"
	"slices"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/replicas"
)

// Unlimited is the estimate of what nothing bounds.
const Unlimited = math.MaxInt32

// Snapshot is an immutable state of a Model.
type Snapshot struct {
	layout *layout
	// pods and free are what is left: by node, and by resource and node.
	pods []int64
	free [][]int64
}

func (s *Snapshot) clone() *Snapshot {
	out := &Snapshot{layout: s.layout, pods: slices.Clone(s.pods), free: make([][]int64, len(s.free))}
	for i := range s.free {
		out.free[i] = slices.Clone(s.free[i])
	}
	return out
}

// Nodes returns the number of nodes.
func (s *Snapshot) Nodes() int { return len(s.pods) }

// Replicas returns how many replicas fit on the nodes together, once the assumed workloads are placed. It returns an
// error only when ctx ends.
func (s *Snapshot) Replicas(ctx context.Context, r *workv1alpha2.ReplicaRequirements, assumed []replicas.Workload) (int32, error) {
	s, err := s.without(ctx, assumed)
	if err != nil {
		return 0, err
	}
	var c component
	if r != nil {
		c = s.component(r.NodeClaim, r.ResourceRequest)
	} else {
		c = s.component(nil, nil)
	}
	if c.impossible {
		return 0, nil
	}
	sum := int64(0)
	for i := range s.pods {
		if i%checkEvery == 0 && ctx.Err() != nil {
			return 0, ctx.Err()
		}
		n := s.fits(&c, i)
		if n == 0 || !c.nodes.match(i) {
			continue
		}
		if sum += n; sum >= Unlimited {
			return Unlimited, nil
		}
	}
	return int32(sum), nil
}

// checkEvery is the number of nodes after which an estimate checks its context.
const checkEvery = 256

// component is what the replicas of a component require, prepared for the nodes of a snapshot.
type component struct {
	nodes  matcher
	demand []demand
	// impossible is set if no node has a resource that is required.
	impossible bool
	replicas   int64
	// at is the first node that may have room.
	at int
}

// demand is the amount of the resource of a column.
type demand struct {
	column int
	amount int64
}

func (s *Snapshot) component(claim *workv1alpha2.NodeClaim, requests corev1.ResourceList) component {
	c := component{nodes: newMatcher(s.layout, claim)}
	for _, a := range amountsOf(requests) {
		if a.Name == corev1.ResourcePods {
			continue
		}
		column, ok := s.layout.resources[a.Name]
		if !ok {
			c.impossible = true
			return c
		}
		c.demand = append(c.demand, demand{column: column, amount: a.Value})
	}
	return c
}

// fits returns how many replicas the resources of a node take.
func (s *Snapshot) fits(c *component, node int) int64 {
	n := s.pods[node]
	for _, d := range c.demand {
		free := s.free[d.column][node]
		if free < d.amount {
			return 0
		}
		n = min(n, free/d.amount)
	}
	return n
}

// matcher reports which nodes accept pods with a claim.
type matcher struct {
	layout      *layout
	tolerations []corev1.Toleration
	// classes has for each list of taints whether it is tolerated: 0 means not known yet.
	classes []int8
	// affinity is set if the claim selects nodes.
	selects  bool
	affinity nodeaffinity.RequiredNodeAffinity
}

const (
	tolerated = 1 + iota
	notTolerated
)

func newMatcher(l *layout, claim *workv1alpha2.NodeClaim) matcher {
	m := matcher{layout: l, classes: make([]int8, len(l.taints))}
	if claim == nil {
		return m
	}
	m.tolerations = claim.Tolerations
	if m.selects = len(claim.NodeSelector) > 0 || claim.HardNodeAffinity != nil; m.selects {
		pod := &corev1.Pod{Spec: corev1.PodSpec{NodeSelector: claim.NodeSelector}}
		if claim.HardNodeAffinity != nil {
			pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: claim.HardNodeAffinity,
			}}
		}
		m.affinity = nodeaffinity.GetRequiredNodeAffinity(pod)
	}
	return m
}

func (m *matcher) match(node int) bool {
	class := m.layout.class[node]
	if m.classes[class] == 0 {
		m.classes[class] = tolerated
		if !m.tolerates(m.layout.taints[class]) {
			m.classes[class] = notTolerated
		}
	}
	if m.classes[class] == notTolerated {
		return false
	}
	if !m.selects {
		return true
	}
	// An invalid term matches no node; the others count.
	ok, _ := m.affinity.Match(m.layout.nodes[node])
	return ok
}

func (m *matcher) tolerates(taints []corev1.Taint) bool {
	for i := range taints {
		if !slices.ContainsFunc(m.tolerations, func(t corev1.Toleration) bool {
			return t.ToleratesTaint(logr.Discard(), &taints[i], false)
		}) {
			return false
		}
	}
	return true
}
