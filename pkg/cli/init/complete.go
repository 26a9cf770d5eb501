package initcmd

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/karmada-toolkit/karmada/pkg/init/components"
	"github.com/karmada-toolkit/karmada/pkg/init/phases"
)

// addCompletions registers the completion of flags with a fixed set of values. The
// only error is a flag that does not exist, which the tests of the command would show.
func addCompletions(cmd *cobra.Command) {
	modes := []string{components.StorageHostPath, components.StorageEmptyDir, components.StoragePVC}
	for flag, complete := range map[string]cobra.CompletionFunc{
		"only": completePhases, "skip-phases": completePhases,
		"etcd-storage-mode": cobra.FixedCompletions(modes, cobra.ShellCompDirectiveNoFileComp),
	} {
		if err := cmd.RegisterFlagCompletionFunc(flag, complete); err != nil {
			panic(err)
		}
	}
}

// completePhases completes the last of a comma-separated list of phases.
func completePhases(_ *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
	before, last := prefix[:strings.LastIndexByte(prefix, ',')+1], prefix[strings.LastIndexByte(prefix, ',')+1:]
	var out []string
	for _, p := range phases.All() {
		if strings.HasPrefix(p.Name, last) && !strings.Contains(","+before, ","+p.Name+",") {
			out = append(out, before+p.Name)
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}
