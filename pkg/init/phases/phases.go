// Package phases are the parts of an installation: each writes its objects and waits for them, and can be run again.
package phases

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/pkg/init/components"
	"github.com/karmada-toolkit/karmada/pkg/init/preflight"
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

// Preflight is the phase that checks what can be checked.
const Preflight = "preflight"

func preflightPhase() Phase {
	return Phase{Name: Preflight, Doc: "Check the host cluster, the permissions and the local directories", run: runPreflight}
}

func runPreflight(ctx context.Context, s *State, _ Phase) error {
	if err := preflight.Check(ctx, preflight.Deps{Config: s.Config, Facts: s.Facts, Host: s.HostAPI, Now: s.Now}); err != nil {
		return err
	}
	s.Progress.Done(Preflight, "nothing is in the way")
	return nil
}

// Namespace is the phase that writes the namespace of the control plane and its Secrets.
const Namespace = "namespace"

func namespace() Phase {
	return Phase{
		Name: Namespace, Doc: "Write the namespace and the Secrets", Needs: []string{Certificates},
		host: namespaceObjects, run: runNamespace,
	}
}

func namespaceObjects(in *Inputs) ([]client.Object, error) {
	secrets, err := components.Secrets(in.Config)
	if err != nil {
		return nil, err
	}
	return append([]client.Object{components.HostNamespace(in.Config)}, secrets...), nil
}

// runNamespace writes the namespace, then what is in it.
func runNamespace(ctx context.Context, s *State, p Phase) error {
	in, err := s.Inputs()
	if err != nil {
		return err
	}
	objects, err := p.Host(in)
	if err != nil {
		return err
	}
	if _, err := s.apply(ctx, s.Host, objects[:1]); err != nil {
		return fmt.Errorf("create namespace %s failed: %w", in.Namespace, err)
	}
	result, err := s.apply(ctx, s.Host, objects[1:])
	if err != nil {
		return err
	}
	s.Progress.Done(p.Name, "Secrets "+result)
	return nil
}

// RBAC is the phase that writes the roles of users and of the components.
const RBAC = "rbac"

func rbac() Phase {
	return Phase{
		Name: RBAC, Doc: "Write the roles of users and of the components", Needs: []string{APIServer},
		controlPlane: rbacObjects, run: writeObjects,
	}
}

func rbacObjects(in *Inputs) ([]client.Object, error) {
	return slices.Concat(components.SystemNamespaces(in.System()), components.FederationRBAC(), components.ComponentRBAC(in.System())), nil
}

// The phases that only install a workload in the host cluster.
const (
	KubeControllerManager = "kube-controller-manager"
	Scheduler             = "scheduler"
	ControllerManager     = "controller-manager"
)

// afterEtcd are the needs of the workloads that wait for the API server without harm. They do not start before etcd is
// ready only to leave the processors to what all others wait for.
func afterEtcd() []string { return []string{Etcd} }

func kubeControllerManager() Phase {
	return Phase{
		Name: KubeControllerManager, Doc: "Install Kubernetes' controllers", Needs: afterEtcd(),
		host: func(in *Inputs) ([]client.Object, error) {
			return []client.Object{components.KubeControllerManagerService(in.Config), components.KubeControllerManagerDeployment(in.Config)}, nil
		},
		run: deploy(components.KubeControllerManager),
	}
}

func scheduler() Phase {
	return Phase{
		Name: Scheduler, Doc: "Install the scheduler", Needs: afterEtcd(),
		host: func(in *Inputs) ([]client.Object, error) {
			return []client.Object{components.SchedulerDeployment(in.Config)}, nil
		},
		run: deploy(components.Scheduler),
	}
}

func controllerManager() Phase {
	return Phase{
		Name: ControllerManager, Doc: "Install the controllers of the federation", Needs: afterEtcd(),
		host: func(in *Inputs) ([]client.Object, error) {
			return []client.Object{components.ControllerManagerDeployment(in.Config)}, nil
		},
		run: deploy(components.ControllerManager),
	}
}
