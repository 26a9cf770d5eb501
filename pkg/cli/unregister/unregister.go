// Package unregister is the command that makes a member in Pull mode leave.
package unregister

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/cli/env"
	"github.com/karmada-toolkit/karmada/pkg/member"
)

const (
	short = "Remove a cluster from Karmada control plane"
	long  = `
		Remove a cluster that was registered with Pull mode from the control plane.

		The agent removes from the cluster what the control plane propagated to it, the
		control plane lets go of the cluster, and then the agent is removed.

		The control plane is reached with the identity of the agent, or with the
		kubeconfig of --karmada-config.`
	examples = `
		# Make member3 leave, with the kubeconfig of member3
		{{.Name}} unregister member3 --cluster-kubeconfig=member3.kubeconfig

		# The same with a kubeconfig of the control plane
		{{.Name}} unregister member3 --cluster-kubeconfig=member3.kubeconfig --karmada-config=karmada.kubeconfig

		# An agent that runs elsewhere in the cluster
		{{.Name}} unregister member3 --cluster-kubeconfig=member3.kubeconfig --namespace=agents --agent-name=karmada-agent`
)

// leftFiles are what other tools may have left on the machine of a member.
var leftFiles = [...]string{"/etc/karmada/karmada-agent.conf", "/etc/karmada/pki/ca.crt"}

// flags are the flags of the command.
type flags struct {
	member, controlPlane env.Kubeconfig
	request              member.UnregisterRequest
}

// NewCommand returns the command.
func NewCommand(e *env.Env) *cobra.Command {
	f := flags{member: env.Kubeconfig{Flag: "--cluster-kubeconfig"}, controlPlane: env.Kubeconfig{Flag: "--karmada-config"}}
	cmd := e.Command("unregister CLUSTER_NAME", short, long, examples)
	cmd.Args = env.ExactlyOne("cluster name is required", "only the cluster name is allowed as an argument")
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	cmd.RunE = e.Run(func(ctx context.Context, args []string) error {
		f.request.Name = args[0]
		return run(ctx, e, f)
	})
	fs := cmd.Flags()
	fs.StringVar(&f.member.Path, "cluster-kubeconfig", "", "Path to the kubeconfig of the cluster.")
	fs.StringVar(&f.member.Context, "cluster-context", "", "Name of the context in the kubeconfig of the cluster; default the current one.")
	f.member.AddRequestFlags(fs)
	fs.StringVar(&f.controlPlane.Path, "karmada-config", "", "Path to a kubeconfig of the control plane; default the identity of the agent.")
	fs.StringVar(&f.controlPlane.Context, "karmada-context", "", "Name of the context in the kubeconfig of --karmada-config; default the current one. It has no effect on the identity of the agent.")
	fs.StringVarP(&f.request.Namespace, "namespace", "n", clusterv1alpha1.NamespaceKarmadaSystem, "Namespace that the agent runs in.")
	fs.StringVar(&f.request.Agent, "agent-name", member.AgentName, "Name of the agent's Deployment.")
	fs.StringVar(&f.request.ClusterNamespace, "cluster-namespace", clusterv1alpha1.NamespaceKarmadaCluster, "Namespace of the credentials in the cluster.")
	fs.DurationVar(&f.request.Wait, "wait", time.Minute, "How long the control plane may take to clean up and let go of the cluster. It begins anew while objects are being removed.")
	fs.BoolVar(&f.request.DryRun, "dry-run", false, "Check whether the cluster can be removed, and write nothing.")
	return cmd
}

func (f *flags) validate() error {
	if f.member.Path == "" {
		return errors.New("--cluster-kubeconfig is required to specify KUBECONFIG file path to access unregistering member cluster")
	}
	if f.request.Wait <= 0 {
		return fmt.Errorf(" --wait %v  must be a positive duration, e.g. 1m0s ", f.request.Wait)
	}
	return member.ValidateName(f.request.Name)
}

func run(ctx context.Context, e *env.Env, f flags) error {
	if err := f.validate(); err != nil {
		return err
	}
	config, err := e.Load(f.member)
	if err != nil {
		return err
	}
	d := member.Deps{Program: e.Name, Report: e.SayLine}
	if d.Member, err = member.NewMemberClient(config); err != nil {
		return err
	}
	controlPlane, err := f.controlPlaneConfig(ctx, e, d)
	if err != nil {
		return err
	}
	if err := e.RequireControlPlane(ctx, controlPlane, f.controlPlane); err != nil {
		return err
	}
	if d.ControlPlane, err = member.NewClient(controlPlane); err != nil {
		return err
	}
	left, err := member.Unregister(ctx, d, f.request)
	for _, line := range left {
		e.Say("left behind: %s", line)
	}
	if err != nil {
		return err
	}
	suffix := " (dry run)"
	if !f.request.DryRun {
		suffix = ""
		removeFiles(e)
	}
	_, err = fmt.Fprintf(e.Out, "cluster(%s) is unregistered successfully%s\n", f.request.Name, suffix)
	return err
}

// controlPlaneConfig is how the control plane is reached.
func (f *flags) controlPlaneConfig(ctx context.Context, e *env.Env, d member.Deps) (*rest.Config, error) {
	if f.controlPlane.Path != "" {
		f.controlPlane.UseTimeoutOf(f.member)
		return e.Load(f.controlPlane)
	}
	if f.controlPlane.Context != "" {
		d.Report("Warning: --karmada-context has no effect without --karmada-config: the identity of the agent has a context of its own")
	}
	return member.AgentConfig(ctx, d.Member, f.request)
}

// removeFiles removes what other tools left on this machine.
func removeFiles(e *env.Env) {
	for _, path := range leftFiles {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			e.Say("left behind: %v", err)
		}
	}
}
