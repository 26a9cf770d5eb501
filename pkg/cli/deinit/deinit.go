// Package deinit is the command that removes a control plane from a host cluster.
package deinit

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/karmada-toolkit/karmada/pkg/cli/env"
	installer "github.com/karmada-toolkit/karmada/pkg/init"
	"github.com/karmada-toolkit/karmada/pkg/init/config"
)

const (
	short = "Remove the Karmada control plane from a Kubernetes cluster"
	long  = `
		Remove the control plane from a Kubernetes cluster: what "init" made there and
		nothing else. It works when half of a control plane is missing, and can be
		run again.

		Data of etcd, on a node or in PersistentVolumeClaims, and local files are kept:
		the next "init" brings the old federation back, with all its clusters and
		objects. --purge-data removes the data, and with it the federation.`
	examples = `
		# Remove the control plane
		{{.Name}} deinit

		# See what would be removed
		{{.Name}} deinit --dry-run

		# Remove it for good, with the data of etcd
		{{.Name}} deinit --purge-data

		# Without confirmation, and with the namespace and all that is in it
		{{.Name}} deinit --force --purge-namespace`
)

// flags are those of the command.
type flags struct {
	host          env.Kubeconfig
	namespace     string
	dryRun, force bool
	purge         installer.RemovalOptions
}

// NewCommand returns the command.
func NewCommand(e *env.Env) *cobra.Command {
	f := flags{host: env.Kubeconfig{Flag: "--kubeconfig"}, namespace: config.DefaultNamespace}
	cmd := e.Command("deinit", short, long, examples)
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	cmd.Args = env.NoArguments
	cmd.RunE = e.Run(func(ctx context.Context, _ []string) error { return run(ctx, e, f) })
	fs := cmd.Flags()
	f.host.AddHostFlags(fs)
	env.AddHostNamespace(fs, &f.namespace)
	fs.BoolVar(&f.dryRun, "dry-run", false, "Print what would be removed, and remove nothing.")
	fs.BoolVarP(&f.force, "force", "f", false, "Skip the confirmation.")
	fs.BoolVar(&f.purge.Data, "purge-data", false, "Remove the data of etcd as well, on its node or in its PersistentVolumeClaims. Without it the next init brings the old federation back.")
	fs.BoolVar(&f.purge.Namespace, "purge-namespace", false, "Remove the namespace as well, with everything that is in it.")
	return cmd
}

func run(ctx context.Context, e *env.Env, f flags) error {
	host, err := e.Load(f.host)
	if err != nil {
		return err
	}
	plan, err := installer.PlanRemoval(ctx, host, f.namespace, f.purge)
	if err != nil {
		return e.HostError(f.host, err)
	}
	if f.dryRun {
		for _, line := range plan.Lines() {
			if _, err := fmt.Fprintf(e.Out, "%s (dry run)\n", line); err != nil {
				return err
			}
		}
		return nil
	}
	if _, err := fmt.Fprintf(e.Out, "removes Karmada from Kubernetes, namespace %s of %s\n%s", f.namespace, host.Host, warning(plan, f)); err != nil {
		return err
	}
	if !f.force {
		yes, err := e.Confirm("force")
		if err != nil || !yes {
			return err
		}
	}
	report := func(line string) { _, _ = fmt.Fprintln(e.Out, line) }
	if err := plan.Run(ctx, report); err != nil {
		return err
	}
	return farewell(e.Out, plan, f)
}

// warning returns what becomes of the data, to be printed before anything is removed.
func warning(plan *installer.Removal, f flags) string {
	switch where := kept(plan, f); {
	case f.purge.Data:
		return "the data of etcd is removed as well: the federation cannot be brought back\n"
	case where != "":
		return fmt.Sprintf("the data of etcd stays %s: the next init there brings the old federation back; --purge-data removes it\n", where)
	}
	return ""
}

// kept returns where the data of etcd stays, or "".
func kept(plan *installer.Removal, f flags) string {
	switch path, claims := plan.DataPath(), plan.Claims(); {
	case f.purge.Data:
		return ""
	case path != "":
		return "on its node, in " + path
	case len(claims) > 0 && !f.purge.Namespace:
		return "in PersistentVolumeClaims"
	}
	return ""
}

// farewell prints what is left.
func farewell(out io.Writer, plan *installer.Removal, f flags) error {
	lines := []string{"remove Karmada from Kubernetes successfully."}
	if where := kept(plan, f); where != "" {
		lines = append(lines, fmt.Sprintf("Data of etcd stays %s: the next init there brings the old federation back, with its clusters and objects.", where))
		if claims := plan.Claims(); len(claims) > 0 {
			lines = append(lines, fmt.Sprintf("Remove it with \"kubectl -n %s delete pvc %s\".", f.namespace, strings.Join(claims, " ")))
		}
	}
	lines = append(lines, fmt.Sprintf("Local files stay, by default in %s.", config.DefaultDataPath))
	_, err := fmt.Fprintln(out, strings.Join(lines, "\n"))
	return err
}
