package env

import (
	"fmt"

	"github.com/spf13/cobra"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
)

// NoArguments is for commands that take flags only. The error names the command and
// what it was given.
func NoArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%q does not take any arguments, got %q", cmd.CommandPath(), args)
	}
	return nil
}

// ExactlyOne accepts one argument. Its usage errors are none and many.
func ExactlyOne(none, many string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch len(args) {
		case 1:
			return nil
		case 0:
			return cmdutil.UsageErrorf(cmd, "%s", none)
		default:
			return cmdutil.UsageErrorf(cmd, "%s", many)
		}
	}
}
