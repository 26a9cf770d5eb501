// Package get is the command that shows objects of the control plane and of the
// members together.
package get

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	upstream "k8s.io/kubectl/pkg/cmd/get"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/completion"

	"github.com/karmada-toolkit/karmada/pkg/cli/env"
)

const (
	short = "Display one or many resources in Karmada control plane and member clusters"
	long  = `
		Display one or many resources in the control plane and in member clusters.

		Without --operation-scope, tables show the control plane and all members, and
		any other output shows the control plane alone; with --clusters, both show those
		members. With -o name and several clusters the name of the member follows that of
		its object, after a space. The environment variable KARMADACTL_OPERATION_SCOPE sets another
		default. The column CLUSTER shows where
		an object is, and ADOPTION whether the control plane owns it there (Y), does
		not (N), or keeps its template (-).

		With --cached, the role search of the control plane answers for all members, with one
		request: the objects of the kinds that a ResourceRegistry selects. Changes that -w
		shows do not end when members join, leave or are lost.

		All members are requested at once. The objects of those that respond in time are
		shown; the others are named on stderr with the reason, and the exit code is 1.`
	examples = `
		# Show the deployments of the control plane and of all members
		{{.Name}} get deploy

		# Show the pods of two members
		{{.Name}} get pods --operation-scope members -C member1,member2

		# Show everything that runs in all namespaces of the members
		{{.Name}} get all -A --operation-scope members

		# Show a deployment of the control plane as YAML
		{{.Name}} get deploy nginx -o yaml

		# Show a deployment of every member as JSON
		{{.Name}} get deploy nginx --operation-scope members -o json

		# Show pods as they change
		{{.Name}} get pods -w

		# Show the pods of all members from the caches of the control plane, as they change
		{{.Name}} get pods -A -w --cached`
	// memberTimeout is how long a member may take by default.
	memberTimeout = 2 * time.Second
)

// request is what the command line requests.
type request struct {
	print         *upstream.PrintFlags
	scope         env.Scope
	clusters      []string
	labels        string
	fields        string
	allNamespaces bool
	ignoreMissing bool
	// cached reads the members from the caches of the role search.
	cached        bool
	memberTimeout time.Duration

	watch, watchOnly, watchEvents bool

	// explicit reports whether the user chose the scope by flag or environment
	// variable.
	explicit bool
	// tables reports whether the output is a table.
	tables bool
	sortBy string
	// severalClusters reports whether objects of more than one cluster are printed.
	severalClusters bool
}

// NewCommand returns the command.
func NewCommand(e *env.Env) *cobra.Command {
	access := e.NewAccess()
	r := &request{print: upstream.NewGetPrintFlags(), scope: env.Karmada}
	cmd := e.Command("get [NAME | -l label | -n namespace]", short, long, examples)
	cmd.SuggestFor = []string{"list", "ls"}
	cmd.ValidArgsFunction = access.InMembers(completion.ResourceTypeAndNameCompletionFunc, env.NamesObjects)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := r.complete(cmd); err != nil {
			return err
		}
		if err := r.validate(e, cmd, args); err != nil {
			return err
		}
		ctx, stop := e.Interruptible(cmd.Context())
		defer stop()
		return run(ctx, e, access, r, args)
	}
	access.Flags.Add(cmd).AddNamespace(cmd).AddContext(cmd)
	r.addFlags(cmd, access)
	return cmd
}

func (r *request) addFlags(cmd *cobra.Command, access *env.Access) {
	r.print.AddFlags(cmd)
	env.AddScopeFlag(cmd, &r.scope, "Which clusters to show: karmada (the control plane), members or all. Not given, tables show all.", "karmada", "members", "all")
	fs := cmd.Flags()
	fs.StringSliceVarP(&r.clusters, "clusters", "C", []string{}, "Names of the members to show; default all.")
	fs.StringVarP(&r.labels, "labels", "l", "", "Selector (label query) to filter on, supports '=', '==', '!=', 'in' and 'notin' (e.g. -l key1=value1,key2=value2).")
	fs.StringVar(&r.labels, "selector", "", "The same as --labels, as kubectl has it.")
	fs.StringVar(&r.fields, "field-selector", "", "Selector (field query) to filter on, supports '=', '==', and '!=' (e.g. --field-selector key1=value1,key2=value2).")
	fs.BoolVarP(&r.allNamespaces, "all-namespaces", "A", false, "Show the objects of all namespaces.")
	fs.BoolVar(&r.ignoreMissing, "ignore-not-found", false, "Take it as no error if a named object does not exist.")
	fs.BoolVarP(&r.watch, "watch", "w", false, "After showing the objects, go on to show their changes.")
	fs.BoolVar(&r.watchOnly, "watch-only", false, "Show changes only, not what is there.")
	fs.BoolVar(&r.watchEvents, "output-watch-events", false, "With --watch or --watch-only, also say what happened to each object.")
	fs.BoolVar(&r.cached, "cached", false, "Show the objects of members that the role search of the control plane caches.")
	fs.DurationVar(&r.memberTimeout, "member-timeout", memberTimeout, "How long each member may take to answer; 0 is for ever.")
	if err := cmd.RegisterFlagCompletionFunc("clusters", access.Complete.Clusters); err != nil {
		panic(err)
	}
}

// complete derives what follows from the flags and the environment.
func (r *request) complete(cmd *cobra.Command) error {
	output, template := *r.print.OutputFormat, *r.print.TemplateFlags.TemplateArgument
	r.tables = output == "wide" || output == "" && template == ""
	r.sortBy = *r.print.HumanReadableFlags.SortBy
	scope, err := env.ScopeFromEnvironment()
	if err != nil {
		return err
	}
	r.explicit = scope != "" || cmd.Flags().Changed("operation-scope")
	switch {
	case r.cached && !cmd.Flags().Changed("operation-scope"):
		r.scope = env.Members
	case cmd.Flags().Changed("operation-scope"):
	case scope != "":
		r.scope = scope
	case len(r.clusters) > 0:
		r.scope = env.Members
	case r.tables:
		r.scope = env.All
	}
	return nil
}

func (r *request) validate(e *env.Env, cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmdutil.UsageErrorf(cmd, "You must specify the type of resource to get. Use %q for a complete list of supported resources.", e.Name+" api-resources")
	}
	if *r.print.HumanReadableFlags.ShowLabels && !r.tables {
		return fmt.Errorf("--show-labels option cannot be used with %s printer", *r.print.OutputFormat)
	}
	for _, same := range [][2]string{{"selector", "labels"}, {"context", "karmada-context"}} {
		if cmd.Flags().Changed(same[0]) && cmd.Flags().Changed(same[1]) {
			return fmt.Errorf("--%s and --%s are the same; use one of them", same[0], same[1])
		}
	}
	if r.watchEvents && !r.watch && !r.watchOnly {
		return errors.New("--output-watch-events option can only be used with --watch or --watch-only")
	}
	if r.memberTimeout < 0 {
		return fmt.Errorf("--member-timeout %s must not be negative, e.g. 2s", r.memberTimeout)
	}
	if _, err := r.printer(nil, false); err != nil {
		return err
	}
	return r.checkScope(e)
}

// checkScope returns an error if the scope contradicts another flag, and warns of one that it makes useless.
func (r *request) checkScope(e *env.Env) error {
	if r.cached && r.scope != env.Members {
		return fmt.Errorf("--cached shows members only; use --operation-scope %s, or leave it out", env.Members)
	}
	if len(r.clusters) > 0 && r.scope == env.Karmada {
		e.Say("Warning: --clusters has no effect with operation scope karmada")
	}
	return nil
}

func run(ctx context.Context, e *env.Env, access *env.Access, r *request, args []string) error {
	targets, err := parse(args, r.labels+r.fields)
	if err != nil {
		return err
	}
	if r.allNamespaces && slices.ContainsFunc(targets, func(t target) bool { return len(t.names) > 0 }) {
		return errors.New("a resource cannot be retrieved by name across all namespaces; leave out --all-namespaces or the name")
	}
	c, err := newCollector(ctx, e, access, r, targets)
	if err != nil {
		return err
	}
	if r.watch || r.watchOnly {
		return c.follow(ctx, e)
	}
	done := e.Waiting(c.pending.String)
	result, err := c.collect(ctx)
	done()
	if err != nil {
		return err
	}
	return r.show(e, c, result)
}

// output returns the writer for objects. Tables are escaped, because people read them.
func (r *request) output(e *env.Env) io.Writer {
	if r.tables {
		return e.Escaped().Out
	}
	return e.TerminalSafe().Out
}

// show prints the objects and returns the failures.
func (r *request) show(e *env.Env, c *collector, result *result) error {
	for _, note := range result.notes {
		e.SayLine(note)
	}
	if !r.tables {
		if err := r.printObjects(r.output(e), result.answers, c.single()); err != nil {
			return err
		}
		if !r.ignoreMissing {
			c.hintScope(e, result)
		}
		return result.failure()
	}
	groups, err := merge(result.answers, c.now(e))
	if err != nil {
		return err
	}
	if err := r.printTables(r.output(e), groups, len(groups) > 1); err != nil {
		return err
	}
	failure := result.failure()
	if len(groups) == 0 && failure == nil && !r.ignoreMissing {
		e.SayLine(c.nothing(result))
	}
	return failure
}
