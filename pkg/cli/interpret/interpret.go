// Package interpret tries out customizations of the resource interpreter: it
// checks them, runs one of their rules on objects in files, opens them in an
// editor, and shows those that come with the program. Files need no server.
package interpret

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"github.com/karmada-toolkit/karmada/pkg/cli/env"
)

const (
	short = "Validate, test and edit interpreter customization before applying it to the control plane"
	long  = `
		Validate, test and edit interpreter customization before applying it to the control plane.

		1. Validate the ResourceInterpreterCustomization configuration as the control plane does:
		the scripts must compile, and no two may have the same kind and operation.

		2. Run a rule of the ResourceInterpreterCustomization configuration on objects in files.
		Rules run with the limits that they have in the control plane.

		3. Edit a ResourceInterpreterCustomization as one file of Lua.

		4. List the customizations that come with the program, and what a file would override.

		Customizations are read from files, or by name from the control plane.`
	examples = `
		# Check the customizations in a file
		{{.Name}} interpret -f customization.yml --check

		# Check the customization foo-customization of the control plane
		{{.Name}} interpret foo-customization --check

		# Run the Retain rule
		{{.Name}} interpret -f customization.yml --operation retain --desired-file desired.yml --observed-file observed.yml

		# Run the InterpretReplica rule
		{{.Name}} interpret -f customization.yml --operation interpretReplica --observed-file observed.yml

		# Run the ReviseReplica rule
		{{.Name}} interpret -f customization.yml --operation reviseReplica --observed-file observed.yml --desired-replica 2

		# Run the InterpretStatus rule
		{{.Name}} interpret -f customization.yml --operation interpretStatus --observed-file observed.yml

		# Run the AggregateStatus rule
		{{.Name}} interpret -f customization.yml --operation aggregateStatus --desired-file desired.yml --status-file status.yml

		# Run the InterpretHealth rule
		{{.Name}} interpret -f customization.yml --operation interpretHealth --observed-file observed.yml

		# Run the InterpretDependency rule
		{{.Name}} interpret -f customization.yml --operation interpretDependency --desired-file desired.yml

		# Edit the customization in a file, with the description of each rule
		{{.Name}} interpret -f customization.yml --edit --show-doc

		# List what comes with the program
		{{.Name}} interpret --list

		# Show what a customization would override
		{{.Name}} interpret -f customization.yml --list

		# Print a customization that comes with the program, to start from
		{{.Name}} interpret --list CloneSet -o yaml`
)

type flags struct {
	filenames                          []string
	recursive                          bool
	operation                          string
	check, edit, showDoc, list         bool
	desiredFile, observedFile, statusF string
	desiredReplica                     int32
	print                              *genericclioptions.PrintFlags
	record                             *genericclioptions.RecordFlags
}

func (f *flags) bind(cmd *cobra.Command) {
	fs := cmd.Flags()
	f.print.AddFlags(cmd)
	f.record.AddFlags(cmd)
	cmdutil.AddJsonFilenameFlag(fs, &f.filenames, "Files, directories or URLs that hold the customizations; - is the standard input.")
	fs.BoolVarP(&f.recursive, "recursive", "R", false, "Read directories with all that is below them.")
	fs.StringVar(&f.operation, "operation", "", "The rule to run. One of: "+strings.Join(operationNames(), ", ")+".")
	fs.BoolVar(&f.check, "check", false, "Check the customizations.")
	fs.BoolVar(&f.edit, "edit", false, "Edit a customization.")
	fs.BoolVar(&f.showDoc, "show-doc", false, "Describe each rule in the editor.")
	fs.BoolVar(&f.list, "list", false, "List the customizations that come with the program, or those of the kinds given as arguments, and what those in files would override.")
	fs.StringVar(&f.desiredFile, "desired-file", "", "File with the object as it is in the control plane.")
	fs.StringVar(&f.observedFile, "observed-file", "", "File with the object as it is in a member cluster.")
	fs.StringVar(&f.statusF, "status-file", "", "File with items of aggregated status, one document for each cluster.")
	fs.Int32Var(&f.desiredReplica, "desired-replica", 0, "Number of replicas that ReviseReplica sets.")
}

// NewCommand returns the command.
func NewCommand(e *env.Env) *cobra.Command {
	access := e.NewAccess()
	f := &flags{print: genericclioptions.NewPrintFlags("edited"), record: genericclioptions.NewRecordFlags()}
	cmd := e.Command("interpret (-f FILENAME) (--operation OPERATION) [--ARGS VALUE]... ", short, long, examples)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := f.validate(args); err != nil {
			return err
		}
		c := &command{env: e, access: access, flags: f, source: source{env: e, access: access, recursive: f.recursive}}
		return c.run(cmd, args)
	}
	f.bind(cmd)
	access.Flags.Add(cmd)
	complete := cobra.FixedCompletions(operationNames(), cobra.ShellCompDirectiveNoFileComp)
	if err := cmd.RegisterFlagCompletionFunc("operation", complete); err != nil {
		panic(err)
	}
	return cmd
}

// validate returns an error for flags that exclude each other.
func (f *flags) validate(names []string) error {
	if f.check && f.edit {
		return errors.New("you can't set both --check and --edit options")
	}
	if f.list && (f.check || f.edit || f.operation != "") {
		return errors.New("--list cannot be used together with --check, --edit or --operation")
	}
	if f.operation != "" {
		if err := new(env.Output).Set(*f.print.OutputFormat); err != nil {
			return fmt.Errorf("--output: %w", err)
		}
	}
	stdin := 0
	for _, name := range append([]string{f.desiredFile, f.observedFile, f.statusF}, f.filenames...) {
		if name == "-" {
			stdin++
		}
	}
	if stdin > 1 {
		return errors.New("standard input (-) can be read only once")
	}
	if !f.list && len(f.filenames) == 0 && len(names) == 0 {
		return errors.New("must specify customizations: files by --filename, or names")
	}
	return nil
}

// command is one run.
type command struct {
	env    *env.Env
	access *env.Access
	flags  *flags
	source source
}

func (c *command) run(cmd *cobra.Command, names []string) error {
	switch {
	case c.flags.list:
		return c.list(names)
	case c.flags.check:
		return c.check(names)
	case c.flags.edit:
		return c.edit(cmd, names)
	}
	return c.execute(names)
}

// printf writes data of the command.
func (c *command) printf(format string, args ...any) {
	_, _ = fmt.Fprintf(c.env.Out, format, args...) // an error cannot be reported
}
