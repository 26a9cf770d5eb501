// Package edit is kubectl's command of that name, on the control plane.
package edit

import (
	"github.com/spf13/cobra"
	upstream "k8s.io/kubectl/pkg/cmd/edit"

	"github.com/karmada-toolkit/karmada/pkg/cli/env"
)

// NewCommand returns the command.
func NewCommand(e *env.Env) *cobra.Command {
	access := e.NewAccess()
	cmd := e.Adapt(upstream.NewCmdEdit(access.Factory(), e.TerminalSafe()))
	access.AddFlags(cmd).AddNamespaceFlag(cmd)
	return cmd
}
