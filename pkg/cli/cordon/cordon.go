// Package cordon holds the commands that keep new work off a cluster and let it in
// again.
package cordon

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/cli/env"
	"github.com/karmada-toolkit/karmada/pkg/domain/clustercondition"
	"github.com/karmada-toolkit/karmada/pkg/member"
)

const (
	cordonExamples = `
		# Mark cluster foo as unschedulable
		{{.Name}} cordon foo`
	uncordonExamples = `
		# Mark cluster foo as schedulable
		{{.Name}} uncordon foo`
)

// verb is one of the two commands.
type verb struct {
	use, short, long, examples, done string
	change                           func([]corev1.Taint) ([]corev1.Taint, bool)
}

// NewCordonCommand returns the command that keeps new work off a cluster.
func NewCordonCommand(e *env.Env) *cobra.Command {
	return newCommand(e, verb{
		use: "cordon CLUSTER", done: "cordoned", change: cordon, examples: cordonExamples,
		short: "Mark cluster as unschedulable",
		long:  "Mark a cluster as unschedulable: nothing new is scheduled to it, and what runs there stays.",
	})
}

// NewUncordonCommand returns the command that lets work in again.
func NewUncordonCommand(e *env.Env) *cobra.Command {
	return newCommand(e, verb{
		use: "uncordon CLUSTER", done: "uncordoned", change: uncordon, examples: uncordonExamples,
		short: "Mark cluster as schedulable",
		long:  "Mark a cluster as schedulable again.",
	})
}

func newCommand(e *env.Env, v verb) *cobra.Command {
	access := e.NewAccess()
	var dryRun bool
	cmd := e.Command(v.use, v.short, v.long, v.examples)
	cmd.Args = env.ExactlyOne("cluster name is required", "more than one cluster name is not supported")
	cmd.ValidArgsFunction = access.Complete.ClusterArg
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return run(cmd.Context(), e, access, v, args[0], dryRun)
	}
	access.Flags.Add(cmd)
	access.ControlPlane.AddTimeoutFlag(cmd)
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "Show what would be done, and write nothing.")
	return cmd
}

func run(ctx context.Context, e *env.Env, access *env.Access, v verb, name string, dryRun bool) error {
	c, err := access.ControlPlane.RequiredClient(ctx)
	if err != nil {
		return err
	}
	var changed bool
	err = member.UpdateTaints(ctx, c, name, dryRun, func(taints []corev1.Taint) ([]corev1.Taint, bool, error) {
		taints, changed = v.change(taints)
		return taints, changed, nil
	})
	if err != nil {
		return err
	}
	if !changed {
		v.done = "already " + v.done
	}
	if dryRun {
		v.done += " (dry run)"
	}
	_, err = fmt.Fprintf(e.Out, "%s cluster %s\n", name, v.done)
	return err
}

func cordon(taints []corev1.Taint) ([]corev1.Taint, bool) {
	if slices.ContainsFunc(taints, clustercondition.Cordons) {
		return taints, false
	}
	return append(taints, corev1.Taint{Key: clusterv1alpha1.TaintClusterUnschedulable, Effect: corev1.TaintEffectNoSchedule}), true
}

// uncordon moves the last taint to where the removed one was.
func uncordon(taints []corev1.Taint) ([]corev1.Taint, bool) {
	for i, t := range taints {
		if clustercondition.Cordons(t) {
			last := len(taints) - 1
			taints[i] = taints[last]
			return taints[:last], true
		}
	}
	return taints, false
}
