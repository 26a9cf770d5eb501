package env

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// completionLimit is the timeout of a completion.
const completionLimit = 5 * time.Second

// Completion completes names in the control plane. On errors it completes nothing.
type Completion struct{ controlPlane *ControlPlane }

// Contexts completes names of kubeconfig contexts.
func (c *Completion) Contexts(_ *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
	raw, err := c.controlPlane.flags.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return matching(slices.Sorted(maps.Keys(raw.Contexts)), prefix), cobra.ShellCompDirectiveNoFileComp
}

// Clusters completes names of member clusters, also the last one of a
// comma-separated list.
func (c *Completion) Clusters(cmd *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completionLimit)
	defer cancel()
	names, err := c.controlPlane.ClusterNames(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	if i := strings.LastIndexByte(prefix, ','); i >= 0 {
		for n := range names {
			names[n] = prefix[:i+1] + names[n]
		}
	}
	return matching(names, prefix), cobra.ShellCompDirectiveNoFileComp
}

// ClusterArg completes the first argument with names of member clusters.
func (c *Completion) ClusterArg(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return c.Clusters(cmd, args, prefix)
}

// Namespaces completes names of namespaces of the control plane.
func (c *Completion) Namespaces(cmd *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completionLimit)
	defer cancel()
	client, err := c.controlPlane.Client()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NamespaceList"))
	if err := client.List(ctx, list); err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return matching(names, prefix), cobra.ShellCompDirectiveNoFileComp
}

func matching(names []string, prefix string) []string {
	var out []string
	for _, name := range names {
		if strings.HasPrefix(name, prefix) {
			out = append(out, name)
		}
	}
	return out
}
