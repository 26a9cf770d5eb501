// Package attach is kubectl's command of that name, on the control plane or a member.
package attach

import (
	"github.com/spf13/cobra"
	upstream "k8s.io/kubectl/pkg/cmd/attach"

	"github.com/karmada-toolkit/karmada/pkg/cli/env"
	"github.com/karmada-toolkit/karmada/pkg/cli/locate"
)

// NewCommand returns the command.
func NewCommand(e *env.Env) *cobra.Command {
	access := e.NewAccess()
	cmd := e.Adapt(upstream.NewCmdAttach(access.Factory(), e.IOStreams))
	cmd.Use = "attach (POD | TYPE/NAME) -c CONTAINER"
	access.Flags.Add(cmd).AddNamespace(cmd)
	access.AddTargetFlags(cmd)
	return locate.Check(e, access, cmd, func(_ *cobra.Command, args []string) locate.Target {
		if len(args) == 0 {
			return locate.Target{}
		}
		return locate.Target{Arg: args[0]}
	})
}
