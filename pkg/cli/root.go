// Package cli is the program karmadactl, which is also kubectl's plugin karmada.
package cli

import (
	"context"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/karmada-toolkit/karmada/pkg/cli/env"
	"github.com/karmada-toolkit/karmada/pkg/cli/kubectl"
)

const (
	short = "{{.Name}} controls a Kubernetes Cluster Federation."
	long  = `
		{{.Name}} makes many Kubernetes clusters usable as one.

		What is applied to the control plane is propagated to the member clusters that
		policies choose, and what runs there is shown together.`
)

// Run runs a command line and returns the exit code of the program.
func Run(ctx context.Context, e *env.Env, args []string, extra ...Group) int {
	cmdutil.BehaviorOnFatal(func(message string, code int) {
		fail(e, message)
		e.Exit(code)
	})
	quiet()
	rest.SetDefaultWarningHandler(rest.NewWarningWriter(e.Escaped().ErrOut, rest.WarningWriterOptions{Deduplicate: true}))
	root := NewCommand(e, extra...)
	root.SetArgs(args)
	return report(e, root.ExecuteContext(ctx))
}

// quiet keeps libraries from logging the errors that the command itself prints.
func quiet() {
	utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{ //nolint:reassign // the library has no other way
		func(_ context.Context, err error, message string, values ...any) {
			klog.V(1).ErrorS(err, message, values...)
		},
	}
}

// NewCommand returns the root command. The commands of extra go to the section of
// their heading, or to a new one after the basic commands.
func NewCommand(e *env.Env, extra ...Group) *cobra.Command {
	root := &cobra.Command{
		Use:               e.Root,
		Short:             e.Text(short),
		Long:              e.Long(long),
		Version:           versionLine(e.Name),
		Annotations:       map[string]string{cobra.CommandDisplayNameAnnotation: e.Name},
		SilenceUsage:      true,
		SilenceErrors:     true,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return e.CheckFlags(cmd) },
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.Flags().Bool("version", false, "Print the version information.")
	root.SetIn(e.In)
	root.SetOut(e.Out)
	root.SetErr(e.ErrOut)
	addGlobalFlags(root)
	var groups templates.CommandGroups
	for _, g := range withExtra(Groups(), extra) {
		group := templates.CommandGroup{Message: g.Heading + ":"}
		for _, construct := range g.Commands {
			cmd := construct(e)
			file(cmd, g.Heading)
			group.Commands = append(group.Commands, cmd)
		}
		groups = append(groups, group)
	}
	groups.Add(root)
	templates.ActsAsRootCommand(root, []string{"options", "help"}, groups...)
	nameProgram(root, e)
	wrapHelp(root)
	root.AddCommand(kubectl.NewOptionsCommand(e))
	completeContexts(root)
	aliasClusters(root)
	refuseUnknown(root, e.Name)
	return root
}

// nameProgram has the last lines of usages name the program as the user does.
func nameProgram(root *cobra.Command, e *env.Env) {
	usage := root.UsageFunc()
	root.SetUsageFunc(func(cmd *cobra.Command) error {
		out, errOut := cmd.OutOrStdout(), cmd.OutOrStderr()
		var text strings.Builder
		cmd.SetOut(&text)
		cmd.SetErr(&text)
		err := usage(cmd)
		cmd.SetOut(out)
		cmd.SetErr(errOut)
		if err != nil {
			return err
		}
		_, err = io.WriteString(errOut, strings.ReplaceAll(text.String(), `Use "`+e.Root+" ", `Use "`+e.Name+" "))
		return err
	})
}

// refuseUnknown has commands with subcommands, and help, fail for others.
func refuseUnknown(root *cobra.Command, program string) {
	for _, cmd := range root.Commands() {
		if cmd.HasSubCommands() && cmd.Args == nil {
			cmd.Args = cobra.NoArgs
		}
	}
	root.InitDefaultHelpCmd()
	help, _, err := root.Find([]string{"help"})
	if err != nil {
		panic(err) // it exists
	}
	help.Args = func(_ *cobra.Command, args []string) error {
		cmd, rest, err := root.Find(args)
		if err != nil || len(rest) > 0 && cmd.HasSubCommands() {
			return fmt.Errorf("unknown help topic %q; %q lists the commands", strings.Join(args, " "), program+" help")
		}
		return nil
	}
}

// aliasClusters has every command with --cluster or --clusters accept the other name, and -C.
func aliasClusters(cmd *cobra.Command) {
	fs := cmd.Flags()
	for _, pair := range [...][2]string{{"cluster", "clusters"}, {"clusters", "cluster"}} {
		own := fs.Lookup(pair[0])
		if own == nil || fs.Lookup(pair[1]) != nil {
			continue
		}
		alias := &pflag.Flag{Name: pair[1], Usage: own.Usage, Value: own.Value, DefValue: own.DefValue, Hidden: true}
		if own.Shorthand == "" && fs.ShorthandLookup("C") == nil {
			alias.Shorthand = "C"
		}
		fs.AddFlag(alias)
		if complete, exists := cmd.GetFlagCompletionFunc(pair[0]); exists {
			if err := cmd.RegisterFlagCompletionFunc(pair[1], complete); err != nil {
				panic(err) // the flag exists
			}
		}
	}
	for _, sub := range cmd.Commands() {
		aliasClusters(sub)
	}
}

// withExtra adds commands to the sections.
func withExtra(groups, extra []Group) []Group {
	for _, x := range extra {
		i := slices.IndexFunc(groups, func(g Group) bool { return g.Heading == x.Heading })
		if i < 0 {
			groups = slices.Insert(groups, 1, x)
			continue
		}
		groups[i].Commands = append(groups[i].Commands, x.Commands...)
	}
	return groups
}

// file annotates a command with its section.
func file(cmd *cobra.Command, heading string) {
	if slices.Contains(unannotated[:], cmd.Name()) {
		return
	}
	if cmd.Annotations == nil {
		cmd.Annotations = map[string]string{}
	}
	cmd.Annotations["commandGroup"] = heading
}

// addGlobalFlags adds the flags that every command takes: those of logging, and a
// --kubeconfig that stands before the command. Commands that talk to the control
// plane have their own of the same name, which is the one that is set then; the
// others talk to no server.
func addGlobalFlags(root *cobra.Command) {
	logging := flag.NewFlagSet("logging", flag.ContinueOnError)
	klog.InitFlags(logging)
	fs := root.PersistentFlags()
	logging.VisitAll(func(f *flag.Flag) {
		global := pflag.PFlagFromGoFlag(f)
		global.Name = strings.ReplaceAll(f.Name, "_", "-")
		global.Hidden = f.Name != "v" // as they are about files, and deprecated
		fs.AddFlag(global)
	})
	fs.Duration("log-flush-frequency", 5*time.Second, "Maximum number of seconds between log flushes")
	if err := fs.MarkHidden("log-flush-frequency"); err != nil {
		panic(err) // the flag exists
	}
	fs.String("kubeconfig", "", "Path to the kubeconfig file of the control plane, for commands that talk to it.")
	root.SetGlobalNormalizationFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		return pflag.NormalizedName(strings.ReplaceAll(name, "_", "-"))
	})
}

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
