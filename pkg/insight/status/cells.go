package status

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/runtime"

	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
	"github.com/karmada-toolkit/karmada/pkg/insight/why"
)

// State is the state of an object in a cluster.
type State string

// The states.
const (
	// Healthy and Unhealthy are what the interpreter reports.
	Healthy   State = "Healthy"
	Unhealthy State = "Unhealthy"
	// Unknown is that of an object without a rule for its health.
	Unknown State = "Unknown"
	// NotApplied is that of an object which the cluster refuses, NotYetApplied of one that is on its way.
	NotApplied    State = "NotApplied"
	NotYetApplied State = "NotYetApplied"
	// Suspended is that of an object whose dispatching is suspended.
	Suspended State = "Suspended"
	// Unreachable is that of an object in a cluster that is not Ready: what is known of it may be old.
	Unreachable State = "Unreachable"
	// Leaving is that of an object that is being evicted.
	Leaving State = "Leaving"
)

// Cell is what is known of the object of a binding in a cluster.
type Cell struct {
	Cluster string
	State   State
	// Counted reports whether the object has replicas. Ready of Desired are ready.
	Counted        bool
	Ready, Desired int64
	// Message is why the cluster refuses the object.
	Message string
}

// Cells returns what is known of the object of a binding in each of its clusters, in the order of its targets. unready reports whether a
// cluster is not Ready.
func Cells(b workv1alpha2.Binding, unready func(cluster string) bool) []Cell {
	spec := b.GetSpec()
	targets := scope.Kept(scope.Targets(spec), spec.GracefulEvictionTasks)
	out := make([]Cell, len(targets))
	items := make(map[string]*workv1alpha2.AggregatedStatusItem, len(targets))
	for i := range b.GetStatus().AggregatedStatus {
		items[b.GetStatus().AggregatedStatus[i].ClusterName] = &b.GetStatus().AggregatedStatus[i]
	}
	for i, t := range targets {
		item := items[t.Name]
		c := Cell{Cluster: t.Name, State: stateOf(item), Counted: t.Replicas > 0, Desired: int64(t.Replicas)}
		if item != nil {
			c.count(item.Status)
		}
		switch {
		case spec.EvictingFrom(t.Name):
			c.State = Leaving
		case unready(t.Name):
			c.State = Unreachable
		case c.State == NotApplied:
			c.Message = why.Line(item.AppliedMessage)
		case c.State == NotYetApplied && scope.DispatchingSuspended(spec.Suspension, t.Name):
			c.State = Suspended
		}
		out[i] = c
	}
	return out
}

// stateOf returns the state that a binding reports of a cluster.
func stateOf(item *workv1alpha2.AggregatedStatusItem) State {
	switch {
	case item == nil || !item.Applied && item.AppliedMessage == "":
		return NotYetApplied
	case !item.Applied:
		return NotApplied
	case item.Health == workv1alpha2.ResourceHealthy:
		return Healthy
	case item.Health == workv1alpha2.ResourceUnhealthy:
		return Unhealthy
	}
	return Unknown
}

// count counts replicas by the status of the object in the cluster.
func (c *Cell) count(status *runtime.RawExtension) {
	// A status of another form has no counts, as one that cannot be decoded.
	var counts struct {
		ReadyReplicas, NumberReady, DesiredNumberScheduled, Succeeded *int64
	}
	if status == nil || len(status.Raw) == 0 || json.Unmarshal(status.Raw, &counts) != nil {
		return
	}
	switch {
	case counts.ReadyReplicas != nil:
		c.Counted, c.Ready = true, *counts.ReadyReplicas
	case counts.DesiredNumberScheduled != nil:
		c.Counted, c.Desired = true, *counts.DesiredNumberScheduled
		if counts.NumberReady != nil {
			c.Ready = *counts.NumberReady
		}
	case counts.Succeeded != nil:
		c.Counted, c.Ready = true, *counts.Succeeded
	}
}
