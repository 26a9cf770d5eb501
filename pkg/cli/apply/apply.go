// Package apply is kubectl's command of that name, which can also make the
// policies that propagate what it applies.
package apply

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/cli-runtime/pkg/resource"
	upstream "k8s.io/kubectl/pkg/cmd/apply"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"github.com/karmada-toolkit/karmada/pkg/cli/env"
)

const (
	short = "Apply a configuration to a resource by file name or stdin and propagate them into member clusters"
	long  = `
		Apply a configuration to a resource by file name or stdin, and propagate it.

		The resource is made if it does not exist yet; JSON and YAML are accepted. With
		--cluster or --all-clusters, each object is given a policy that propagates it to
		those clusters; without, policies of yours decide.

		With --plan, what it would do in every cluster is printed first, as "plan -f" does, and
		applied when you confirm it.

		CustomResourceDefinitions whose objects are among what is applied come first.`
	examples = `
		# Apply manifest.yaml to the control plane
		{{.Name}} apply -f manifest.yaml

		# Apply it and propagate what it holds to clusters member1 and member2
		{{.Name}} apply -f manifest.yaml --cluster member1,member2

		# Apply it and propagate what it holds to all clusters
		{{.Name}} apply -f manifest.yaml --all-clusters

		# See what it would do in every cluster, and apply it when that is confirmed
		{{.Name}} apply -f manifest.yaml --plan

		# Apply a directory with a kustomization.yaml
		{{.Name}} apply -k dir/

		# Apply what another program writes
		cat pod.json | {{.Name}} apply -f -`
)

type flags struct {
	*upstream.ApplyFlags
	clusters    []string
	allClusters bool
	plan, yes   bool
}

// NewCommand returns the command.
func NewCommand(e *env.Env) *cobra.Command {
	access := e.NewAccess()
	f := flags{ApplyFlags: upstream.NewApplyFlags(e.TerminalSafe())}
	cmd := e.Command("apply (-f FILENAME | -k DIRECTORY)", short, long, examples)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return run(cmd, e, access, f, args)
	}
	f.AddFlags(cmd)
	access.Flags.Add(cmd).AddNamespace(cmd)
	cmd.Flags().BoolVar(&f.allClusters, "all-clusters", false, "Propagate each object to all member clusters.")
	cmd.Flags().StringSliceVarP(&f.clusters, "cluster", "C", nil, "Names of the member clusters to propagate each object to.")
	cmd.Flags().BoolVar(&f.plan, "plan", false, "Print what changes in every cluster, and apply it after confirmation.")
	cmd.Flags().BoolVar(&f.yes, "yes", false, "With --plan, apply without confirmation.")
	if err := cmd.RegisterFlagCompletionFunc("cluster", access.Complete.Clusters); err != nil {
		panic(err)
	}
	return cmd
}

// propagates reports whether policies are applied with the objects.
func (f flags) propagates() bool { return f.allClusters || len(f.clusters) > 0 }

func run(cmd *cobra.Command, e *env.Env, access *env.Access, f flags, args []string) error {
	if err := checkFlags(cmd, f); err != nil {
		return err
	}
	factory := access.Factory()
	o, err := f.ToOptions(factory, cmd, e.Name, args)
	if err != nil {
		return err
	}
	if err := o.Validate(); err != nil {
		return err
	}
	if f.propagates() {
		if err := checkClusters(cmd.Context(), access, f.clusters); err != nil {
			return err
		}
	}
	o.Builder = resource.NewBuilder(lenient{factory})
	var unread error // the others are applied
	o.PreProcessorFn = func() (err error) {
		unread, err = prepare(cmd.Context(), e, access, f, o)
		return err
	}
	err = o.Run()
	if errors.Is(err, errNotApplied) {
		return nil
	}
	return errors.Join(unread, err)
}

// prepare changes what is applied, and does what comes before it. It returns why some objects cannot be applied, although the others can.
func prepare(ctx context.Context, e *env.Env, access *env.Access, f flags, o *upstream.ApplyOptions) (unread, err error) {
	infos, unread := o.GetObjects()
	infos, definitions, undefined := define(infos)
	if unread = errors.Join(unread, undefined); unread != nil && len(infos) == 0 {
		return nil, unread
	}
	if f.propagates() {
		if infos, err = withPolicies(access.Factory(), infos, f.clusters); err != nil {
			return unread, err
		}
	}
	o.SetObjects(infos)
	switch {
	case f.plan:
		err = confirm(ctx, e, access, infos, f.yes)
	case o.DryRunStrategy == cmdutil.DryRunClient:
		err = validate(e, infos)
	}
	if err == nil && len(definitions) > 0 && o.DryRunStrategy == cmdutil.DryRunNone {
		err = applyDefinitions(ctx, e, o, definitions)
	}
	return unread, err
}

func checkClusters(ctx context.Context, access *env.Access, named []string) error {
	if _, err := access.ControlPlane.RequiredClient(ctx); err != nil {
		return err
	}
	all, err := access.ControlPlane.ClusterNames(ctx)
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for _, name := range all {
		known[name] = true
	}
	var errs []error
	for _, name := range named {
		if !known[name] {
			errs = append(errs, fmt.Errorf("cluster %s does not exist", name))
		}
	}
	return utilerrors.NewAggregate(errs)
}
