// Package annotate is kubectl's command of that name, on the control plane.
package annotate

import (
	"github.com/spf13/cobra"
	upstream "k8s.io/kubectl/pkg/cmd/annotate"

	"github.com/karmada-toolkit/karmada/pkg/cli/env"
)

// NewCommand returns the command.
func NewCommand(e *env.Env) *cobra.Command {
	access := e.NewAccess()
	cmd := e.Adapt(upstream.NewCmdAnnotate(e.Name, access.Factory(), e.TerminalSafe()))
	access.AddFlags(cmd).AddNamespaceFlag(cmd)
	return cmd
}
