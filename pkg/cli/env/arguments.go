package env

import (
	"fmt"

	"github.com/spf13/cobra"
)

// NoArguments is for commands that take flags only. The error names the command and
// what it was given.
func NoArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%q does not take any arguments, got %q", cmd.CommandPath(), args)
	}
	return nil
}
