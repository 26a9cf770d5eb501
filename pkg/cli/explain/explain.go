// Package explain is kubectl's command of that name, on the control plane or a member.
package explain

import (
	"github.com/spf13/cobra"
	upstream "k8s.io/kubectl/pkg/cmd/explain"

	"github.com/karmada-toolkit/karmada/pkg/cli/env"
)

// NewCommand returns the command.
func NewCommand(e *env.Env) *cobra.Command {
	access := e.NewAccess()
	cmd := e.Adapt(upstream.NewCmdExplain(e.Name, access.Factory(), e.Escaped()))
	cmd.Use = "explain TYPE [--recursive=FALSE|TRUE] [--api-version=api-version-group] [--output=plaintext|plaintext-openapiv2] "
	access.AddFlags(cmd).AddNamespaceFlag(cmd).AddScopeFlags(cmd)
	return access.Check(cmd)
}
