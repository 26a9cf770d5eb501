// Package describe is kubectl's command of that name, on the control plane or a member.
package describe

import (
	"github.com/spf13/cobra"
	upstream "k8s.io/kubectl/pkg/cmd/describe"

	"github.com/karmada-toolkit/karmada/pkg/cli/env"
)

// NewCommand returns the command.
func NewCommand(e *env.Env) *cobra.Command {
	access := e.NewAccess()
	cmd := e.Adapt(upstream.NewCmdDescribe(e.Name, access.Factory(), e.Escaped()))
	cmd.Use = "describe (-f FILENAME | TYPE [NAME_PREFIX | -l label] | TYPE/NAME) (--operation-scope=SCOPE --cluster=CLUSTER)"
	access.AddFlags(cmd).AddNamespaceFlag(cmd).AddScopeFlags(cmd)
	return access.Check(cmd)
}
