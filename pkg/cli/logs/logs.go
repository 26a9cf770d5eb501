// Package logs is kubectl's command of that name, on a member.
package logs

import (
	"errors"

	"github.com/spf13/cobra"
	upstream "k8s.io/kubectl/pkg/cmd/logs"

	"github.com/karmada-toolkit/karmada/pkg/cli/env"
)

// NewCommand returns the command.
func NewCommand(e *env.Env) *cobra.Command {
	access := e.NewAccess()
	access.Scope = env.Members
	cmd := e.Adapt(upstream.NewCmdLogs(access.Factory(), e.IOStreams))
	cmd.Use = "logs [-f] [-p] (POD | TYPE/NAME) [-c CONTAINER] (-C CLUSTER)"
	access.AddFlags(cmd).AddNamespaceFlag(cmd).AddClusterFlag(cmd, "C")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if access.Cluster == "" {
			return errors.New("must specify a cluster")
		}
		return nil
	}
	return cmd
}
