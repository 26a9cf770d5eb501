package addons

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/karmada-toolkit/karmada/pkg/cli/env"
	"github.com/karmada-toolkit/karmada/pkg/init/addons"
)

const (
	disableLong = `
		Disable addons: remove what "enable" installed. The kubeconfigs of addons that
		"init" made stay, so that they can be enabled again.`
	disableExamples = `
		# The descheduler
		{{.Name}} addons disable karmada-descheduler

		# The estimators of two clusters, without confirmation
		{{.Name}} addons disable karmada-scheduler-estimator -C member1,member2 --force

		# Everything, with all estimators
		{{.Name}} addons disable all --all-clusters`
)

func newDisableCommand(e *env.Env) *cobra.Command {
	f := newFlags()
	var force, all bool
	cmd := e.Command("disable", "Disable addons", disableLong, disableExamples)
	cmd.ValidArgsFunction = complete
	cmd.RunE = e.Run(func(ctx context.Context, args []string) error {
		return disable(ctx, e, f, addons.Selection{Namespace: f.namespace, Addons: args, Clusters: f.clusters(), AllClusters: all}, force)
	})
	f.add(cmd)
	cmd.Flags().BoolVarP(&force, "force", "f", false, "Skip the confirmation.")
	cmd.Flags().BoolVar(&all, "all-clusters", false, "Disable every estimator.")
	return cmd
}

func disable(ctx context.Context, e *env.Env, f flags, s addons.Selection, force bool) error {
	if err := s.Validate("disable"); err != nil {
		return err
	}
	d, err := f.deps(e)
	if err != nil {
		return err
	}
	plan, err := addons.PlanRemoval(ctx, d, s)
	if err != nil {
		return e.HostError(f.host, err)
	}
	for _, note := range plan.Notes {
		e.Say("note: %s", note)
	}
	if _, err := fmt.Fprintf(e.Out, "Disable Karmada addon [%s]\n", strings.Join(plan.Addons, " ")); err != nil {
		return err
	}
	if !force {
		if yes, err := e.Confirm("force"); err != nil || !yes {
			return err
		}
	}
	defer e.Waiting(func() string { return "the host cluster and the control plane to answer" })()
	if err := plan.Run(ctx); err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.Out, "Disabled: %s\n", strings.Join(plan.Addons, ", "))
	return err
}
