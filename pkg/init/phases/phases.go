// Package phases are the parts of an installation: each writes its objects and waits for them, and can be run again.
package phases

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/pkg/init/write"
)

// Phase is a part of an installation that can be run again alone.
type Phase struct {
	// Name is also the value of --only and --skip-phases.
	Name string
	// Doc is one line.
	Doc string
	// Needs are the phases that must be done first; all others may run at the same
	// time.
	Needs []string

	// host and controlPlane return the objects in the two clusters. A phase without either has none there.
	host, controlPlane objects
	run                func(context.Context, *State, Phase) error
}

type objects func(*Inputs) ([]client.Object, error)

// Run runs the phase.
func (p Phase) Run(ctx context.Context, s *State) error { return p.run(ctx, s, p) }

// Host returns the objects of the phase in the host cluster.
func (p Phase) Host(in *Inputs) ([]client.Object, error) {
	out, err := p.host.of(in)
	if err != nil {
		return nil, err
	}
	return out, write.Stamp(out)
}

// ControlPlane returns the objects of the phase in the control plane.
func (p Phase) ControlPlane(in *Inputs) ([]client.Object, error) { return p.controlPlane.of(in) }

func (o objects) of(in *Inputs) ([]client.Object, error) {
	if o == nil {
		return nil, nil
	}
	return o(in)
}

// All returns the phases; each comes after those that it needs.
func All() []Phase {
	return []Phase{
		preflightPhase(), certificates(), namespace(), etcd(), apiServer(), crds(), rbac(), webhooks(), aggregated(), aggregatedAPI(),
		kubeControllerManager(), scheduler(), controllerManager(), webhook(), bootstrapToken(), kubeconfig(), check(),
	}
}

// Names returns the names of the phases in their order.
func Names() []string {
	var out []string
	for _, p := range All() {
		out = append(out, p.Name)
	}
	return out
}
