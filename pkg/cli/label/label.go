// Package label is kubectl's command of that name, on the control plane.
package label

import (
	"github.com/spf13/cobra"
	upstream "k8s.io/kubectl/pkg/cmd/label"

	"github.com/karmada-toolkit/karmada/pkg/cli/env"
)

// NewCommand returns the command.
func NewCommand(e *env.Env) *cobra.Command {
	access := e.NewAccess()
	cmd := e.Adapt(upstream.NewCmdLabel(access.Factory(), e.TerminalSafe()))
	access.AddFlags(cmd).AddNamespaceFlag(cmd)
	return cmd
}
