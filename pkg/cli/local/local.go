// Package local holds the commands for federations on one machine.
package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/karmada-toolkit/karmada/internal/progress"
	"github.com/karmada-toolkit/karmada/internal/version"
	"github.com/karmada-toolkit/karmada/pkg/cli/env"
	"github.com/karmada-toolkit/karmada/pkg/local"
)

const (
	long = `
Run a whole federation on this machine: a control plane and member clusters.

By default they are processes. Nothing but this program and its servers is needed: no containers, no root, no
network. The members have simulated nodes, on which pods seem to run. Such a federation keeps its data until it is
purged.

With --runtime kind each cluster is a kind cluster, with real nodes in containers and real pods, and the control
plane is installed in one of them as init does it. A container engine such as Docker is needed, an image of kind's
nodes, and the image of the control plane.`

	examples = `
# Start a control plane and two members
{{.Name}} local up --members 2

# Use it
export KUBECONFIG=$({{.Name}} local kubeconfig)
kubectl get clusters

# A second one beside it
{{.Name}} local up --name other --members 3 --nodes 2

# Stop it, and remove all its data
{{.Name}} local down --purge

# A federation of kind clusters, its control plane from an archive that "make image" wrote
{{.Name}} local up --runtime kind --members 2 --image _output/karmada.tar
{{.Name}} local down`
)

// flags identify the federation of a command.
type flags struct{ dir, name string }

func (f *flags) bind(fs *pflag.FlagSet) {
	fs.StringVar(&f.dir, "dir", "", "Directory that federations are kept in; default karmada/local in $XDG_STATE_HOME (~/.local/state).")
	fs.StringVar(&f.name, "name", local.DefaultName, "Name of the federation.")
}

func (f *flags) root() (string, error) {
	if f.dir != "" {
		return f.dir, nil
	}
	return local.DefaultRoot(os.Getenv)
}

// NewCommand returns the command.
func NewCommand(e *env.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "local",
		Short:   "Run a federation on this machine",
		Long:    e.Long(long),
		Example: e.Examples(examples),
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newUp(e), newDown(e), newStatus(e), newList(e), newKubeconfig(e))
	for _, sub := range cmd.Commands() {
		addNameCompletion(sub)
	}
	return cmd
}

func deps(e *env.Env, out io.Writer) local.Deps {
	executable, _ := os.Executable() // without it the servers are looked for elsewhere
	return local.Deps{
		Program: e.Name, Version: version.Get().GitVersion, Executable: executable, Getenv: os.Getenv, Now: e.Now,
		Progress: progress.NewPrinter(out, e.Now, progress.Columns),
	}
}

func newUp(e *env.Env) *cobra.Command {
	var f flags
	var r local.UpRequest
	var gates string
	var estimators bool
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start a federation, or what is dead of it",
		Long:  e.Long("Start a federation, or bring back what is dead of it, and wait until every member is Ready."),
		Example: e.Examples(`
# Start a control plane and two members
{{.Name}} local up --members 2

# Three members, one of them in Pull mode: its agent dials the control plane
{{.Name}} local up --members 3 --pull 1

# Larger nodes, a feature gate, and a flag of a role; they are kept for the next start
{{.Name}} local up --node-cpu 64 --node-memory 512Gi --feature-gates Failover=true --set controller-manager.concurrent-work-syncs=10

# Three members with an estimator each: the scheduler considers how many replicas fit on their nodes
{{.Name}} local up --members 3 --estimators

# Two kind clusters, the control plane from the image of this version that Docker has
{{.Name}} local up --runtime kind --members 2`),
		Args: noArguments(e),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("members") && r.Members < 0 {
				return fmt.Errorf("--members %d: use 0 or more", r.Members)
			}
			if cmd.Flags().Changed("nodes") && r.Process.Nodes.Count < 0 {
				return fmt.Errorf("--nodes %d: use 0 or more", r.Process.Nodes.Count)
			}
			if cmd.Flags().Changed("pull") && r.Pull < 0 {
				return fmt.Errorf("--pull %d: use 0 or more", r.Pull)
			}
			if cmd.Flags().Changed("node-pods") && r.Process.Nodes.Pods < 1 {
				return fmt.Errorf("--node-pods %d: use 1 or more", r.Process.Nodes.Pods)
			}
			if cmd.Flags().Changed("feature-gates") {
				r.Settings.FeatureGates = &gates
			}
			if cmd.Flags().Changed("estimators") {
				r.Process.Estimators = &estimators
			}
			var err error
			if r.Root, err = f.root(); err != nil {
				return err
			}
			r.Name = f.name
			return up(cmd.Context(), e, r, f.given())
		},
	}
	f.bind(cmd.Flags())
	bindUp(cmd.Flags(), &r)
	cmd.Flags().StringVar(&gates, "feature-gates", "", "Feature gates of the roles and agents, as NAME=true,NAME=false; default as before. They replace those of before.")
	cmd.Flags().BoolVar(&estimators, "estimators", false, "Give each member an estimator, which the scheduler calls for the replicas that really fit; default as before.")
	return cmd
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

// given are the flags that name the federation, as the user has to repeat them.
func (f *flags) given() string {
	var out string
	if f.name != local.DefaultName {
		out += " --name " + f.name
	}
	if f.dir != "" {
		out += " --dir " + f.dir
	}
	return out
}

func up(ctx context.Context, e *env.Env, r local.UpRequest, given string) error {
	ctx, stop := e.Interruptible(ctx)
	defer stop()
	start := e.Now()
	f, err := local.Up(ctx, deps(e, e.ErrOut), r)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(e.ErrOut, "Federation %q is ready after %.1fs.\n", f.Name, e.Now().Sub(start).Seconds())
	_, err = fmt.Fprint(e.Out, next(e.Name, given, contexts(f), ending(e, f, given)))
	return err
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

func contexts(f *local.Federation) string {
	var out string
	if f.Runtime == local.RuntimeKind {
		out = ", host (the cluster that it runs on)"
	}
	switch n := len(f.Members); n {
	case 0:
		return out
	case 1:
		return out + ", " + f.Members[0]
	default:
		return out + ", " + f.Members[0] + " to " + f.Members[n-1]
	}
}

func newDown(e *env.Env) *cobra.Command {
	var f flags
	var purge bool
	var members []string
	cmd := &cobra.Command{
		Use:   "down",
		Short: "Stop a federation",
		Long: e.Long(`
Stop the processes of a federation. Its data is kept for the next start unless --purge is given.

Of a federation of kind clusters nothing is kept: the clusters that "local up" made are removed, and no others.

With --member only these members are taken out: they leave the control plane, which moves what it had placed there,
and their data is removed.`),
		Args: noArguments(e),
		RunE: func(cmd *cobra.Command, _ []string) error {
			root, err := f.root()
			if err != nil {
				return err
			}
			d := deps(e, e.ErrOut)
			if len(members) > 0 {
				return removeMembers(cmd.Context(), e, d, root, f.name, members)
			}
			err = local.Down(cmd.Context(), d, root, f.name, purge)
			if purge && errors.Is(err, local.ErrNoFederation) {
				_, err = fmt.Fprintf(e.Out, "there is no federation %q: nothing to remove\n", f.name)
				return err
			}
			if err != nil {
				return err
			}
			done := "stopped"
			if _, err := local.Load(root, f.name); errors.Is(err, local.ErrNoFederation) {
				done = "stopped and removed"
			}
			_, err = fmt.Fprintf(e.Out, "federation %q %s\n", f.name, done)
			return err
		},
	}
	f.bind(cmd.Flags())
	cmd.Flags().BoolVar(&purge, "purge", false, "Remove the federation with all its data.")
	cmd.Flags().StringSliceVar(&members, "member", nil, "Take out only these members, with their data, with or without --purge.")
	return cmd
}

func removeMembers(ctx context.Context, e *env.Env, d local.Deps, root, name string, members []string) error {
	if err := local.RemoveMembers(ctx, d, root, name, members); err != nil {
		return err
	}
	_, err := fmt.Fprintf(e.Out, "members %s of federation %q are removed\n", strings.Join(members, ", "), name)
	return err
}

// noArguments refuses arguments: a federation is named by a flag.
func noArguments(e *env.Env) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		command := e.Name + " local " + cmd.Name()
		if len(args) == 1 && local.ValidateName(args[0]) == nil {
			return fmt.Errorf("%q takes no arguments; to name a federation use %q", command, command+" --name "+args[0])
		}
		return fmt.Errorf("%q takes no arguments, got %q", command, args)
	}
}

func newStatus(e *env.Env) *cobra.Command {
	var f flags
	var output env.Output
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the processes or clusters of a federation",
		Long:  e.Long("Show the processes or clusters of a federation. The exit code is 1 if any of them does not run."),
		Args:  noArguments(e),
		RunE: func(cmd *cobra.Command, _ []string) error {
			root, err := f.root()
			if err != nil {
				return err
			}
			processes, err := local.Status(cmd.Context(), deps(e, e.ErrOut), root, f.name)
			if output != "" {
				if perr := e.PrintDocument(output, statusDocuments(processes)); perr != nil {
					return perr
				}
			} else if perr := printStatus(e.Out, processes, e.Now()); perr != nil {
				return perr
			}
			return errors.Join(err, stopped(processes, e.Name+" local up"+f.given()))
		},
	}
	f.bind(cmd.Flags())
	env.AddOutputFlag(cmd, &output)
	return cmd
}

func printStatus(out io.Writer, processes []local.ProcessStatus, now time.Time) error {
	if len(processes) == 0 {
		return nil
	}
	w := printers.GetNewTabWriter(out)
	_, _ = fmt.Fprintln(w, "NAME\tSTATE\tREADY\tPID\tAGE\tSERVER\tLOG")
	for _, p := range processes {
		pid, age := "-", "-"
		if p.PID != 0 {
			pid = strconv.Itoa(p.PID)
		}
		if !p.Since.IsZero() {
			age = duration.HumanDuration(now.Sub(p.Since))
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", p.Name, p.State, dash(p.Ready), pid, age, dash(p.Server), dash(p.Log))
	}
	return w.Flush()
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func newList(e *env.Env) *cobra.Command {
	var dir flags
	var output env.Output
	cmd := &cobra.Command{
		Use:   "list",
		Short: "Show the federations on this machine",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			root, err := dir.root()
			if err != nil {
				return err
			}
			names, err := local.List(root)
			if err != nil {
				return err
			}
			if output != "" {
				documents, err := listDocuments(cmd.Context(), e, root, names)
				if err != nil {
					return err
				}
				return e.PrintDocument(output, documents)
			}
			if len(names) == 0 {
				_, err = fmt.Fprintf(e.ErrOut, "No federations in %s; start one with \"%s local up\"\n", root, e.Name)
				return err
			}
			return printList(cmd.Context(), e, root, names)
		},
	}
	cmd.Flags().StringVar(&dir.dir, "dir", "", "Directory that federations are kept in; default karmada/local in $XDG_STATE_HOME (~/.local/state).")
	env.AddOutputFlag(cmd, &output)
	return cmd
}

func printList(ctx context.Context, e *env.Env, root string, names []string) error {
	w := printers.GetNewTabWriter(e.Out)
	_, _ = fmt.Fprintln(w, "NAME\tRUNTIME\tMEMBERS\tRUNNING\tAGE\tKUBECONFIG")
	d := deps(e, e.ErrOut)
	for _, name := range names {
		f, err := local.Load(root, name)
		if err != nil {
			return err
		}
		running, all := local.Running(ctx, d, f)
		_, _ = fmt.Fprintf(w, "%s\t%s\t%d\t%d/%d\t%s\t%s\n", name, f.Runtime, len(f.Members), running, all,
			duration.HumanDuration(e.Now().Sub(f.Created)), f.Dir().Kubeconfig())
	}
	return w.Flush()
}

func newKubeconfig(e *env.Env) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "kubeconfig",
		Short: "Print the path of a federation's kubeconfig",
		Long:  e.Long("Print the path of the kubeconfig of a federation. Its contexts are karmada-apiserver, which is the current one, and one for each member."),
		Args:  noArguments(e),
		RunE: func(*cobra.Command, []string) error {
			root, err := f.root()
			if err != nil {
				return err
			}
			path, err := local.KubeconfigPath(root, f.name)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(e.Out, path)
			return err
		},
	}
	f.bind(cmd.Flags())
	return cmd
}
