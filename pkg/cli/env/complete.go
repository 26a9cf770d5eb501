package env

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
)

// completionLimit is the timeout of a completion.
const completionLimit = 5 * time.Second

const (
	// memberCompletionLimit is the time for the names of objects in members, completedMembers the number of members that are asked.
	memberCompletionLimit = time.Second
	completedMembers      = 5
)

// InMembers returns a completion of names of objects, also of those that only member clusters have: of those that --cluster or
// --clusters names, or of the first ones. Members that do not answer within a second are left out. named reports whether a
// command line names objects, and not types; nil stands for always.
func (a *Access) InMembers(complete func(cmdutil.Factory) cobra.CompletionFunc, named func(args []string, prefix string) bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		var out []string
		directive := cobra.ShellCompDirectiveNoFileComp
		if a.Target.EffectiveScope() != Members || a.Target.Cluster != "" {
			out, directive = complete(a.Factory())(cmd, args, prefix)
		}
		if a.Target.Cluster != "" || named != nil && !named(args, prefix) {
			return out, directive
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), memberCompletionLimit)
		defer cancel()
		clusters, err := a.completed(ctx, cmd)
		if err != nil {
			return out, directive
		}
		found := make(chan []string, len(clusters))
		for _, cluster := range clusters {
			go func() {
				names, _ := complete(a.MemberAccess(cluster).Factory())(cmd, args, prefix)
				found <- names
			}()
		}
		for range clusters {
			select {
			case names := <-found:
				out = append(out, names...)
			case <-ctx.Done():
			}
		}
		slices.Sort(out)
		return slices.Compact(out), directive
	}
}

// completed returns the members whose objects are completed.
func (a *Access) completed(ctx context.Context, cmd *cobra.Command) ([]string, error) {
	if flag := cmd.Flag("clusters"); flag != nil && flag.Changed {
		if values, ok := flag.Value.(pflag.SliceValue); ok {
			return values.GetSlice(), nil
		}
	}
	clusters, err := a.ControlPlane.ClusterNames(ctx)
	return clusters[:min(len(clusters), completedMembers)], err
}

// NamesObjects reports whether a command line TYPE NAME... or TYPE/NAME... names an object at its end.
func NamesObjects(args []string, prefix string) bool {
	return len(args) > 0 && !strings.Contains(args[0], "/") || strings.Contains(prefix, "/")
}

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
