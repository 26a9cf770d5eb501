// Package search holds the commands on the role search.
package search

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/cli/env"
)

const (
	short = "Use all clusters as one"
	long  = `
		Use all clusters as one, through the role search of the control plane.

		ResourceRegistries select the objects that it caches.`
	kubeconfigLong = `
		Print a kubeconfig for all clusters as one, with the credentials of the current context.

		Its current context, fleet, reads the objects of all clusters that ResourceRegistries select.
		Requests for one object go to the cluster that holds it. The contexts fleet-CLUSTER are for one
		cluster each: use them for objects that several clusters hold, such as propagated workloads.

		The kubeconfig contains credentials: write it to a file that only you can read.`
	kubeconfigExamples = `
		# The pods of all clusters, as they change
		(umask 077; {{.Name}} search kubeconfig > fleet.kubeconfig)
		# Print it for another control plane
		{{.Name}} search kubeconfig --context prod`
)

// fleet is the name of the context for all clusters, and the beginning of those for one.
const fleet = "fleet"

// NewCommand returns the command.
func NewCommand(e *env.Env) *cobra.Command {
	return e.Group("search", short, long, "# A kubeconfig for all clusters\n(umask 077; {{.Name}} search kubeconfig > fleet.kubeconfig)",
		newKubeconfig(e))
}

func newKubeconfig(e *env.Env) *cobra.Command {
	access := e.NewAccess()
	cmd := e.Command("kubeconfig", "Print a kubeconfig for all clusters as one", kubeconfigLong, kubeconfigExamples)
	cmd.Args = cobra.NoArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), e, access.ControlPlane) }
	access.Flags.Add(cmd)
	return cmd
}

func run(ctx context.Context, e *env.Env, plane *env.ControlPlane) error {
	clusters, err := plane.ClusterNames(ctx)
	if err != nil {
		return err
	}
	if _, err := plane.SearchConfig(); err != nil {
		return err
	}
	of, err := plane.Kubeconfig()
	if err != nil {
		return err
	}
	config, err := kubeconfig(of, clusters)
	if err != nil {
		return err
	}
	data, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("encoding the kubeconfig: %w", err)
	}
	_, err = e.Out.Write(data)
	return err
}

// kubeconfig returns one with the contexts for all clusters and for each. of has one context, which is the current one.
func kubeconfig(of *clientcmdapi.Config, clusters []string) (*clientcmdapi.Config, error) {
	current := of.Contexts[of.CurrentContext]
	if current == nil || of.Clusters[current.Cluster] == nil {
		return nil, fmt.Errorf("context %q of the kubeconfig has no cluster: choose another with --context", of.CurrentContext)
	}
	out := clientcmdapi.NewConfig()
	out.CurrentContext = fleet
	maps.Copy(out.AuthInfos, of.AuthInfos)
	add := func(name, path string) {
		server := of.Clusters[current.Cluster].DeepCopy()
		server.Server += path
		context := current.DeepCopy()
		context.Cluster = name
		out.Clusters[name], out.Contexts[name] = server, context
	}
	add(fleet, env.SearchPath())
	for _, cluster := range slices.Sorted(slices.Values(clusters)) {
		add(fleet+"-"+cluster, "/apis/"+clusterv1alpha1.GroupVersion.String()+"/clusters/"+cluster+"/proxy")
	}
	return out, nil
}
