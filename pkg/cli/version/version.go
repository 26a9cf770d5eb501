// Package version is the command that says which build this is.
package version

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/karmada-toolkit/karmada/internal/version"
	"github.com/karmada-toolkit/karmada/pkg/cli/env"
)

// NewCommand returns the command.
func NewCommand(e *env.Env) *cobra.Command {
	return &cobra.Command{
		Use:               "version",
		Short:             "Print the version information",
		Long:              "Print the version of this program. It does not ask a server.",
		Example:           e.Examples("# Print the version\n{{.Name}} version"),
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(e.Out, "%s version: %s\n", e.Name, version.Get())
			return err
		},
	}
}
