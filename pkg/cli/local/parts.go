package local

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/cli/env"
	"github.com/karmada-toolkit/karmada/pkg/domain/clustercondition"
	"github.com/karmada-toolkit/karmada/pkg/local"
)

// partCommand is a command on processes or clusters of a federation.
type partCommand struct {
	use, short, long, examples string
	run                        func(ctx context.Context, d local.Deps, root, name string, parts []string) error
	// done is what has happened to the parts, and starts reports whether they run then.
	done   string
	starts bool
}

// flapping returns that a member has a taint because its condition Ready changes often, and the next step.
func flapping(program, given, member, flaps string) string {
	return fmt.Sprintf("%s is %s: its condition Ready changes often, so it has the taint %s:NoSchedule and gets no new replicas until it is removed. "+
		"To remove it now: %q", member, flaps, clusterv1alpha1.TaintClusterFlapping, program+" local up --set controller-manager.flap-window=0s"+given)
}

func newStop(e *env.Env) *cobra.Command {
	return newPartCommand(e, partCommand{
		use: "stop MEMBER...", short: "Stop members or processes of a federation", done: "stopped",
		long: `
Stop members of a federation, as if they failed: they stay members, and their data is kept. The agent and the estimator of
a member stop with it. Other processes, as "local status" shows them, can be named as well.

They stay stopped until "local start", "local restart" or "local up", which starts everything that does not run.`,
		examples: `
# A member fails
{{.Name}} local stop member2

# Only the agent of a member in Pull mode fails
{{.Name}} local stop member2-agent`,
		run: local.StopParts,
	})
}

func newStart(e *env.Env) *cobra.Command {
	return newPartCommand(e, partCommand{
		use: "start MEMBER...", short: "Start members or processes of a federation again", done: "started", starts: true,
		long: `
Start members of a federation that were stopped, with their agents and estimators, and wait until they are Ready. The
control plane is started as well, if it does not run. "local up" starts everything that does not run.`,
		examples: `
# A member comes back
{{.Name}} local start member2`,
		run: local.StartParts,
	})
}

func newRestart(e *env.Env) *cobra.Command {
	return newPartCommand(e, partCommand{
		use: "restart MEMBER...", short: "Stop members or processes of a federation and start them again", done: "restarted", starts: true,
		long: `
Stop members or processes of a federation, start them again, and wait until they are Ready.`,
		examples: `
# Restart a member
{{.Name}} local restart member2

# Restart the roles of the control plane
{{.Name}} local restart karmada`,
		run: func(ctx context.Context, d local.Deps, root, name string, parts []string) error {
			if err := local.StopParts(ctx, d, root, name, parts); err != nil {
				return err
			}
			return local.StartParts(ctx, d, root, name, parts)
		},
	})
}

func newPartCommand(e *env.Env, c partCommand) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use: c.use, Short: c.short, Long: e.Long(c.long), Example: e.Examples(c.examples),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				command := e.Name + " local "
				return fmt.Errorf("%q needs the name of a member or process, as %q shows them; for the whole federation use %q or %q",
					command+cmd.Name(), command+"status", command+"down", command+"up")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			root, err := f.root()
			if err != nil {
				return err
			}
			ctx, stop := e.Interruptible(cmd.Context())
			defer stop()
			if err := c.run(ctx, deps(e, e.ErrOut), root, f.name, args); err != nil {
				return err
			}
			_, err = fmt.Fprintf(e.Out, "%s of federation %q %s\n", strings.Join(args, ", "), f.name, c.done)
			if !c.starts || err != nil {
				return err
			}
			flaps, err := local.DescribeMembers(ctx, deps(e, e.ErrOut), root, f.name, args, clustercondition.Flaps)
			if err != nil {
				e.Say("Taints are unknown: %v", err)
			}
			for _, member := range slices.Sorted(maps.Keys(flaps)) {
				e.SayLine(flapping(e.Name, f.given(), member, flaps[member]))
			}
			return nil
		},
	}
	f.bind(cmd.Flags())
	cmd.ValidArgsFunction = completeParts(e, true)
	return cmd
}

func newLogs(e *env.Env) *cobra.Command {
	var f flags
	options := local.LogOptions{}
	cmd := &cobra.Command{
		Use:   "logs [PROCESS]",
		Short: "Print the log of a process or cluster of a federation",
		Long: e.Long(`
Print the log of a process of a federation, or list the processes if none is named. Of a kind cluster it is the log of its
first node.`),
		Example: e.Examples(`
# Which logs there are
{{.Name}} local logs

# What the scheduler and the controllers log from now on
{{.Name}} local logs karmada -f --tail 0`),
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			root, err := f.root()
			if err != nil {
				return err
			}
			if len(args) == 0 {
				return printLogs(cmd.Context(), e, root, f.name)
			}
			ctx, stop := e.Interruptible(cmd.Context())
			defer stop()
			return local.Logs(ctx, deps(e, e.ErrOut), root, f.name, args[0], options, e.TerminalSafe().Out)
		},
	}
	f.bind(cmd.Flags())
	cmd.Flags().BoolVarP(&options.Follow, "follow", "f", false, "Print what is added until the command is interrupted.")
	cmd.Flags().IntVar(&options.Tail, "tail", -1, "Number of lines from the end; default all.")
	cmd.Flags().Lookup("tail").DefValue = ""
	cmd.ValidArgsFunction = completeParts(e, false)
	return cmd
}

// printLogs lists the processes with their logs.
func printLogs(ctx context.Context, e *env.Env, root, name string) error {
	parts, err := local.Parts(ctx, deps(e, e.ErrOut), root, name)
	if err != nil {
		return err
	}
	return printLogList(e.Out, parts)
}

func printLogList(out io.Writer, parts []local.ProcessStatus) error {
	w := printers.GetNewTabWriter(out)
	_, _ = fmt.Fprintln(w, "NAME\tSTATE\tLOG")
	for _, p := range parts {
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\n", p.Name, p.State, dash(p.Log))
	}
	return w.Flush()
}
