// Package exec is kubectl's command of that name, on the control plane or a member.
package exec

import (
	"github.com/spf13/cobra"
	upstream "k8s.io/kubectl/pkg/cmd/exec"

	"github.com/karmada-toolkit/karmada/pkg/cli/env"
	"github.com/karmada-toolkit/karmada/pkg/cli/locate"
)

// NewCommand returns the command.
func NewCommand(e *env.Env) *cobra.Command {
	access := e.NewAccess()
	cmd := e.Adapt(upstream.NewCmdExec(access.Factory(), e.IOStreams))
	cmd.Use = "exec (POD | TYPE/NAME) [-c CONTAINER] (-C CLUSTER) -- COMMAND [args...]"
	access.Flags.Add(cmd).AddNamespace(cmd)
	access.AddTargetFlags(cmd)
	return locate.Check(e, access, cmd, target)
}

// target returns the pod or owner of pods that the command line names.
func target(cmd *cobra.Command, args []string) locate.Target {
	if len(args) == 0 || cmd.ArgsLenAtDash() == 0 {
		return locate.Target{} // --filename names it
	}
	return locate.Target{Arg: args[0]}
}
