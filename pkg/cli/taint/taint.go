// Package taint is the command that changes the taints of member clusters.
package taint

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/karmada-toolkit/karmada/pkg/cli/env"
	"github.com/karmada-toolkit/karmada/pkg/member"
)

const (
	short = "Update the taints on one or more clusters"
	long  = `
		Update the taints on one or more clusters.

		A taint has a key, a value and an effect, written key=value:effect. The value may
		be left out. Effects are NoSchedule and NoExecute; key and effect
		together identify a taint. A spec that ends in - removes.`
	examples = `
		# Keep work that does not tolerate it off cluster foo
		{{.Name}} taint clusters foo dedicated=special-user:NoSchedule

		# Give the taint another value
		{{.Name}} taint clusters foo dedicated=other-user:NoSchedule --overwrite

		# Remove the taint of one effect, or of any
		{{.Name}} taint clusters foo dedicated:NoSchedule-
		{{.Name}} taint clusters foo dedicated-

		# Taint several clusters
		{{.Name}} taint clusters foo bar dedicated:NoExecute`
)

// NewCommand returns the command.
func NewCommand(e *env.Env) *cobra.Command {
	access := e.NewAccess()
	var overwrite, dryRun bool
	cmd := e.Command("taint CLUSTER NAME KEY_1=VAL_1:TAINT_EFFECT_1 ... KEY_N=VAL_N:TAINT_EFFECT_N", short, long, examples)
	cmd.ValidArgsFunction = completeArgs(access)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := parse(args, overwrite)
		if err != nil {
			return err
		}
		return run(cmd.Context(), e, access, c, dryRun)
	}
	access.Flags.Add(cmd)
	access.ControlPlane.AddTimeoutFlag(cmd)
	cmd.Flags().BoolVar(&overwrite, "overwrite", false, "Replace taints of the same key and effect, instead of refusing to.")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "Show what would be done, and write nothing.")
	return cmd
}

func run(ctx context.Context, e *env.Env, access *env.Access, c change, dryRun bool) error {
	client, err := access.ControlPlane.RequiredClient(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, cluster := range c.clusters {
		var word string
		err := member.UpdateTaints(ctx, client, cluster, dryRun, func(old []corev1.Taint) ([]corev1.Taint, bool, error) {
			taints, done, err := c.apply(cluster, old)
			word = done
			return taints, !slices.Equal(taints, old), err
		})
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if dryRun {
			word += " (dry run)"
		}
		if _, err := fmt.Fprintf(e.Out, "cluster/%s %s\n", cluster, word); err != nil {
			return err
		}
	}
	return utilerrors.NewAggregate(errs)
}

func completeArgs(access *env.Access) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return []string{"cluster"}, cobra.ShellCompDirectiveNoFileComp
		}
		return access.Complete.Clusters(cmd, args, prefix)
	}
}
