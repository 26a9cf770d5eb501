// Package rollout is kubectl's command of that name, on the control plane.
package rollout

import (
	"github.com/spf13/cobra"
	upstream "k8s.io/kubectl/pkg/cmd/rollout"

	"github.com/karmada-toolkit/karmada/pkg/cli/env"
)

// NewCommand returns the command.
func NewCommand(e *env.Env) *cobra.Command {
	access := e.NewAccess()
	cmd := e.Adapt(upstream.NewCmdRollout(e.Name, access.Factory(), e.TerminalSafe()))
	access.AddPersistentFlags(cmd)
	return cmd
}
