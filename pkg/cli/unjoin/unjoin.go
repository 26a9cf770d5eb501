// Package unjoin is the command that makes a member leave.
package unjoin

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/cli/env"
	"github.com/karmada-toolkit/karmada/pkg/member"
)

const (
	short = "Remove a cluster from the Karmada control plane"
	long  = `
		Remove a cluster that was joined with Push mode from the control plane.

		What the control plane propagated to the cluster is removed from it. With
		--cluster-kubeconfig, so is what joining made there.`
	examples = `
		# Make member1 leave
		{{.Name}} unjoin member1

		# Also remove the control plane's accounts from it
		{{.Name}} unjoin member1 --cluster-kubeconfig=member1.kubeconfig --cluster-context=member1

		# Give up a cluster that does not answer any more
		{{.Name}} unjoin member1 --force --wait=10s

		# Forget a dead cluster at once, whatever its mode; should its agent come back, it cleans up
		{{.Name}} unjoin member1 --abandon`
)

// NewCommand returns the command.
func NewCommand(e *env.Env) *cobra.Command {
	access := e.NewAccess()
	kubeconfig := env.Kubeconfig{Flag: "--cluster-kubeconfig"}
	var r member.UnjoinRequest
	cmd := e.Command("unjoin CLUSTER_NAME --cluster-kubeconfig=<KUBECONFIG>", short, long, examples)
	cmd.Args = env.ExactlyOne("cluster name is required", "only the cluster name is allowed as an argument")
	cmd.ValidArgsFunction = access.Complete.ClusterArg
	cmd.RunE = e.Run(func(ctx context.Context, args []string) error {
		r.Name = args[0]
		r.At = e.Now()
		if r.Wait <= 0 {
			return fmt.Errorf(" --wait %v  must be a positive duration, e.g. 1m0s ", r.Wait)
		}
		return run(ctx, e, access, kubeconfig, r)
	})
	access.Flags.Add(cmd)
	fs := cmd.Flags()
	fs.StringVar(&kubeconfig.Path, "cluster-kubeconfig", "", "Path to the kubeconfig of the cluster; without it, the cluster itself is not cleaned.")
	fs.StringVar(&kubeconfig.Context, "cluster-context", "", "Name of the context in the kubeconfig of the cluster; default that with the name of the cluster, if there is one, else the current one. It must be that of the cluster.")
	fs.StringVar(&r.Namespace, "cluster-namespace", clusterv1alpha1.NamespaceKarmadaCluster, "Namespace of the credentials in the cluster.")
	fs.BoolVar(&r.Force, "force", false, "Remove the cluster even if what runs there cannot be cleaned up.")
	fs.BoolVar(&r.Abandon, "abandon", false, "Forget a dead cluster at once, in Push or Pull mode, and remember what it has: an agent that connects again cleans up, and is not registered again by itself.")
	fs.DurationVar(&r.Wait, "wait", time.Minute, "How long the control plane may take to clean up and let go of the cluster. It begins anew while objects are being removed, but not with --force.")
	fs.BoolVar(&r.DryRun, "dry-run", false, "Check whether the cluster can be removed, and write nothing.")
	return cmd
}

func run(ctx context.Context, e *env.Env, access *env.Access, kubeconfig env.Kubeconfig, r member.UnjoinRequest) error {
	d := member.Deps{Program: e.Name, Report: e.SayLine}
	if kubeconfig.Path != "" {
		if kubeconfig.Context == "" && kubeconfig.HasContext(r.Name) {
			kubeconfig.Context = r.Name
		}
		config, err := e.Load(kubeconfig)
		if err != nil {
			return err
		}
		if d.Member, err = member.NewMemberClient(config); err != nil {
			return err
		}
	}
	var err error
	if d.ControlPlane, err = access.ControlPlane.RequiredClient(ctx); err != nil {
		return err
	}
	left, err := member.Unjoin(ctx, d, r)
	for _, line := range left {
		e.Say("left behind: %s", line)
	}
	if name, flags := access.ControlPlane.LocalFederation(); err != nil && name != "" && strings.Contains(err.Error(), "is a Pull mode member") {
		return fmt.Errorf("%w; a member that \"local up\" started leaves with %q", err, e.Name+" local down"+flags+" --member "+r.Name)
	}
	if err != nil {
		return err
	}
	suffix := ""
	if r.DryRun {
		suffix = " (dry run)"
	} else {
		// The command does not connect to the host cluster.
		e.Say("note: its estimator, if it has one in the host cluster, is removed with %q", e.Name+" addons disable karmada-scheduler-estimator -C "+r.Name)
	}
	_, err = fmt.Fprintf(e.Out, "cluster(%s) is unjoined successfully%s\n", r.Name, suffix)
	return err
}
