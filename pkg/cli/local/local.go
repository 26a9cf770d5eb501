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

# Stop a member, look at its log, and start it again
{{.Name}} local stop member2
{{.Name}} local logs member2
{{.Name}} local start member2

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
	cmd := e.Group("local", "Run a federation on this machine", long, examples,
		newUp(e), newDown(e), newStop(e), newStart(e), newRestart(e), newStatus(e), newLogs(e), newList(e), newKubeconfig(e))
	for _, sub := range cmd.Commands() {
		addCompletion(e, sub)
	}
	return cmd
}

func deps(e *env.Env, out io.Writer) local.Deps { return local.NewDeps(e.Name, out, e.Now) }

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
				if perr := env.PrintItems(e, output, statusDocuments(processes)); perr != nil {
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
				return env.PrintItems(e, output, documents)
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
