// Package adopt is the command that makes a running control plane of Karmada one of this project.
package adopt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/karmada-toolkit/karmada/internal/progress"
	"github.com/karmada-toolkit/karmada/internal/version"
	"github.com/karmada-toolkit/karmada/pkg/cli/env"
	"github.com/karmada-toolkit/karmada/pkg/init/adopt"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
	"github.com/karmada-toolkit/karmada/pkg/init/config"
)

const (
	short = "Make a running Karmada control plane one of this project"
	long  = `
		Replace the roles of a Karmada v1.16 to v1.19 control plane in a host cluster, one at a time where they are: the
		Deployments get other images, and keep their arguments, credentials and Secrets. The API server, Kubernetes'
		controllers, etcd, clusters, agents, policies, bindings, Works and the objects of members stay as they are.

		With --etcd, the image of etcd is replaced too, within its minor version, so that there is a way back.

		--dry-run prints what would change, and changes nothing. What is changed is recorded first: --rollback goes back until
		--finish deletes the record. An adoption that was interrupted, or failed, is continued by the same command.

		A Helm release goes on with the chart of this project, and what an operator installed with the operator of this project: let
		--prepare write what comes before, and run the command that it prints. Where Argo CD or Flux writes the Deployments, have
		that tool set the images that --dry-run lists after --prepare, and run the command again.

		The kubeconfig is that of the host cluster; the control plane is reached through it.`
	examples = `
		# What would change?
		{{.Name}} adopt --dry-run

		# Do it, and go back
		{{.Name}} adopt
		{{.Name}} adopt --rollback

		# Delete the way back when all is well
		{{.Name}} adopt --finish`

	defaultTimeout = 2 * time.Minute
	// maxAgents is how many agents a plan prints.
	maxAgents = 20
)

type flags struct {
	host                              env.Kubeconfig
	namespace, registry, image        string
	dryRun, prepare, rollback, finish bool
	etcd                              bool
	force                             bool
	timeout                           time.Duration
	output                            env.Output
}

// NewCommand returns the command.
func NewCommand(e *env.Env) *cobra.Command {
	f := flags{host: env.Kubeconfig{Flag: "--kubeconfig"}, namespace: config.DefaultNamespace, timeout: defaultTimeout}
	cmd := e.Command("adopt", short, long, examples)
	cmd.Args, cmd.ValidArgsFunction = env.NoArguments, cobra.NoFileCompletions
	cmd.RunE = e.Run(func(ctx context.Context, _ []string) error { return run(ctx, e, f) })
	fs := cmd.Flags()
	f.host.AddHostFlags(fs)
	env.AddHostNamespace(fs, &f.namespace)
	fs.BoolVar(&f.dryRun, "dry-run", false, "Print what would change, and change nothing.")
	fs.BoolVar(&f.prepare, "prepare", false, "Only record the way back, and write the APIs of the federation.")
	fs.BoolVar(&f.rollback, "rollback", false, "Go back to what was recorded.")
	fs.BoolVar(&f.finish, "finish", false, "Delete what was recorded.")
	fs.BoolVarP(&f.force, "force", "f", false, "Skip the confirmation.")
	fs.StringVar(&f.registry, "private-image-registry", "", "Registry of the images, instead of the default one.")
	fs.StringVar(&f.image, "image", "", "Image of all roles, instead of one for each.")
	fs.BoolVar(&f.etcd, "etcd", false, "Replace the image of etcd too, by that of an installation by init.")
	fs.DurationVar(&f.timeout, "timeout", f.timeout, "How long each component may take to be ready.")
	env.AddOutputFlag(cmd, &f.output)
	return cmd
}

func run(ctx context.Context, e *env.Env, f flags) error {
	modes := 0
	for _, on := range []bool{f.dryRun, f.prepare, f.rollback, f.finish} {
		if on {
			modes++
		}
	}
	switch {
	case modes > 1:
		return errors.New("--dry-run, --prepare, --rollback and --finish cannot be used together")
	case f.timeout <= 0:
		return fmt.Errorf("--timeout %s must be greater than 0", f.timeout)
	}
	host, err := e.Load(f.host)
	if err != nil {
		return err
	}
	a := &adopt.Adoption{
		Program: e.Name, Namespace: f.namespace, Images: f.images(), Timeout: f.timeout, Now: e.Now,
		Etcd:     f.etcd,
		Progress: progress.NewPrinter(e.ErrOut, e.Now, progress.Timeline),
	}
	if err := a.Connect(ctx, host); err != nil {
		return e.HostError(f.host, err)
	}
	switch {
	case f.rollback:
		if err := a.Rollback(ctx); err != nil {
			return err
		}
		e.Say("The control plane is as it was before.")
		return nil
	case f.finish:
		if err := a.Finish(ctx); err != nil {
			return err
		}
		e.Say("The record is deleted: there is no way back.")
		return nil
	}
	return f.adopt(ctx, e, a)
}

// adopt prints what would change, and does it.
func (f *flags) adopt(ctx context.Context, e *env.Env, a *adopt.Adoption) error {
	plan, err := a.Plan(ctx)
	if err != nil {
		return err
	}
	switch {
	case f.output != "":
		err = e.PrintDocument(f.output, plan)
	default:
		err = print(e.Escaped().Out, plan)
	}
	if err != nil {
		return err
	}
	if refused := plan.Err(); refused != nil && !f.prepare || f.dryRun {
		return refused
	}
	if !f.force {
		if yes, err := e.Confirm("force"); err != nil || !yes {
			return err
		}
	}
	if _, err := a.Run(ctx, f.prepare); err != nil {
		return err
	}
	switch {
	case f.prepare && plan.Release+plan.Operator != "":
		e.Say("The control plane is prepared. Go on with %q; when all is well, delete the way back with %q.", plan.Upgrade(), e.Name+" adopt --finish -n "+f.namespace)
		return nil
	case f.prepare:
		e.Say("The control plane is prepared. Set the images, and run %q.", e.Name+" adopt -n "+f.namespace)
		return nil
	}
	e.Say("The control plane is adopted. Check it with %q; go back with --rollback, or delete the way back with --finish.", e.Name+" status")
	return nil
}

// images returns the images of the roles.
func (f *flags) images() adopt.Images {
	c := config.New()
	c.Images.PrivateRegistry = f.registry
	return func(role string) string {
		if role == components.Etcd {
			return c.ImageOf(config.Part{Name: role, Component: &config.Component{}})
		}
		if f.image != "" {
			return f.image
		}
		return c.ImageOf(config.Part{Name: role, Component: &config.Component{Image: config.DefaultImage(role, version.Get().Release())}})
	}
}

// print prints a plan.
func print(out io.Writer, p *adopt.Plan) error {
	var text strings.Builder
	fmt.Fprintf(&text, "The control plane in namespace %s was installed by %s", p.Namespace, p.Installer)
	if p.Version != "" {
		text.WriteString(" and has " + p.Version)
	}
	text.WriteString(".\n\n")
	table := tabwriter.NewWriter(&text, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "COMPONENT\tNOW\tTHEN")
	for i := range p.Components {
		c := &p.Components[i]
		then := c.Target
		if c.Adopted() {
			then = "stays"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", c.Name, c.Image, then)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for i := range p.Components {
		for _, note := range p.Components[i].Notes {
			fmt.Fprintf(&text, "Note: %s: %s\n", p.Components[i].Name, note)
		}
	}
	fmt.Fprintf(&text, "\nStay as they are: %s; agents; every Work, binding and object of members", strings.Join(p.Kept, ", "))
	if n := len(p.Purges); n > 0 {
		fmt.Fprintf(&text, ", but %d policies and bindings whose purge modes get their present names", n)
	}
	text.WriteString(".\n")
	for i, agent := range p.Agents {
		if i == maxAgents {
			fmt.Fprintf(&text, "...and the agents of %d more clusters: see -o yaml\n", len(p.Agents)-maxAgents)
			break
		}
		fmt.Fprintf(&text, "Rights of the agent of %s: %s.\n", agent.Cluster, agent.Rights)
	}
	_, err := io.WriteString(out, text.String())
	return err
}
