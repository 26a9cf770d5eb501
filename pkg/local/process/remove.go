package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/kubelite/ready"
	"github.com/karmada-toolkit/karmada/internal/progress"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/local/federation"
	"github.com/karmada-toolkit/karmada/pkg/local/membership"
	"github.com/karmada-toolkit/karmada/pkg/member"
)

// leaveTimeout is how long the control plane may take to release a member.
const leaveTimeout = time.Minute

// RemoveMembers takes members out of a federation that runs: each leaves the control plane, its processes are stopped
// and its data is removed. The others and the control plane keep running.
func (r *Runtime) RemoveMembers(ctx context.Context, members []string) error {
	info, err := ready.Read(r.f.Dir().Data(federation.ControlPlane))
	if err != nil {
		return r.notRunning()
	}
	for _, name := range []string{federation.ControlPlane, federation.Roles} {
		if _, alive := (process{name, r.f.Dir()}).running(); !alive {
			return r.notRunning()
		}
	}
	for _, m := range members {
		if err := r.removeMember(ctx, info, m); err != nil {
			return fmt.Errorf("taking %s out of federation %q: %w", m, r.f.Name, err)
		}
	}
	return nil
}

func (r *Runtime) removeMember(ctx context.Context, control ready.Info, name string) (err error) {
	step := "leave " + name
	defer progress.Begin(ctx, r.Progress, step, &err)()
	if err := r.leave(ctx, step, control, name); err != nil {
		return err
	}
	_, cp, err := membership.Connect(control.Kubeconfig)
	if err != nil {
		return err
	}
	if err := (&estimators{Deps: r.Deps, f: r.f}).remove(ctx, name, cp); err != nil {
		return err
	}
	dir, agent := r.f.Dir(), federation.Agent(name)
	for _, p := range []string{agent, name} {
		if err := (process{p, dir}).stop(ctx); err != nil {
			return err
		}
	}
	for _, path := range []string{dir.Data(agent), dir.Data(name), dir.Log(name), dir.Log(agent)} {
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("removing its data: %w", err)
		}
	}
	if err := errors.Join(r.f.Drop(name), r.f.Dir().DropContext(name)); err != nil {
		return err
	}
	r.Progress.Done(step, "its data is removed")
	return nil
}

// leave removes a member from the control plane. Its cluster is removed afterwards, so it need not run.
func (r *Runtime) leave(ctx context.Context, step string, control ready.Info, name string) error {
	cfg, cp, err := membership.Connect(control.Kubeconfig)
	if err != nil {
		return err
	}
	report := membership.Reporter(r.Progress, step)
	if err := member.RequireDiscovery(ctx, cfg, leaveTimeout, report); err != nil {
		return err
	}
	err = cp.Get(ctx, client.ObjectKey{Name: name}, &clusterv1alpha1.Cluster{})
	if apierrors.IsNotFound(err) {
		return nil // it has left before
	}
	if err != nil {
		return fmt.Errorf("reading cluster %q: %w", name, err)
	}
	deps := member.Deps{Program: r.Program, ControlPlane: cp, Report: report}
	info, err := ready.Read(r.f.Dir().Data(name))
	_, alive := (process{name, r.f.Dir()}).running()
	if err == nil && alive {
		if _, deps.Member, err = membership.Connect(info.Kubeconfig); err != nil {
			return err
		}
		// A cluster that lost its data has nothing to remove, and gives the control plane no access.
		lost, err := membership.Replaced(ctx, membership.Clients{ControlPlane: cp, Member: deps.Member}, name)
		if err != nil {
			return err
		}
		if lost {
			deps.Member = nil
		}
	}
	const namespace = clusterv1alpha1.NamespaceKarmadaCluster
	switch {
	case r.f.Pulls(name) && deps.Member != nil:
		_, err = member.Unregister(ctx, deps, member.UnregisterRequest{
			Name: name, Namespace: clusterv1alpha1.NamespaceKarmadaSystem, Agent: member.AgentName, ClusterNamespace: namespace, Wait: leaveTimeout,
		})
	case r.f.Pulls(name):
		_, err = member.Unjoin(ctx, deps, member.UnjoinRequest{Name: name, Namespace: namespace, Wait: leaveTimeout, Abandon: true, At: r.Now()})
	default:
		_, err = member.Unjoin(ctx, deps, member.UnjoinRequest{Name: name, Namespace: namespace, Wait: leaveTimeout, Force: deps.Member == nil})
	}
	return err
}
