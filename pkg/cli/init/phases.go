package initcmd

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/karmada-toolkit/karmada/pkg/cli/env"
	"github.com/karmada-toolkit/karmada/pkg/init/phases"
)

func newPhasesCommand(e *env.Env) *cobra.Command {
	return &cobra.Command{
		Use: "phases", Short: "List the phases of an installation", DisableFlagsInUseLine: true, Args: env.NoArguments,
		Long: e.Long(`
			List the phases of an installation, which --only and --skip-phases of "init"
			choose. Each can be run again alone. Those that need nothing of each other run
			at the same time.`),
		RunE: func(*cobra.Command, []string) error {
			var out strings.Builder
			fmt.Fprintf(&out, "%-24s %-72s %s\n", "NAME", "DESCRIPTION", "NEEDS")
			for _, p := range phases.All() {
				fmt.Fprintf(&out, "%s\n", strings.TrimRight(fmt.Sprintf("%-24s %-72s %s", p.Name, p.Doc, strings.Join(p.Needs, ",")), " "))
			}
			_, err := fmt.Fprint(e.Out, out.String())
			return err
		},
	}
}
