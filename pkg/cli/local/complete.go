package local

import (
	"context"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/karmada-toolkit/karmada/pkg/cli/env"
	"github.com/karmada-toolkit/karmada/pkg/local"
)

// candidates returns what may be typed. On errors there is nothing to complete.
type candidates func(ctx context.Context, d local.Deps, root, name string) ([]string, error)

// addCompletion completes the values of the flags of a command that have them.
func addCompletion(e *env.Env, cmd *cobra.Command) {
	for flag, complete := range map[string]cobra.CompletionFunc{
		"name": completeFrom(e, func(_ context.Context, _ local.Deps, root, _ string) ([]string, error) { return local.List(root) }),
		"member": completeList(completeFrom(e, func(_ context.Context, _ local.Deps, root, name string) ([]string, error) {
			f, err := local.Load(root, name)
			if err != nil {
				return nil, err
			}
			return f.Members, nil
		})),
		"runtime":       cobra.FixedCompletions(local.Runtimes(), cobra.ShellCompDirectiveNoFileComp),
		"set":           completeSettings(e),
		"feature-gates": completeList(completeGates(e)),
	} {
		if cmd.Flags().Lookup(flag) == nil {
			continue
		}
		if err := cmd.RegisterFlagCompletionFunc(flag, complete); err != nil {
			panic(err) // the flag is completed twice
		}
	}
}

// completeFrom completes from candidates.
func completeFrom(e *env.Env, from candidates) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
		f := flags{dir: cmd.Flag("dir").Value.String(), name: cmd.Flag("name").Value.String()}
		root, err := f.root()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		names, err := from(cmd.Context(), deps(e, io.Discard), root, f.name)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var out []string
		for _, name := range names {
			if strings.HasPrefix(name, prefix) {
				out = append(out, name)
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeList completes the last item of a comma-separated list.
func completeList(item cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		before := prefix[:strings.LastIndexByte(prefix, ',')+1]
		out, directive := item(cmd, args, prefix[len(before):])
		for i := range out {
			out[i] = before + out[i]
		}
		return out, directive
	}
}

// completeParts completes the names of the processes or clusters of a federation, one or several.
func completeParts(e *env.Env, several bool) cobra.CompletionFunc {
	complete := completeFrom(e, func(_ context.Context, d local.Deps, root, name string) ([]string, error) {
		return local.PartNames(d, root, name)
	})
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 && !several {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		out, directive := complete(cmd, args, prefix)
		return slices.DeleteFunc(out, func(name string) bool { return slices.Contains(args, name) }), directive
	}
}

// completeSettings completes ROLE.FLAG=.
func completeSettings(e *env.Env) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		out, directive := completeFrom(e, func(ctx context.Context, d local.Deps, root, name string) ([]string, error) {
			settings, _, err := local.SettingNames(ctx, d, root, name, cmd.Flag("runtime").Value.String())
			return settings, err
		})(cmd, args, prefix)
		for i := range out {
			out[i] += "="
		}
		return out, directive | cobra.ShellCompDirectiveNoSpace
	}
}

// completeGates completes NAME=true and NAME=false.
func completeGates(e *env.Env) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		return completeFrom(e, func(ctx context.Context, d local.Deps, root, name string) ([]string, error) {
			_, gates, err := local.SettingNames(ctx, d, root, name, cmd.Flag("runtime").Value.String())
			var out []string
			for _, gate := range gates {
				out = append(out, gate+"=true", gate+"=false")
			}
			return out, err
		})(cmd, args, prefix)
	}
}
