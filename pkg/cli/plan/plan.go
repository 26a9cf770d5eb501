// Package plan is the command that shows what changes would do in every cluster, and the one that stores what it needs for that.
package plan

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	cliflag "k8s.io/component-base/cli/flag"
	utilexec "k8s.io/utils/exec"

	"github.com/karmada-toolkit/karmada/internal/limit"
	"github.com/karmada-toolkit/karmada/pkg/cli/env"
	"github.com/karmada-toolkit/karmada/pkg/cli/planning"
	"github.com/karmada-toolkit/karmada/pkg/domain/propagation"
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

// The feature gates that decide about a plan. Package gates would link metrics of servers. All are alpha.
const (
	preemption = "PropagationPolicyPreemption"
	components = "MultiplePodTemplatesScheduling"
	quotas     = "ResourceQuotaEstimate"
	affinity   = "WorkloadAffinity"
)

var known = []string{preemption, components, quotas, affinity}

// others are the gates that decide about nothing that a plan shows.
var others = []string{
	"AllBeta", "ControllerPriorityQueue", "CustomizedClusterResourceModeling", "Failover", "FederatedQuotaEnforcement", "GracefulEviction", "MultiClusterService",
	"PriorityBasedScheduling", "PropagateDeps", "SchedulingOvercommitProtection", "StatefulFailoverInjection",
}

// allAlpha turns all alpha gates on that are not given.
const allAlpha = "AllAlpha"

type options struct {
	steps      steps
	from       string
	diff       bool
	serverSide bool
	output     env.Output
	evict      bool
	skipped    []string
	gates      map[string]bool
}

// NewCommand returns the command.
func NewCommand(e *env.Env) *cobra.Command {
	access := e.NewAccess()
	o := options{gates: map[string]bool{}}
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
	cmd.Flags().BoolVar(&o.evict, "enable-no-execute-taint-eviction", false, "NoExecute taints evict, as with this flag of karmada-controller-manager.")
	cmd.Flags().StringSliceVar(&o.skipped, "skipped-propagating-namespaces", []string{propagation.DefaultSkippedNamespaces}, "Namespaces of which nothing is propagated, as with this flag of karmada-controller-manager.")
	cmd.Flags().Var(cliflag.NewMapStringBool(&o.gates), "feature-gates", "Feature gates of karmada-controller-manager, as NAME=true,NAME=false. These decide about a plan: "+strings.Join(known, ", ")+".")
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
	for name := range o.gates {
		if name != allAlpha && !slices.Contains(known, name) && !slices.Contains(others, name) {
			return fmt.Errorf("--feature-gates: there is no gate %q; those that decide about a plan are %s", name, strings.Join(known, ", "))
		}
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
	world    *plan.World
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
	if p.world, err = planning.World(p.contents); err != nil {
		return nil, err
	}
	if p.world.Skipped, err = propagation.ParseNamespaces(p.skipped); err != nil {
		return nil, fmt.Errorf("--skipped-propagating-namespaces: %w", err)
	}
	gate := func(name string) bool {
		on, given := p.gates[name]
		return on || !given && p.gates[allAlpha]
	}
	p.world.Evict, p.world.Preempt = p.evict, gate(preemption)
	p.world.Features = propagation.Features{Components: gate(components), Quotas: gate(quotas), Affinity: gate(affinity)}
	changes, err := p.steps.changes(ctx, p)
	if err != nil {
		return nil, err
	}
	return plan.Plan(p.world, changes)
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
