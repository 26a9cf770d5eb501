// Package plan is the command that shows what changes would do in every cluster, and the one that stores what it needs for that.
package plan

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilexec "k8s.io/utils/exec"

	"github.com/karmada-toolkit/karmada/internal/limit"
	"github.com/karmada-toolkit/karmada/pkg/cli/env"
	"github.com/karmada-toolkit/karmada/pkg/cli/planning"
	"github.com/karmada-toolkit/karmada/pkg/insight/plan"
	"github.com/karmada-toolkit/karmada/pkg/insight/snapshot"
)

const (
	short = "Show what changes would do in every cluster, without writing anything"
	long  = `
		Show what changes would do in every cluster, without writing anything.

		The changes are made in the order of the flags to what the control plane has now, and the
		decisions of the control plane follow: policies select, workloads are scheduled and evicted, overrides are
		applied, dependencies follow. Of each object that would change the clusters are printed with
		the replicas before and after, or the fields that change; --diff prints what changes in
		the member. What cannot be computed is named and counted: "unknown".

		Objects of files are merged into what exists as "apply" does, and validated as admission does.
		Admission of others is not asked, unless --server-side sends the objects as a dry run.

		Whether NoExecute taints evict, feature gates and skipped namespaces are flags of karmada-controller-manager:
		give them here, too.

		The exit code is 0 if nothing changes, 2 if something does, and 1 for an error. The document of
		--output is described in docs/plan.md.`
	examples = `
		# What would apply do?
		{{.Name}} plan -f nginx.yaml

		# What would it change in the objects of the members?
		{{.Name}} plan -f nginx.yaml --diff

		# What happens if a cluster is lost, after a workload was scaled?
		{{.Name}} plan --scale deployment/nginx=6 --lose member1 --enable-no-execute-taint-eviction

		# What happens if a cluster is taken away?
		{{.Name}} plan --unjoin member1

		# Without a server, from a file that "snapshot" wrote
		{{.Name}} plan --from federation.json -k overlays/production`

	// deadline bounds the wait for the members of --diff.
	deadline = 5 * time.Second
	// changed is the exit code if something changes.
	changed = 2
)

type options struct {
	steps      steps
	from       string
	diff       bool
	serverSide bool
	output     env.Output
	settings   planning.Settings
}

// NewCommand returns the command.
func NewCommand(e *env.Env) *cobra.Command {
	access := e.NewAccess()
	var o options
	cmd := e.Command("plan (-f FILE | -k DIRECTORY | --delete TYPE/NAME | --scale TYPE/NAME=N | --lose CLUSTER | --taint CLUSTER=KEY:EFFECT | --cordon CLUSTER | --label CLUSTER=KEY=VALUE | --unjoin CLUSTER)...",
		short, long, examples)
	cmd.Args = cobra.ArbitraryArgs
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	cmd.RunE = e.Run(func(ctx context.Context, args []string) error { return run(ctx, e, access, o, args) })
	access.Flags.Add(cmd).AddNamespace(cmd)
	o.steps.addFlags(cmd, access)
	cmd.Flags().StringVar(&o.from, "from", "", "File that \"snapshot\" wrote, instead of the control plane.")
	cmd.Flags().BoolVar(&o.diff, "diff", false, "Print what changes in the objects of the members.")
	cmd.Flags().BoolVar(&o.serverSide, "server-side", false, "Have the API server default and validate the objects of files, as a dry run.")
	o.settings.AddFlags(cmd)
	env.AddOutputFlag(cmd, &o.output)
	return cmd
}

func run(ctx context.Context, e *env.Env, access *env.Access, o options, args []string) error {
	if err := o.steps.bare(args); err != nil {
		return err
	}
	if len(o.steps.all) == 0 {
		return errors.New("name a change, such as -f FILE, --delete TYPE/NAME or --lose CLUSTER")
	}
	if err := o.settings.Validate(); err != nil {
		return err
	}
	if o.from != "" && (o.diff || o.serverSide) {
		return errors.New("--diff and --server-side need the control plane: they cannot be used with --from")
	}
	p := &plans{env: e, access: access, options: o}
	effects, err := p.effects(ctx)
	if err != nil {
		return err
	}
	if o.output != "" {
		err = e.PrintDocument(o.output, effects)
	} else {
		err = planning.Print(e, effects, p.diffs(ctx, effects))
	}
	if err == nil && effects.Changes() {
		return utilexec.CodeExitError{Err: errors.New(""), Code: changed}
	}
	return err
}

// plans computes effects.
type plans struct {
	env    *env.Env
	access *env.Access
	options
	// source is the control plane; nil with --from.
	source   *planning.Source
	mapper   meta.RESTMapper
	contents *snapshot.Contents
}

// effects reads the federation and computes what the changes do.
func (p *plans) effects(ctx context.Context) (*plan.Effects, error) {
	if err := p.connect(ctx); err != nil {
		return nil, err
	}
	if err := p.steps.load(ctx, p); err != nil {
		return nil, err
	}
	var err error
	if p.contents == nil {
		if p.contents, err = p.source.Contents(ctx, p.steps.kinds()); err != nil {
			return nil, err
		}
	}
	world, err := planning.World(p.contents, p.settings)
	if err != nil {
		return nil, err
	}
	changes, err := p.steps.changes(ctx, p)
	if err != nil {
		return nil, err
	}
	return plan.Plan(world, changes)
}

// connect connects to the control plane, or reads the file of --from.
func (p *plans) connect(ctx context.Context) error {
	if p.from != "" {
		file, err := limit.Within(ctx, p.from, func() (*os.File, error) { return os.Open(p.from) })
		if err != nil {
			return fmt.Errorf("--from: %w", err)
		}
		defer func() { _ = file.Close() }()
		if p.contents, err = limit.Within(ctx, p.from, func() (*snapshot.Contents, error) { return snapshot.Read(file) }); err != nil {
			return fmt.Errorf("--from %s: %w", p.from, err)
		}
		p.mapper = p.contents.Mapper()
		return nil
	}
	var err error
	if p.source, err = planning.Connect(ctx, p.env, p.access); err != nil {
		return err
	}
	p.mapper = p.source.Mapper
	return nil
}

// resolve returns the kind of a type that a user named.
func resolve(mapper meta.RESTMapper, name string) (schema.GroupVersionKind, error) {
	versioned, plain := schema.ParseResourceArg(strings.ToLower(name))
	if versioned != nil {
		if kind, err := mapper.KindFor(*versioned); err == nil {
			return kind, nil
		}
	}
	return mapper.KindFor(plain.WithVersion(""))
}
