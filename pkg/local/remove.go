package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/kubelite/ready"
	"github.com/karmada-toolkit/karmada/internal/pki"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/member"
)

// leaveLimit is how long the control plane may take to release a member.
const leaveLimit = time.Minute

// RemoveMembers takes members out of a federation that runs: each leaves the control plane, its processes are stopped
// and its data is removed. The others and the control plane go on.
func RemoveMembers(ctx context.Context, d Deps, root, name string, members []string) error {
	f, err := Load(root, name)
	if err != nil {
		return err
	}
	if err := f.checkRemoval(d, members); err != nil {
		return err
	}
	unlock, err := f.lock()
	if err != nil {
		return err
	}
	defer unlock()
	info, err := ready.Read(f.dataDir(controlPlane))
	if err != nil {
		return f.notRunning(d)
	}
	for _, process := range []string{controlPlane, rolesProcess} {
		if _, alive := f.process(process).running(); !alive {
			return f.notRunning(d)
		}
	}
	for _, m := range members {
		if err := f.removeMember(ctx, d, info, m); err != nil {
			return fmt.Errorf("taking %s out of federation %q: %w", m, name, err)
		}
	}
	return nil
}

func (f *Federation) notRunning(d Deps) error {
	return fmt.Errorf("the control plane of federation %q does not run, so no member can leave it; start it with %q first", f.Name, f.command(d, "up"))
}

// command returns what the user types for a subcommand of "local" on this federation.
func (f *Federation) command(d Deps, subcommand string) string {
	out := d.Program + " local " + subcommand
	if f.Name != DefaultName {
		out += " --name " + f.Name
	}
	if root, err := DefaultRoot(d.Getenv); err == nil && f.dir != "" && filepath.Dir(f.dir) != root {
		out += " --dir " + filepath.Dir(f.dir)
	}
	return out
}

// checkRemoval reports why members cannot be taken out.
func (f *Federation) checkRemoval(d Deps, members []string) error {
	if f.Kind != nil {
		return fmt.Errorf("the members of federation %q are kind clusters, which stay until the federation is removed: take %s out of the control plane with %q, or use %q and start again with fewer --members", f.Name, strings.Join(members, ", "), d.Program+" unjoin", f.command(d, "down"))
	}
	for _, m := range members {
		if !slices.Contains(f.Members, m) {
			return fmt.Errorf("federation %q has no member %q; it has %s", f.Name, m, strings.Join(f.Members, ", "))
		}
	}
	return nil
}

func (f *Federation) removeMember(ctx context.Context, d Deps, control ready.Info, name string) error {
	step := "leave " + name
	d.Progress.Begin(step)
	if err := f.leave(ctx, d, step, control, name); err != nil {
		return err
	}
	for _, process := range []string{agentName(name), name} {
		if err := f.process(process).stop(ctx); err != nil {
			return err
		}
	}
	for _, path := range []string{f.agentDir(name), f.dataDir(name), f.log(name), f.log(agentName(name))} {
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("removing its data: %w", err)
		}
	}
	f.Members = slices.DeleteFunc(f.Members, func(m string) bool { return m == name })
	f.Pull = slices.DeleteFunc(f.Pull, func(m string) bool { return m == name })
	delete(f.Ports, agentHealth(name))
	delete(f.Ports, agentMetrics(name))
	if err := errors.Join(f.save(), f.dropContext(name)); err != nil {
		return err
	}
	d.Progress.Done(step, "its data is removed")
	return nil
}

// leave makes a member leave the control plane. Its cluster is removed afterwards, so one that does not run is given up.
func (f *Federation) leave(ctx context.Context, d Deps, step string, control ready.Info, name string) error {
	_, cp, err := connect(control.Kubeconfig)
	if err != nil {
		return err
	}
	err = cp.Get(ctx, client.ObjectKey{Name: name}, &clusterv1alpha1.Cluster{})
	if apierrors.IsNotFound(err) {
		return nil // somebody has taken it out before
	}
	if err != nil {
		return fmt.Errorf("reading cluster %q: %w", name, err)
	}
	deps := member.Deps{Program: d.Program, ControlPlane: cp, Report: d.reporter(step)}
	info, err := ready.Read(f.dataDir(name))
	_, alive := f.process(name).running()
	if err == nil && alive {
		if _, deps.Member, err = connect(info.Kubeconfig); err != nil {
			return err
		}
	}
	const namespace = clusterv1alpha1.NamespaceKarmadaCluster
	switch {
	case f.pulls(name) && deps.Member != nil:
		_, err = member.Unregister(ctx, deps, member.UnregisterRequest{
			Name: name, Namespace: clusterv1alpha1.NamespaceKarmadaSystem, Agent: member.AgentName, ClusterNamespace: namespace, Wait: leaveLimit,
		})
	case f.pulls(name):
		_, err = member.Unjoin(ctx, deps, member.UnjoinRequest{Name: name, Namespace: namespace, Wait: leaveLimit, Abandon: true, At: d.Now()})
	default:
		_, err = member.Unjoin(ctx, deps, member.UnjoinRequest{Name: name, Namespace: namespace, Wait: leaveLimit, Force: deps.Member == nil})
	}
	return err
}

// dropContext removes a member from the kubeconfig of the federation.
func (f *Federation) dropContext(name string) error {
	all, err := clientcmd.LoadFromFile(f.Kubeconfig())
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the kubeconfig of federation %q: %w", f.Name, err)
	}
	removeContext(all, name)
	return pki.WriteKubeconfig(f.Kubeconfig(), all)
}

// removeContext removes a context with its cluster and user, which no other context has.
func removeContext(all *clientcmdapi.Config, name string) {
	if context := all.Contexts[name]; context != nil {
		delete(all.Clusters, context.Cluster)
		delete(all.AuthInfos, context.AuthInfo)
	}
	delete(all.Contexts, name)
}
