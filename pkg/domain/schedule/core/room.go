package core

import (
	"math"

	"github.com/karmada-toolkit/karmada/pkg/domain/replicas"
	"github.com/karmada-toolkit/karmada/pkg/domain/schedule/framework"
)

// room counts how many replicas of a request fit clusters.
type room struct {
	request *Request
	// sets is set when whole sets of components are placed, and counted.
	sets   bool
	demand replicas.Demand
	set    replicas.SetDemand
}

func newRoom(request *Request) room {
	r := room{request: request, sets: request.MultiplePodTemplates && wholeSets(request.Spec)}
	switch requirements := request.Spec.ReplicaRequirements; {
	case r.sets:
		r.set = replicas.NewSetDemand(request.Spec.Components)
	case requirements != nil:
		r.demand = replicas.NewDemand(requirements.ResourceRequest)
	default:
		r.demand = replicas.Demand{Nothing: true}
	}
	return r
}

// wanted returns how many replicas, or sets, are to be placed.
func (r *room) wanted() int64 {
	if r.sets {
		return 1
	}
	return int64(r.request.Spec.Replicas)
}

// in returns how many more replicas, or sets, fit the cluster.
func (r *room) in(cluster *framework.ClusterInfo) (int64, replicas.Bound) {
	spec := r.request.Spec
	if spec.Replicas == 0 && len(spec.Components) == 0 {
		return math.MaxInt32, replicas.BoundNone
	}
	capacity := cluster.Capacity
	if len(r.request.Assumed) > 0 {
		capacity = capacity.Without(r.request.Assumed[cluster.Name()])
	}
	var n int32
	var bound replicas.Bound
	if r.sets {
		n, bound = capacity.Sets(&r.set)
	} else {
		n, bound = capacity.Replicas(&r.demand)
	}
	if len(r.request.Estimates) > 0 {
		e, ok := r.request.Estimates[cluster.Name()]
		if ok && e.Err == "" && e.Replicas != Unauthentic && e.Replicas < n {
			n, bound = e.Replicas, replicas.BoundEstimator
		}
	}
	if n == math.MaxInt32 {
		n = spec.Replicas
	}
	return int64(n), bound
}
