// Package options is the command that lists the flags all commands have.
package options

import (
	"github.com/spf13/cobra"
	upstream "k8s.io/kubectl/pkg/cmd/options"

	"github.com/karmada-toolkit/karmada/pkg/cli/env"
)

// NewCommand returns the command.
func NewCommand(e *env.Env) *cobra.Command {
	cmd := e.Adapt(upstream.NewCmdOptions(e.Out))
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	return cmd
}
