// Package describe is kubectl's command of that name, on the control plane or a member,
// with summaries of member clusters and of MultiClusterServices.
package describe

import (
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	upstream "k8s.io/kubectl/pkg/cmd/describe"
	"k8s.io/kubectl/pkg/describe"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	networkingv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/networking/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/cli/env"
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
		ValidArgsFunction:     help.ValidArgsFunction,
		SuggestFor:            help.SuggestFor,
		RunE: func(cmd *cobra.Command, args []string) error {
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
	return access.Check(cmd)
}
