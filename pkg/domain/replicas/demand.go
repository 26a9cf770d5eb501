// Package replicas holds the arithmetic of replicas: how a number of them is
// divided between clusters (Dispense) and how many of them a cluster could
// still take (Capacity). It is pure: the same values give the same answer.
package replicas

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Demand is the requests of one replica, prepared to be held against the
// capacity of many clusters.
type Demand struct {
	// Nothing is set if there are no requirements: only pods count.
	Nothing bool
	items   []request
}

type request struct {
	name corev1.ResourceName
	// amount is in the unit of the resource.
	amount int64
	// modeled reports whether nodes know the resource.
	modeled bool
}

// NewDemand returns the demand of the requests, without those of nothing.
func NewDemand(requests corev1.ResourceList) Demand {
	d := Demand{items: make([]request, 0, len(requests))}
	for name, quantity := range requests {
		if quantity.Sign() <= 0 {
			continue
		}
		d.items = append(d.items, request{name: name, amount: Value(name, quantity), modeled: Modeled(name)})
	}
	if len(d.items) > 1 {
		slices.SortFunc(d.items, func(a, b request) int { return cmp.Compare(a.name, b.name) })
	}
	return d
}

// Modeled reports whether capacity of nodes is kept for the resource: cpu, memory,
// ephemeral storage and what the scheduler of Kubernetes calls scalars.
func Modeled(name corev1.ResourceName) bool {
	switch name {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		return true
	case corev1.ResourcePods:
		return false
	}
	s := string(name)
	if strings.HasPrefix(s, corev1.ResourceHugePagesPrefix) || strings.HasPrefix(s, corev1.ResourceAttachableVolumesPrefix) {
		return true
	}
	return strings.Contains(s, "/") && !strings.HasPrefix(s, corev1.DefaultResourceRequestsPrefix)
}

// Bound names what keeps a capacity from being larger.
type Bound int16

// Bounds other than one of the requests, which are numbered from 0.
const (
	BoundNone Bound = -1 - iota
	BoundPods
	BoundNoSummary
	BoundReplicas
	BoundEstimator
	BoundFlapping
	BoundNotReady
)

// BoundName puts the bound in words: the name of the resource, or what else it
// is.
func (d *Demand) BoundName(b Bound) string {
	switch {
	case b >= 0 && int(b) < len(d.items):
		return string(d.items[b].name)
	case b == BoundPods:
		return "pods"
	case b == BoundNoSummary:
		return "no resource summary"
	case b == BoundReplicas:
		return "replicas of a set"
	case b == BoundEstimator:
		return "scheduler-estimator"
	case b == BoundFlapping:
		return "changes of the condition Ready"
	case b == BoundNotReady:
		return "not Ready"
	default:
		return ""
	}
}

// Graded reports whether the nodes of the cluster are modeled by grade, so that they count and not the sum of what is
// free.
func (c *Capacity) Graded() bool { return c.graded }
