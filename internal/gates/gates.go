// Package gates holds the feature gates of the roles. A set of gates is created
// at start and passed to the code that depends on it.
package gates

import (
	"errors"
	"maps"
	"slices"
	"strings"

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

// All returns all gates.
func All() []featuregate.Feature { return slices.Collect(maps.Keys(specs())) }

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

// Gates is a set of feature gates. It is the value of a flag: of values that are repeated, the later wins.
type Gates struct {
	gate   featuregate.MutableVersionedFeatureGate
	others map[featuregate.Feature]featuregate.VersionedSpecs
	text   string
}

// New returns a set of gates with their defaults.
func New(features ...featuregate.Feature) *Gates { return NewWith(nil, features...) }

// NewWith returns a set that accepts other gates, too, such as those of Kubernetes. Gates of the control plane take
// precedence over others of the same name.
func NewWith(others map[featuregate.Feature]featuregate.VersionedSpecs, features ...featuregate.Feature) *Gates {
	all, others := specs(), maps.Clone(others)
	chosen := make(map[featuregate.Feature]featuregate.FeatureSpec, len(features))
	for _, f := range features {
		chosen[f] = all[f]
		delete(others, f)
	}
	gate := featuregate.NewFeatureGate()
	for f := range gate.GetAll() { // AllAlpha and AllBeta
		delete(others, f)
	}
	if err := errors.Join(gate.Add(chosen), gate.AddVersioned(others)); err != nil {
		panic(err) // a mistake in specs
	}
	return &Gates{gate: gate, others: others}
}

// Enabled reports whether a gate is on. Gates that are not in the set are off; in a nil set there is none.
func (g *Gates) Enabled(f featuregate.Feature) bool {
	if g == nil {
		return false
	}
	if _, ok := g.gate.GetAll()[f]; !ok {
		return false
	}
	return g.gate.Enabled(f)
}

// FeatureGate returns the gates for the configuration of a server.
func (g *Gates) FeatureGate() featuregate.FeatureGate { return g.gate }

// Names returns the gates of the control plane, sorted, with AllAlpha and AllBeta, and the others.
func (g *Gates) Names() (own, others []string) {
	for f := range g.gate.GetAll() {
		if _, ok := g.others[f]; ok {
			others = append(others, string(f))
		} else {
			own = append(own, string(f))
		}
	}
	slices.Sort(own)
	slices.Sort(others)
	return own, others
}

// Set implements pflag.Value, with text such as "Failover=true,PropagateDeps=false".
func (g *Gates) Set(text string) error {
	// All at once: with gates that are set already, a later AllAlpha or AllBeta would have no effect.
	gate, all := g.gate.DeepCopyAndReset(), strings.Trim(g.text+","+text, ",")
	if err := gate.Set(all); err != nil {
		return err
	}
	g.gate, g.text = gate, all
	return nil
}

// String implements pflag.Value.
func (g *Gates) String() string { return g.text }

// Type implements pflag.Value.
func (*Gates) Type() string { return "mapStringBool" }

// AddFlag adds --feature-gates.
func (g *Gates) AddFlag(fs *pflag.FlagSet) {
	fs.Var(g, "feature-gates", "Feature gates, as name=true or name=false, separated by commas:\n"+strings.Join(g.gate.KnownFeatures(), "\n"))
}

// OthersSet returns the other gates that were set by name, sorted.
func (g *Gates) OthersSet() []featuregate.Feature {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(g.others)), func(f featuregate.Feature) bool { return !g.gate.ExplicitlySet(f) })
}

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

// ControllersWithoutEffect returns the gates of the controller-manager and of agents that nothing reads yet.
func ControllersWithoutEffect() []featuregate.Feature {
	return []featuregate.Feature{ControllerPriorityQueue}
}

// SchedulerWithoutEffect returns the gates of the scheduler that nothing reads.
func SchedulerWithoutEffect() []featuregate.Feature {
	return []featuregate.Feature{Failover, GracefulEviction, ResourceQuotaEstimate}
}
