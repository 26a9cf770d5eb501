// Package create is kubectl's command of that name, on the control plane.
package create

import (
	"github.com/spf13/cobra"
	upstream "k8s.io/kubectl/pkg/cmd/create"

	"github.com/karmada-toolkit/karmada/pkg/cli/env"
)

// NewCommand returns the command.
func NewCommand(e *env.Env) *cobra.Command {
	access := e.NewAccess()
	cmd := e.Adapt(upstream.NewCmdCreate(access.Factory(), e.TerminalSafe()))
	access.AddPersistentFlags(cmd)
	return cmd
}
