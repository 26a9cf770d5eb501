// Package logs is kubectl's command of that name, on a member.
package logs

import (
	"github.com/spf13/cobra"
	upstream "k8s.io/kubectl/pkg/cmd/logs"

	"github.com/karmada-toolkit/karmada/pkg/cli/env"
	"github.com/karmada-toolkit/karmada/pkg/cli/locate"
)

// NewCommand returns the command.
func NewCommand(e *env.Env) *cobra.Command {
	access := e.NewAccess()
	access.Target.Scope = env.Members
	cmd := e.Adapt(upstream.NewCmdLogs(access.Factory(), e.IOStreams))
	cmd.Use = "logs [-f] [-p] (POD | TYPE/NAME) [-c CONTAINER] (-C CLUSTER)"
	access.Flags.Add(cmd).AddNamespace(cmd)
	access.AddTargetFlags(cmd)
	return locate.Check(e, access, cmd, func(cmd *cobra.Command, args []string) locate.Target {
		selector := cmd.Flag("selector").Value.String()
		switch {
		case len(args) > 0 && selector == "":
			return locate.Target{Arg: args[0]}
		case len(args) == 0 && selector != "":
			return locate.Target{Selector: selector}
		default:
			return locate.Target{} // kubectl's command returns a usage error
		}
	})
}
