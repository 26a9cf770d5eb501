// Package initcmd is the command that installs a control plane on a host cluster.
package initcmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/karmada-toolkit/karmada/internal/imagearchive"
	"github.com/karmada-toolkit/karmada/internal/limit"
	"github.com/karmada-toolkit/karmada/internal/progress"
	"github.com/karmada-toolkit/karmada/internal/version"
	"github.com/karmada-toolkit/karmada/pkg/cli/env"
	installer "github.com/karmada-toolkit/karmada/pkg/init"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
	"github.com/karmada-toolkit/karmada/pkg/init/config"
	"github.com/karmada-toolkit/karmada/pkg/init/phases"
	"github.com/karmada-toolkit/karmada/pkg/local/kindcluster"
)

const (
	short = "Install the Karmada control plane in a Kubernetes cluster"
	long  = `
		Install the control plane in a Kubernetes cluster, the host.

		Everything that can be checked is checked before anything is written. What is
		as wanted already is left alone: run the command again after it was
		interrupted, to finish, or with other flags, to change just what they are about.
		Certificates are kept.

		The kubeconfig of the administrator and the certificates are written to
		--karmada-data. Nothing is downloaded by this program; the nodes of the host need
		the images that "{{.Name}} init images list" shows.`
	examples = `
		# Install in the cluster of the current context
		{{.Name}} init

		# Without root on this machine
		{{.Name}} init --karmada-data=$HOME/.karmada

		# In a kind cluster, with the image that "make image" built
		{{.Name}} init --load-images=_output/karmada.tar

		# Take all images from a registry of one's own
		{{.Name}} init --private-image-registry=registry.example.org/karmada

		# Highly available, with volumes for etcd
		{{.Name}} init --etcd-replicas=3 --etcd-storage-mode=PVC --storage-classes-name=fast --karmada-apiserver-replicas=3 \
		  --karmada-controller-manager-replicas=2 --karmada-scheduler-replicas=2 --karmada-webhook-replicas=2

		# With a configuration file
		{{.Name}} init --config=karmada-init.yaml

		# Write manifests for GitOps instead of installing
		{{.Name}} init --export=manifests

		# Run one phase again
		{{.Name}} init --only=certs,namespace,kubeconfig`
)

// NewCommand returns the command.
func NewCommand(e *env.Env) *cobra.Command {
	o := config.New()
	var out output
	var load string
	kubeconfig := env.Kubeconfig{Flag: "--kubeconfig"}
	cmd := e.Command("init", short, long, examples)
	cmd.Args = env.NoArguments
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	cmd.RunE = e.Run(func(ctx context.Context, _ []string) error {
		complete := func() (struct{}, error) { return struct{}{}, o.Complete(cmd.Flags(), e.Name, phases.Names()) }
		if _, err := limit.Within(ctx, o.ConfigFile, complete); err != nil {
			return err
		}
		kubeconfig.Path, kubeconfig.Context = o.Host.Kubeconfig, o.Host.Context
		return run(ctx, e, kubeconfig, &o, out, load)
	})
	o.AddFlags(cmd.Flags())
	kubeconfig.AddRequestFlags(cmd.Flags())
	addPhaseFlags(cmd.Flags(), &o)
	out.addFlags(cmd.Flags())
	addCompletions(cmd)
	cmd.Flags().StringVar(&load, "load-images", "", "Put the images of an archive, such as \"make image\" and \"init images save\" write, into the nodes of a kind cluster first: --load-images=ARCHIVE. Without a value it is the archive karmada.tar beside this program.")
	cmd.Flags().Lookup("load-images").NoOptDefVal = besideProgram
	cmd.AddCommand(newImagesCommand(e), newPhasesCommand(e))
	return cmd
}

// output is what is to be written instead of an installation.
type output struct {
	dryRun, config bool
	export         string
}

func (o *output) addFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&o.dryRun, "dry-run", false, "Check, and print the objects instead of writing them to the clusters.")
	fs.BoolVar(&o.config, "print-config", false, "Check, and print the configuration that the defaults, --config and the flags make, as a file for --config.")
	fs.StringVar(&o.export, "export", "", "Write the objects to this directory, in the order in which they are applied, instead of to the clusters.")
}

func addPhaseFlags(fs *pflag.FlagSet, o *config.Configuration) {
	fs.StringSliceVar(&o.Phases.Only, "only", nil, "Run only these phases; \"init phases\" lists them.")
	fs.StringSliceVar(&o.Phases.Skip, "skip-phases", nil, "Leave these phases out; \"init phases\" lists them.")
}

func run(ctx context.Context, e *env.Env, kubeconfig env.Kubeconfig, o *config.Configuration, out output, load string) error {
	if out.dryRun && out.export != "" {
		return fmt.Errorf("--dry-run and --export cannot be used together: --export writes no cluster either")
	}
	if out.config {
		text, err := o.File()
		if err == nil {
			_, err = e.Out.Write(text)
		}
		return err
	}
	host, err := e.Load(kubeconfig)
	if err != nil {
		return err
	}
	p := progress.NewPrinter(e.ErrOut, e.Now, progress.Timeline)
	archive, err := archiveOf(load)
	if err != nil {
		return err
	}
	d := installer.Deps{Program: e.Name, Host: host, Progress: p, Now: e.Now, Archive: archive}
	switch {
	case out.export != "":
		if err := installer.Export(ctx, d, o, out.export); err != nil {
			return e.HostError(kubeconfig, err)
		}
		_, err := fmt.Fprintf(e.Out, "The manifests are in %s; README.txt there describes how to apply them.\n", out.export)
		return err
	case out.dryRun:
		return e.HostError(kubeconfig, installer.Print(ctx, d, o, e.Out))
	}
	e.Say("Installing the control plane in namespace %s", o.APIServer.Namespace)
	if load != "" {
		if err := loadImages(ctx, e, host.Host, archive); err != nil {
			return err
		}
	}
	return e.HostError(kubeconfig, install(ctx, e, d, o, len(o.Phases.Only) > 0))
}

// install runs the phases, and prints what to do next, unless only a part was to run.
func install(ctx context.Context, e *env.Env, d installer.Deps, r *config.Configuration, part bool) error {
	begun := e.Now()
	result, err := installer.Run(ctx, d, r)
	if err != nil {
		if ctx.Err() != nil {
			e.Say("Run the command again to finish the installation.")
		}
		return err
	}
	for _, note := range result.Notes {
		e.Say("note: %s", note)
	}
	if part {
		_, err := fmt.Fprintln(e.Out, "Done.")
		return err
	}
	return finish(e, result, e.Now().Sub(begun))
}

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

// besideProgram is the value of --load-images without one.
const besideProgram = "beside this program"

// archiveOf returns the path of the image archive that --load-images names, or
// that is beside the program. Without the flag it is empty if there is none.
func archiveOf(load string) (string, error) {
	switch load {
	case "":
		return beside(), nil
	case besideProgram:
		path := beside()
		if path == "" {
			return "", errors.New("there is no image archive of this build beside the program: name one with --load-images=ARCHIVE; \"make image\" builds it")
		}
		return path, nil
	}
	_, err := imagearchive.Names(load)
	return load, err
}

// beside returns the image archive of this build beside the program, or "".
func beside() string {
	executable, err := os.Executable()
	if err != nil {
		return ""
	}
	return config.FindArchive(executable, version.Get())
}

// loadImages puts the images of an archive into the nodes of the host, a kind
// cluster.
func loadImages(ctx context.Context, e *env.Env, server, archive string) error {
	defer e.Waiting(func() string { return "the images of " + archive + " to be loaded into the nodes" })()
	name, err := kindcluster.LoadImages(ctx, os.Getenv, server, archive)
	if err != nil {
		return err
	}
	e.Say("The nodes of kind cluster %q have the images of %s", name, archive)
	return nil
}

func newPhasesCommand(e *env.Env) *cobra.Command {
	cmd := e.Command("phases", "List the phases of an installation", `
		List the phases of an installation, which --only and --skip-phases of "init"
		choose. Each can be run again alone. Those that need nothing of each other run
		at the same time.`, "")
	cmd.Args = env.NoArguments
	cmd.RunE = func(*cobra.Command, []string) error {
		var out strings.Builder
		fmt.Fprintf(&out, "%-24s %-72s %s\n", "NAME", "DESCRIPTION", "NEEDS")
		for _, p := range phases.All() {
			fmt.Fprintf(&out, "%s\n", strings.TrimRight(fmt.Sprintf("%-24s %-72s %s", p.Name, p.Doc, strings.Join(p.Needs, ",")), " "))
		}
		_, err := fmt.Fprint(e.Out, out.String())
		return err
	}
	return cmd
}
