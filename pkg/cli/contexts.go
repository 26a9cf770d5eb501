package cli

import (
	"github.com/spf13/cobra"

	"github.com/karmada-toolkit/karmada/pkg/cli/env"
)

// contextFlags are the flags that name a kubeconfig context, with the flag of the
// kubeconfig that has it.
var contextFlags = [...][2]string{
	{"cluster-context", "cluster-kubeconfig"},
	{"context", "kubeconfig"},
	{"karmada-context", "karmada-config"},
}

// completeContexts completes the names of contexts for every command that has such a
// flag and no completion of its own.
func completeContexts(cmd *cobra.Command) {
	for _, pair := range contextFlags {
		if cmd.Flags().Lookup(pair[0]) == nil || cmd.Flags().Lookup(pair[1]) == nil {
			continue
		}
		if _, exists := cmd.GetFlagCompletionFunc(pair[0]); exists {
			continue
		}
		err := cmd.RegisterFlagCompletionFunc(pair[0], func(cmd *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
			return env.Kubeconfig{Path: cmd.Flag(pair[1]).Value.String()}.ContextNames(prefix), cobra.ShellCompDirectiveNoFileComp
		})
		if err != nil {
			panic(err) // the flag exists
		}
	}
	for _, sub := range cmd.Commands() {
		completeContexts(sub)
	}
}
