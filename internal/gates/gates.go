// Package gates holds the feature gates of the roles. A set of gates is created
// at start and passed to the code that depends on it.
package gates

import (
	"github.com/spf13/pflag"
	"k8s.io/component-base/featuregate"
)

// The gates.
const (
	Failover                          featuregate.Feature = "Failover"
	GracefulEviction                  featuregate.Feature = "GracefulEviction"
	PropagateDeps                     featuregate.Feature = "PropagateDeps"
	CustomizedClusterResourceModeling featuregate.Feature = "CustomizedClusterResourceModeling"
	PropagationPolicyPreemption       featuregate.Feature = "PropagationPolicyPreemption"
	MultiClusterService               featuregate.Feature = "MultiClusterService"
	ResourceQuotaEstimate             featuregate.Feature = "ResourceQuotaEstimate"
	StatefulFailoverInjection         featuregate.Feature = "StatefulFailoverInjection"
	PriorityBasedScheduling           featuregate.Feature = "PriorityBasedScheduling"
	FederatedQuotaEnforcement         featuregate.Feature = "FederatedQuotaEnforcement"
	MultiplePodTemplatesScheduling    featuregate.Feature = "MultiplePodTemplatesScheduling"
	ControllerPriorityQueue           featuregate.Feature = "ControllerPriorityQueue"
	WorkloadAffinity                  featuregate.Feature = "WorkloadAffinity"
	SchedulingOvercommitProtection    featuregate.Feature = "SchedulingOvercommitProtection"
)

func specs() map[featuregate.Feature]featuregate.FeatureSpec {
	return map[featuregate.Feature]featuregate.FeatureSpec{
		Failover:                          {PreRelease: featuregate.Beta},
		GracefulEviction:                  {Default: true, PreRelease: featuregate.Beta},
		PropagateDeps:                     {Default: true, PreRelease: featuregate.Beta},
		CustomizedClusterResourceModeling: {Default: true, PreRelease: featuregate.Beta},
		PropagationPolicyPreemption:       {PreRelease: featuregate.Alpha},
		MultiClusterService:               {PreRelease: featuregate.Alpha},
		ResourceQuotaEstimate:             {PreRelease: featuregate.Alpha},
		StatefulFailoverInjection:         {PreRelease: featuregate.Alpha},
		PriorityBasedScheduling:           {Default: true, PreRelease: featuregate.Beta},
		FederatedQuotaEnforcement:         {PreRelease: featuregate.Alpha},
		MultiplePodTemplatesScheduling:    {PreRelease: featuregate.Alpha},
		ControllerPriorityQueue:           {Default: true, PreRelease: featuregate.Beta},
		WorkloadAffinity:                  {PreRelease: featuregate.Alpha},
		SchedulingOvercommitProtection:    {PreRelease: featuregate.Alpha},
	}
}

// ControllerManager returns the gates that the controller-manager reads.
func ControllerManager() []featuregate.Feature {
	return []featuregate.Feature{
		Failover, GracefulEviction, PropagateDeps, CustomizedClusterResourceModeling,
		PropagationPolicyPreemption, MultiClusterService, ResourceQuotaEstimate,
		StatefulFailoverInjection, PriorityBasedScheduling, FederatedQuotaEnforcement,
		MultiplePodTemplatesScheduling, ControllerPriorityQueue, WorkloadAffinity,
	}
}

// Agent returns the gates that an agent reads.
func Agent() []featuregate.Feature {
	return []featuregate.Feature{CustomizedClusterResourceModeling, MultiClusterService, ControllerPriorityQueue}
}

// Gates is a set of feature gates.
type Gates struct {
	gate featuregate.MutableFeatureGate
}

// New returns a set of gates with their defaults.
func New(features ...featuregate.Feature) *Gates {
	all := specs()
	chosen := make(map[featuregate.Feature]featuregate.FeatureSpec, len(features))
	for _, f := range features {
		chosen[f] = all[f]
	}
	gate := featuregate.NewFeatureGate()
	if err := gate.Add(chosen); err != nil {
		panic(err) // a mistake in specs
	}
	return &Gates{gate: gate}
}

// Enabled reports whether a gate is on. Gates that are not in the set are off.
func (g *Gates) Enabled(f featuregate.Feature) bool {
	if _, ok := g.gate.GetAll()[f]; !ok {
		return false
	}
	return g.gate.Enabled(f)
}

// Known returns the gates of the set, a line each: name, values, stage and default.
func (g *Gates) Known() []string { return g.gate.KnownFeatures() }

// Set sets gates from text such as "Failover=true,PropagateDeps=false".
func (g *Gates) Set(text string) error { return g.gate.Set(text) }

// AddFlag adds --feature-gates.
func (g *Gates) AddFlag(fs *pflag.FlagSet) { g.gate.AddFlag(fs) }

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
