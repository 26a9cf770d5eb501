package gates

import "k8s.io/component-base/featuregate"

// Changed returns those of the given gates that do not have their default, in the
// given order.
func (g *Gates) Changed(features ...featuregate.Feature) []featuregate.Feature {
	all := g.gate.GetAll()
	var out []featuregate.Feature
	for _, f := range features {
		if spec, ok := all[f]; ok && g.gate.Enabled(f) != spec.Default {
			out = append(out, f)
		}
	}
	return out
}

// ControllerManagerWithoutEffect returns the gates of the controller-manager that
// nothing reads yet.
func ControllerManagerWithoutEffect() []featuregate.Feature {
	return []featuregate.Feature{ControllerPriorityQueue}
}

// AgentWithoutEffect returns the gates of agents that nothing reads yet.
func AgentWithoutEffect() []featuregate.Feature {
	return []featuregate.Feature{ControllerPriorityQueue}
}

// SchedulerWithoutEffect returns the gates of the scheduler that nothing reads.
func SchedulerWithoutEffect() []featuregate.Feature {
	return []featuregate.Feature{Failover, GracefulEviction, ResourceQuotaEstimate}
}
