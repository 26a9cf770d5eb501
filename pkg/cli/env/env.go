// Package env holds the environment of commands: streams, the program's name, the clock,
// and access to the control plane and its members.
package env

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/templates"
	"k8s.io/kubectl/pkg/util/term"

	"github.com/karmada-toolkit/karmada/internal/plaintext"
)

// ErrInterrupted is the error of a command that goes on until the user interrupts it.
var ErrInterrupted = errors.New("interrupted")

// Env is the environment of a command.
type Env struct {
	genericiooptions.IOStreams

	// Root is the name of the program as the shell knows it: karmadactl or
	// kubectl-karmada.
	Root string
	// Name is what the user types: karmadactl or kubectl karmada.
	Name string
	// Now is the clock.
	Now func() time.Time
	// Exit ends the process. kubectl's commands call it on failure.
	Exit func(code int)
	// Interruptible returns a context that ends when the user interrupts the
	// program. Commands that clean up use it; the signal ends the others.
	Interruptible func(context.Context) (context.Context, context.CancelFunc)

	// ErrorPrefix is the prefix of error messages.
	ErrorPrefix ErrorPrefix

	// Limits are how long commands wait for the control plane.
	Limits Limits

	// unreached is why the last request did not reach the control plane.
	unreached atomic.Pointer[ConnectionError]
	// foreign is that the server is no control plane, unserved that it does not serve the API of clusters, unadmitted what to
	// say of a webhook that it cannot call.
	foreign, unserved, unadmitted atomic.Pointer[ConnectionError]

	// buffers are files that commands know by their numbers.
	buffers []*os.File
}

// Limits are how long commands wait for a control plane; 0 is the default of each.
type Limits struct {
	// Answer is for the answer to a request, after which the server is probed.
	Answer time.Duration
	// Alive is for a probe of the API server itself.
	Alive time.Duration
	// Serve is for the API of clusters, in commands that write.
	Serve time.Duration
}

// Unreached returns why the last request did not reach the control plane, or nil.
func (e *Env) Unreached() *ConnectionError { return e.unreached.Load() }

// NoControlPlane returns that the server is no control plane, or nil.
func (e *Env) NoControlPlane() *ConnectionError { return e.foreign.Load() }

// Unserved returns that the control plane does not serve the API of clusters, or nil.
func (e *Env) Unserved() *ConnectionError { return e.unserved.Load() }

// Unadmitted returns what to say if the control plane cannot call its admission webhook, or nil.
func (e *Env) Unadmitted() *ConnectionError { return e.unadmitted.Load() }

// Escaped returns the streams for text of clusters that is read by people: control
// characters are escaped.
func (e *Env) Escaped() genericiooptions.IOStreams {
	return genericiooptions.IOStreams{In: e.In, Out: plaintext.NewWriter(e.Out), ErrOut: plaintext.NewWriter(e.ErrOut)}
}

// TerminalSafe returns the streams for text of clusters that programs may read as
// well: control characters are escaped if the output is a terminal.
func (e *Env) TerminalSafe() genericiooptions.IOStreams {
	streams := e.Escaped()
	if !(term.TTY{Out: e.Out}).IsTerminalOut() {
		streams.Out = e.Out
	}
	return streams
}

// Text fills the program's name into a help text.
func (e *Env) Text(s string) string {
	return strings.NewReplacer("{{.Name}}", e.Name, "{{.Root}}", e.Root).Replace(s)
}

// Long formats the description of a command.
func (e *Env) Long(s string) string { return templates.LongDesc(e.Text(s)) }

// Examples formats the examples of a command.
func (e *Env) Examples(s string) string { return templates.Examples(e.Text(s)) }

// Command returns a command for the caller to complete. Its usage line has no flags but those of use.
func (e *Env) Command(use, short, long, examples string) *cobra.Command {
	return &cobra.Command{Use: use, DisableFlagsInUseLine: true, Short: short, Long: e.Long(long), Example: e.Examples(examples)}
}

// Group returns a command that has subcommands and prints its help.
func (e *Env) Group(use, short, long, examples string, subcommands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Long: e.Long(long), Example: e.Examples(examples), Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(subcommands...)
	return cmd
}

// Run returns a cobra.Command.RunE whose context ends when the user interrupts the program.
func (e *Env) Run(run func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		ctx, stop := e.Interruptible(cmd.Context())
		defer stop()
		return run(ctx, args)
	}
}

// Adapt replaces the name of kubectl in the help of one of its commands.
func (e *Env) Adapt(cmd *cobra.Command) *cobra.Command {
	for _, text := range []*string{&cmd.Short, &cmd.Long, &cmd.Example} {
		*text = strings.NewReplacer("kubectl ", e.Name+" ", "`kubectl`", "`"+e.Name+"`").Replace(*text)
	}
	for _, sub := range cmd.Commands() {
		e.Adapt(sub)
	}
	return cmd
}

// Say writes a formatted line to stderr.
func (e *Env) Say(format string, args ...any) { e.SayLine(fmt.Sprintf(format, args...)) }

// SayLine writes a line to stderr. Control characters are escaped.
func (e *Env) SayLine(line string) {
	_, _ = fmt.Fprintln(e.ErrOut, plaintext.Escape(line)) // an error cannot be reported
}

// waitingDelay is the time after which a command prints what it waits for. It is longer
// than the default timeout of members.
const waitingDelay = 2100 * time.Millisecond

// Waiting prints what the command waits for if that takes more than two seconds. It calls
// what at that time. The returned function ends the wait; nothing is printed after it has returned.
func (e *Env) Waiting(what func() string) (done func()) {
	printed := make(chan struct{})
	timer := time.AfterFunc(waitingDelay, func() {
		defer close(printed)
		if text := what(); text != "" {
			e.Say("waiting for %s", text)
		}
	})
	return sync.OnceFunc(func() {
		if !timer.Stop() {
			<-printed
		}
	})
}

// NoArguments is for commands that take flags only. The error names the command and
// what it was given.
func NoArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%q does not take any arguments, got %q", cmd.CommandPath(), args)
	}
	return nil
}

// ExactlyOne accepts one argument. Its usage errors are none and many.
func ExactlyOne(none, many string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch len(args) {
		case 1:
			return nil
		case 0:
			return cmdutil.UsageErrorf(cmd, "%s", none)
		default:
			return cmdutil.UsageErrorf(cmd, "%s", many)
		}
	}
}

// ErrorPrefix names the member cluster of a command in its error messages: the server
// that such a message mentions may be the member or the control plane on the way to it.
type ErrorPrefix struct{ cluster string }

// SetCluster sets the member cluster that the command works on from now on.
func (p *ErrorPrefix) SetCluster(name string) { p.cluster = name }

// Add adds the prefix to an error message. Usage errors and the exit code of a remote
// process stay as they are.
func (p *ErrorPrefix) Add(message string) string {
	if p.cluster == "" || message == "" || strings.HasPrefix(message, "command terminated") || strings.Contains(message, "\nSee '") {
		return message
	}
	return fmt.Sprintf("cluster(%s): %s", p.cluster, message)
}

// Process returns the environment of this process. root is the program's name, name what
// the user types.
func Process(root, name string) *Env {
	return &Env{
		IOStreams: genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr},
		Root:      root,
		Name:      name,
		Now:       time.Now,
		Exit:      os.Exit,
		Interruptible: func(ctx context.Context) (context.Context, context.CancelFunc) {
			return signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
		},
	}
}

// Arguments returns the arguments of a command line. A plugin called by kubectl's
// name for its completion completes.
func Arguments(argv []string) []string {
	if strings.HasPrefix(filepath.Base(argv[0]), "kubectl_complete-") {
		return append([]string{"__complete"}, argv[1:]...)
	}
	return argv[1:]
}
