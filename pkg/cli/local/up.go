package local

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/kubectl/pkg/util/term"

	"github.com/karmada-toolkit/karmada/pkg/cli/env"
	"github.com/karmada-toolkit/karmada/pkg/local"
)

func newUp(e *env.Env) *cobra.Command {
	var f flags
	var r local.UpRequest
	var chosen upFlags
	var show shown
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start a federation, or what is dead of it",
		Long: e.Long(`
Start a federation, or bring back what does not run of it, and wait until every member is Ready. That includes members
that "local stop" stopped.

A new federation gets commands to try, if the output is a terminal. With -o json or yaml the output is one document with
the fields name, runtime, members, running, parts, created and kubeconfig.`),
		Example: e.Examples(`
# Start a control plane and two members
{{.Name}} local up --members 2

# Three members, one of them in Pull mode: its agent dials the control plane
{{.Name}} local up --members 3 --pull 1

# Larger nodes, a feature gate, and a flag of a role; they are kept for the next start
{{.Name}} local up --node-cpu 64 --node-memory 512Gi --feature-gates Failover=true --set controller-manager.concurrent-work-syncs=10

# Three members with an estimator each: the scheduler considers how many replicas fit on their nodes
{{.Name}} local up --members 3 --estimators

# Caches of the members' objects, which a ResourceRegistry selects
{{.Name}} local up --search

# Services that span two kind clusters
{{.Name}} local up --runtime kind --members 2 --services

# Two kind clusters, the control plane from the image of this version that Docker has
{{.Name}} local up --runtime kind --members 2`),
		Args: noArguments(e),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkCounts(cmd.Flags(), &r); err != nil {
				return err
			}
			chosen.set(cmd.Flags(), &r)
			var err error
			if r.Root, err = f.root(); err != nil {
				return err
			}
			r.Name = f.name
			return up(cmd.Context(), e, r, show, f.given())
		},
	}
	f.bind(cmd.Flags())
	bindUp(cmd.Flags(), &r)
	env.AddOutputFlag(cmd, &show.output)
	cmd.Flags().BoolVarP(&show.quiet, "quiet", "q", false, "Print only errors, and the document of --output.")
	chosen.bind(cmd.Flags())
	return cmd
}

// upFlags are flags that change nothing of an existing federation unless they are given.
type upFlags struct {
	gates                string
	estimators, services bool
	search               bool
}

func (f *upFlags) bind(flags *pflag.FlagSet) {
	flags.StringVar(&f.gates, "feature-gates", "", "Feature gates of the roles and agents, as NAME=true,NAME=false; default as before. They replace those of before.")
	flags.BoolVar(&f.estimators, "estimators", false, "Give each member an estimator, which the scheduler calls for the replicas that really fit; default as before.")
	flags.BoolVar(&f.search, "search", false, "Cache the objects of members that ResourceRegistries select, and serve them; default as before.")
	flags.BoolVar(&f.services, "services", false, "Let Services span the members (feature gate MultiClusterService); default as before. Pods reach those of other members with --runtime kind only.")
}

// set puts the flags that were given into a request.
func (f *upFlags) set(flags *pflag.FlagSet, r *local.UpRequest) {
	if flags.Changed("feature-gates") {
		r.Settings.FeatureGates = &f.gates
	}
	if flags.Changed("services") {
		r.Settings.Services = &f.services
	}
	if flags.Changed("search") {
		r.Process.Search = &f.search
	}
	if flags.Changed("estimators") {
		r.Process.Estimators = &f.estimators
	}
}

// checkCounts returns an error for numbers that a user gave and that cannot be; those of a new request mean as before.
func checkCounts(fs *pflag.FlagSet, r *local.UpRequest) error {
	if fs.Changed("members") && r.Members < 0 {
		return fmt.Errorf("--members %d: use 0 or more", r.Members)
	}
	if fs.Changed("nodes") && r.Process.Nodes.Count < 0 {
		return fmt.Errorf("--nodes %d: use 0 or more", r.Process.Nodes.Count)
	}
	if fs.Changed("pull") && r.Pull < 0 {
		return fmt.Errorf("--pull %d: use 0 or more", r.Pull)
	}
	if fs.Changed("node-pods") && r.Process.Nodes.Pods < 1 {
		return fmt.Errorf("--node-pods %d: use 1 or more", r.Process.Nodes.Pods)
	}
	return nil
}

func bindUp(fs *pflag.FlagSet, r *local.UpRequest) {
	fs.IntVar(&r.Members, "members", -1, "Number of member clusters, from 0; default as many as there are, 2 for a new federation.")
	fs.IntVar(&r.Process.Nodes.Count, "nodes", -1, "Number of simulated nodes of each member process; default as before, 1 for a new federation. Members that run are started again when it changes.")
	fs.StringVar(&r.Process.Nodes.CPU, "node-cpu", "", "Processors of each simulated node; default as before, 16 for a new federation.")
	fs.StringVar(&r.Process.Nodes.Memory, "node-memory", "", "Memory of each simulated node; default as before, 128Gi for a new federation.")
	fs.IntVar(&r.Process.Nodes.Pods, "node-pods", 0, "Pods that fit on each simulated node; default as before, 500 for a new federation.")
	fs.StringArrayVar(&r.Settings.Set, "set", nil, "Flag of a role of the control plane, of the agents or of the estimators, as ROLE.FLAG=VALUE; ROLE.FLAG- gives it its default back. Can be repeated; default as before. Flags that all roles share are those of the role karmada.")
	fs.IntVar(&r.Pull, "pull", -1, "Number of members in Pull mode, each with an agent that dials the control plane; default as before, 0 for a new federation.")
	fs.Lookup("members").DefValue, fs.Lookup("nodes").DefValue, fs.Lookup("pull").DefValue = "", "", ""
	fs.Lookup("node-pods").DefValue = ""
	fs.StringVar(&r.Runtime, "runtime", "", "What the clusters are: "+strings.Join(local.Runtimes(), " or ")+"; default as before, "+local.RuntimeProcess+" for a new federation.")
	fs.StringVar(&r.Kind.NodeImage, "node-image", "", "Image of the nodes of new kind clusters; default kind's own.")
	fs.StringVar(&r.Kind.Config, "kind-config", "", "Path of a kind configuration that new kind clusters are made from; their names are set.")
	fs.StringVar(&r.Kind.Image, "image", "", "Path of an archive with the image of the control plane, for kind clusters; default the image of this version that the container engine has.")
}

// shown is what "local up" prints.
type shown struct {
	output env.Output
	quiet  bool
}

// next reports whether the commands to try are printed. A script has no use for them, and in a federation that was used
// before their objects may exist.
func (s shown) next(fresh, terminal bool) bool {
	return fresh && terminal && !s.quiet && s.output == ""
}

// stderr is where progress is printed.
func (s shown) stderr(e *env.Env) io.Writer {
	if s.quiet {
		return io.Discard
	}
	return e.ErrOut
}

func up(ctx context.Context, e *env.Env, r local.UpRequest, show shown, given string) error {
	ctx, stop := e.Interruptible(ctx)
	defer stop()
	start, stderr := e.Now(), show.stderr(e)
	_, err := local.KubeconfigPath(r.Root, r.Name)
	fresh := err != nil // it was never ready
	f, err := local.Up(ctx, deps(e, stderr), r)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(stderr, "Federation %q%s is ready after %.1fs.\n", f.Name, chosenRuntime(r, f), e.Now().Sub(start).Seconds())
	if show.output != "" {
		return e.PrintDocument(show.output, document(ctx, e, f))
	}
	if !show.next(fresh, term.TTY{Out: e.Out}.IsTerminalOut()) {
		return nil
	}
	_, err = fmt.Fprint(e.Out, next(e.Name, given, contexts(f), ending(e, f, given)))
	return err
}

// chosenRuntime names a runtime that an earlier start chose and this one does not name.
func chosenRuntime(r local.UpRequest, f *local.Federation) string {
	if r.Runtime != "" || f.Runtime == local.RuntimeProcess {
		return ""
	}
	return fmt.Sprintf(", created with --runtime %s,", f.Runtime)
}

// next returns the commands to try on a federation that is up. They can be pasted
// into a shell as they are.
func next(program, given, contexts, ending string) string {
	return fmt.Sprintf(`
Next:
  export KUBECONFIG=$(%[1]s local kubeconfig%[2]s)
  %[1]s get clusters
  %[1]s create deployment nginx --image nginx:1.27 --replicas 2
  %[1]s apply -f - <<'END'
  apiVersion: policy.karmada.io/v1alpha1
  kind: PropagationPolicy
  metadata:
    name: nginx
  spec:
    resourceSelectors:
    - apiVersion: apps/v1
      kind: Deployment
      name: nginx
    placement:
      replicaScheduling:
        replicaSchedulingType: Divided
END
  %[1]s get deployments,pods

The policy propagates the Deployment to every cluster and divides its replicas among them.
Contexts: karmada-apiserver (the control plane)%[3]s.
%[4]s
`, program, given, contexts, ending)
}

// ending is the advice how to end a federation.
func ending(e *env.Env, f *local.Federation, given string) string {
	if f.Runtime == local.RuntimeKind {
		return fmt.Sprintf("Remove it with %q.", e.Name+" local down"+given)
	}
	return fmt.Sprintf("Stop it with %q; add --purge to remove its data.", e.Name+" local down"+given)
}

// contextsShown is how many members the list of contexts names.
const contextsShown = 5

func contexts(f *local.Federation) string {
	var out string
	if f.Runtime == local.RuntimeKind {
		out = ", host (the cluster that it runs on)"
	}
	for i, member := range f.Members {
		if i == contextsShown {
			return out + fmt.Sprintf(" and %d more", len(f.Members)-i)
		}
		out += ", " + member
	}
	return out
}
