// Package version is the command that prints the version of the program.
package version

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/karmada-toolkit/karmada/internal/version"
	"github.com/karmada-toolkit/karmada/pkg/cli/env"
)

// NewCommand returns the command.
func NewCommand(e *env.Env) *cobra.Command {
	var output env.Output
	cmd := &cobra.Command{
		Use:               "version",
		Short:             "Print the version information",
		Long:              "Print the version of this program. It does not ask a server.",
		Example:           e.Examples("# Print the version\n{{.Name}} version\n\n# Print it as JSON\n{{.Name}} version -o json"),
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			if output != "" {
				return e.PrintDocument(output, version.Get())
			}
			_, err := fmt.Fprintln(e.Out, Line(e.Name))
			return err
		},
	}
	env.AddOutputFlag(cmd, &output)
	return cmd
}

// Line returns the version information in one line.
func Line(program string) string {
	return fmt.Sprintf("%s version: %s", program, version.Get())
}
