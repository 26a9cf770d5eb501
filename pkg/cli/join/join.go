// Package join is the command that makes a cluster a member.
package join

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/cli/env"
	"github.com/karmada-toolkit/karmada/pkg/local/kindcluster"
	"github.com/karmada-toolkit/karmada/pkg/member"
)

const (
	short = "Register a cluster to the Karmada control plane with push mode"
	long  = `
		Register a cluster to the control plane with Push mode.

		Accounts for the control plane are made in the cluster, their credentials are
		stored in the control plane, and the cluster is registered. It is then waited,
		for some seconds, until the cluster is Ready. If anything fails, what was made
		is taken back.

		A cluster that is a member of that name already gets new credentials and the
		address of the request; what runs there goes on.

		The control plane reaches the cluster at the address in the kubeconfig, or at that
		of --cluster-api-endpoint. Of a kind cluster on this machine, whose kubeconfig says
		127.0.0.1, the address of its node is used.`
	examples = `
		# Join cluster member1 with the current context of a kubeconfig
		{{.Name}} join member1 --cluster-kubeconfig=member1.kubeconfig

		# Join the cluster of context foo of the same kubeconfig as the control plane's
		{{.Name}} join member1 --cluster-kubeconfig=$KUBECONFIG --cluster-context=foo

		# Say where the cluster runs, for placements that choose by it
		{{.Name}} join member1 --cluster-kubeconfig=member1.kubeconfig --cluster-provider=aws --cluster-region=eu-west-1 --cluster-zones=a,b

		# A cluster that has another address for the control plane than for the user
		{{.Name}} join member1 --cluster-kubeconfig=member1.kubeconfig --cluster-api-endpoint=https://192.0.2.1:6443

		# See whether it could be joined
		{{.Name}} join member1 --cluster-kubeconfig=member1.kubeconfig --dry-run`
	// readyLimit is how long a joined cluster is watched until it is Ready.
	readyLimit = 10 * time.Second
	// reachLimit is how long it is then tried to reach it as the user.
	reachLimit = 3 * time.Second
)

// NewCommand returns the command.
func NewCommand(e *env.Env) *cobra.Command {
	access := e.NewAccess()
	member := env.Kubeconfig{Flag: "--cluster-kubeconfig"}
	var r request
	cmd := e.Command("join CLUSTER_NAME --cluster-kubeconfig=<KUBECONFIG>", short, long, examples)
	cmd.Args = env.ExactlyOne("cluster name is required", "only the cluster name is allowed as an argument")
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	cmd.RunE = e.Run(func(ctx context.Context, args []string) error {
		r.Name = args[0]
		return run(ctx, e, access, member, r)
	})
	access.Flags.Add(cmd).AddImpersonation(cmd)
	fs := cmd.Flags()
	fs.StringVar(&member.Path, "cluster-kubeconfig", "", "Path to the kubeconfig of the cluster.")
	fs.StringVar(&member.Context, "cluster-context", "", "Name of the context in the kubeconfig of the cluster; default the current one.")
	fs.StringVar(&r.Namespace, "cluster-namespace", clusterv1alpha1.NamespaceKarmadaCluster, "Namespace of the credentials, in the cluster and in the control plane.")
	fs.StringVar(&r.Provider, "cluster-provider", "", "Provider of the cluster; fieldSelectors of placements can choose by it.")
	fs.StringVar(&r.Region, "cluster-region", "", "Region of the cluster; fieldSelectors of placements can choose by it.")
	fs.StringSliceVar(&r.Zones, "cluster-zones", nil, "Zones of the cluster; fieldSelectors of placements can choose by them.")
	fs.StringVar(&r.Endpoint, "cluster-api-endpoint", "", "URL at which the control plane reaches the API server of the cluster; default that of the kubeconfig, or of the node of a kind cluster.")
	access.ControlPlane.AddTimeoutFlag(cmd)
	fs.BoolVar(&r.DryRun, "dry-run", false, "Check whether the cluster can be joined, and write nothing.")
	return cmd
}

type request = member.JoinRequest

func run(ctx context.Context, e *env.Env, access *env.Access, kubeconfig env.Kubeconfig, r request) error {
	if err := member.ValidateName(r.Name); err != nil {
		return err
	}
	if r.Namespace == clusterv1alpha1.NamespaceKarmadaSystem {
		e.Say("warning: --cluster-namespace=%s is the control plane's own namespace; better keep credentials apart", r.Namespace)
	}
	config, err := e.Load(kubeconfig)
	if err != nil {
		return err
	}
	d := member.Deps{Program: e.Name, Report: e.SayLine}
	if d.ControlPlane, err = access.ControlPlane.RequiredClient(ctx); err != nil {
		return err
	}
	if d.Member, err = member.NewMemberClient(config); err != nil {
		return err
	}
	r.Config = config
	uncertain, err := route(ctx, e, access, kubeconfig, &r)
	if err != nil {
		return err
	}
	cluster, err := member.Join(ctx, d, r)
	if err != nil {
		return err
	}
	if r.DryRun {
		_, err := fmt.Fprintf(e.Out, "cluster(%s) is joined successfully (dry run)\n", r.Name)
		return err
	}
	if uncertain {
		if err := member.Confirm(ctx, d, r, cluster); err != nil {
			return err
		}
	}
	waitUsable(ctx, e, access, d, r.Name)
	_, err = fmt.Fprintf(e.Out, "cluster(%s) is joined successfully\n", r.Name)
	return err
}

// route determines the address at which the control plane reaches the cluster. Uncertain reports whether the address
// may mean another machine where the control plane runs.
func route(ctx context.Context, e *env.Env, access *env.Access, kubeconfig env.Kubeconfig, r *request) (uncertain bool, err error) {
	control, err := access.ToRESTConfig()
	if err != nil {
		return false, err
	}
	a := member.Addresses{Name: r.Name, Member: r.Config.Host, ControlPlane: control.Host, Proxied: r.Config.Proxy != nil, Given: r.Endpoint}
	if a.NeedsNode() {
		if a.Node, err = kindcluster.NodeURL(ctx, os.Getenv, kubeconfig.ContextName(), r.Config.Host); err != nil {
			return false, fmt.Errorf("%w; name the address with --cluster-api-endpoint", err)
		}
	}
	if r.Endpoint, uncertain, err = a.Endpoint(); err == nil && a.Node != "" {
		e.Say("note: %s is a kind cluster at %s, which means this machine; the control plane reaches it at %s", r.Name, a.Member, a.Node)
	}
	return uncertain, err
}

// waitUsable waits until the cluster is Ready and reachable through the control plane.
// The cluster is joined in any case, so problems are only printed.
func waitUsable(ctx context.Context, e *env.Env, access *env.Access, d member.Deps, name string) {
	state, err := member.WaitReady(ctx, d, name, readyLimit)
	if err != nil || state != "" {
		e.Say("note: the cluster is not Ready yet: %s; %q shows when it is", state, e.Name+" get clusters")
		return
	}
	config, err := access.ToRESTConfig()
	if err != nil {
		return // the control plane was reached the same way just now
	}
	if state, err := member.WaitReachable(ctx, config, name, d.Report, reachLimit); err != nil || state != "" {
		e.Say("note: you do not reach the cluster through the control plane yet: %s", state)
	}
}
