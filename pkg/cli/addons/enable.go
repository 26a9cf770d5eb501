package addons

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/karmada-toolkit/karmada/pkg/cli/env"
	"github.com/karmada-toolkit/karmada/pkg/init/addons"
	"github.com/karmada-toolkit/karmada/pkg/init/config"
)

const (
	enableLong = `
		Enable addons: install them in the host cluster, or make those that are
		installed as wanted, and wait until they are ready. What is as wanted already is
		left alone; run the command again after it was interrupted.

		An estimator belongs to a member cluster. It gets the kubeconfig of
		--member-kubeconfig, reduced to one context, or the credentials that the control
		plane has for the cluster. With several clusters and --member-kubeconfig, each
		uses the context of its name.`
	enableExamples = `
		# The descheduler and the metrics adapter
		{{.Name}} addons enable karmada-descheduler karmada-metrics-adapter

		# An estimator for each of two clusters, with the credentials of the control plane
		{{.Name}} addons enable karmada-scheduler-estimator -C member1,member2

		# With credentials that may only read
		{{.Name}} addons enable karmada-scheduler-estimator -C member1 --member-kubeconfig=member1.config

		# Everything, with an estimator for each cluster in Push mode
		{{.Name}} addons enable all --all-clusters

		# Write the objects to files, which another tool applies
		{{.Name}} addons enable karmada-search --export=manifests`
)

// enableFlags are those of "enable".
type enableFlags struct {
	flags
	request                   addons.Request
	memberPath, memberContext string
	export                    string
}

func newEnableCommand(e *env.Env) *cobra.Command {
	f := enableFlags{flags: newFlags(), request: addons.Request{Config: config.New()}}
	cmd := e.Command("enable", "Enable addons", enableLong, enableExamples)
	cmd.ValidArgsFunction = complete
	cmd.RunE = e.Run(func(ctx context.Context, args []string) error { return f.run(ctx, e, args) })
	f.flags.add(cmd)
	f.addFlags(cmd.Flags())
	return cmd
}

func (f *enableFlags) addFlags(fs *pflag.FlagSet) {
	f.request.Config.AddAddonFlags(fs)
	fs.StringVar(&f.memberPath, "member-kubeconfig", "", "Path to a kubeconfig of the member clusters, as pods of the host cluster reach them; default the credentials that the control plane has.")
	fs.StringVar(&f.memberContext, "member-context", "", "Context of --member-kubeconfig; default the current one, or with several clusters those of their names.")
	fs.StringVar(&f.export, "export", "", "Directory to which the objects are written instead of applying them, with private keys; README.txt in it has the next steps.")
	fs.BoolVar(&f.request.AllClusters, "all-clusters", false, "Enable an estimator for each member cluster in Push mode, and with --member-kubeconfig for every one.")
}

func (f *enableFlags) run(ctx context.Context, e *env.Env, args []string) error {
	r := &f.request
	r.Namespace, r.Addons, r.Clusters = f.namespace, args, f.clusters()
	switch {
	case r.Config.WaitSeconds < 0 || r.Config.Addons.WaitSeconds < 0:
		return errors.New("--pod-timeout and --apiservice-timeout must be 0 or greater")
	case f.memberContext != "" && f.memberPath == "":
		return errors.New("--member-context needs --member-kubeconfig, the file that has the context")
	case f.memberContext != "" && (len(r.Clusters) > 1 || r.AllClusters):
		return errors.New("--member-context is for one cluster: name one with --cluster, or let each use the context of its name in --member-kubeconfig")
	}
	if f.memberPath != "" {
		r.MemberKubeconfig = f.memberKubeconfig
	}
	if err := r.Validate("enable"); err != nil {
		return err
	}
	d, err := f.deps(e)
	if err != nil {
		return err
	}
	verb, install := f.installation()
	result, err := install(ctx, d, *r)
	if result == nil {
		return e.HostError(f.host, err)
	}
	for _, note := range result.Notes {
		e.Say("note: %s", note)
	}
	if len(result.Workloads) > 0 {
		if _, err := fmt.Fprintf(e.Out, "%s: %s\n", verb, strings.Join(result.Workloads, ", ")); err != nil {
			return err
		}
	}
	return err
}

// installation returns what is done with the addons, and what is printed of it.
func (f *enableFlags) installation() (verb string, install func(context.Context, addons.Deps, addons.Request) (*addons.Result, error)) {
	if f.export == "" {
		return "Enabled", addons.Enable
	}
	return "Written to " + f.export, func(ctx context.Context, d addons.Deps, r addons.Request) (*addons.Result, error) {
		return addons.Export(ctx, d, r, f.export)
	}
}

// memberKubeconfig returns the part of --member-kubeconfig that is for a cluster.
func (f *enableFlags) memberKubeconfig(cluster string) (*clientcmdapi.Config, error) {
	k := env.Kubeconfig{Flag: "--member-kubeconfig", Path: f.memberPath, Context: f.memberContext}
	if len(f.request.Clusters) != 1 {
		k.Context = cluster
	}
	return k.Alone()
}
