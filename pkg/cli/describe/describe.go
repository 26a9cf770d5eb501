// Package describe is kubectl's command of that name, on the control plane or a member,
// with summaries of member clusters and of MultiClusterServices.
package describe

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	upstream "k8s.io/kubectl/pkg/cmd/describe"
	"k8s.io/kubectl/pkg/describe"
	"k8s.io/kubectl/pkg/util/completion"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	networkingv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/networking/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/cli/env"
	"github.com/karmada-toolkit/karmada/pkg/cli/locate"
)

// NewCommand returns the command.
func NewCommand(e *env.Env) *cobra.Command {
	access := e.NewAccess()
	streams := e.Escaped()
	help := e.Adapt(upstream.NewCmdDescribe(e.Name, access.Factory(), streams))
	flags := upstream.NewDescribeFlags(access.Factory(), streams)
	var showAPIs bool
	cmd := &cobra.Command{
		Use:                   "describe (-f FILENAME | TYPE [NAME_PREFIX | -l label] | TYPE/NAME) (--operation-scope=SCOPE --cluster=CLUSTER)",
		DisableFlagsInUseLine: true,
		Short:                 help.Short,
		Long:                  help.Long,
		Example:               help.Example,
		ValidArgsFunction:     access.InMembers(completion.ResourceTypeAndNameCompletionFunc, env.NamesObjects),
		SuggestFor:            help.SuggestFor,
		RunE: func(cmd *cobra.Command, args []string) error {
			if access.Target.EffectiveScope() == env.Members && access.Target.Cluster == "" {
				return inMembers(cmd.Context(), e, access, flags, args)
			}
			o, err := flags.ToOptions(e.Name, args)
			if err != nil {
				return err
			}
			next := o.Describer
			o.Describer = func(mapping *meta.RESTMapping) (describe.ResourceDescriber, error) {
				d, err := next(mapping)
				if err != nil || access.Target.EffectiveScope() == env.Members {
					return d, err
				}
				switch mapping.Resource.GroupResource() {
				case clusterv1alpha1.Resource("clusters"):
					return clusterDescriber{ctx: cmd.Context(), access: access, now: e.Now, showAPIs: showAPIs, next: d}, nil
				case networkingv1alpha1.Resource("multiclusterservices"):
					return serviceDescriber{ctx: cmd.Context(), access: access, next: d}, nil
				}
				return d, nil
			}
			return o.Run()
		},
	}
	flags.AddFlags(cmd)
	cmd.Flags().BoolVar(&showAPIs, "show-apis", false, "List the APIs of a member cluster instead of counting them.")
	access.Flags.Add(cmd).AddNamespace(cmd)
	access.AddTargetFlags(cmd)
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if access.Target.EffectiveScope() == env.Members && access.Target.Cluster == "" {
			return nil // all members
		}
		return access.Connect(cmd.Context())
	}
	return locate.Fallback(e, access, cmd, locate.Use)
}

// inMembers describes the objects of all members, one after the other, each under a line with its name. Failures are
// returned together.
func inMembers(ctx context.Context, e *env.Env, access *env.Access, flags *upstream.DescribeFlags, args []string) error {
	clusters, err := access.ControlPlane.ClusterNames(ctx)
	if err != nil {
		return err
	}
	if len(clusters) == 0 {
		return errors.New("the control plane has no member clusters")
	}
	var errs []error
	for _, cluster := range clusters {
		own := *flags
		own.Factory = access.MemberAccess(cluster).Factory()
		o, err := own.ToOptions(e.Name, args)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(own.Out, "==> cluster(%s)\n", cluster); err != nil {
			return err
		}
		if err := o.Run(); err != nil {
			errs = append(errs, fmt.Errorf("cluster(%s): %w", cluster, err))
		}
	}
	return utilerrors.NewAggregate(errs)
}
