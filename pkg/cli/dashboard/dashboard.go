// Package dashboard is the command that shows the federation in a browser.
package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/karmada-toolkit/karmada/pkg/cli/env"
	"github.com/karmada-toolkit/karmada/pkg/cli/planning"
	"github.com/karmada-toolkit/karmada/pkg/insight/snapshot"
)

const (
	short = "Show the federation in a browser"
	long  = `
		Show the federation in a browser: clusters, workloads and their problems, the way of each workload
		from its template to the pods, and what the loss of a cluster or the objects of a file would change.

		The page is served on 127.0.0.1 until the command is interrupted, reads with your rights, and changes
		nothing. It shows what the commands status, why and plan print, and is updated while it is open.

		The printed address works once, in one browser. If the port is in use, the next free one is taken.`
	examples = `
		# Open the dashboard
		{{.Name}} dashboard

		# Only print its address, for a browser on another machine that forwards the port
		{{.Name}} dashboard --no-open --port 9000`

	// defaultPort is the first port that is tried, and maxPorts the number of those that are.
	defaultPort = 7340
	maxPorts    = 50
)

type options struct {
	port   int
	noOpen bool
	plan   planning.Settings
}

// NewCommand returns the command.
func NewCommand(e *env.Env) *cobra.Command {
	access := e.NewAccess()
	var o options
	cmd := e.Command("dashboard", short, long, examples)
	cmd.Args, cmd.ValidArgsFunction = env.NoArguments, cobra.NoFileCompletions
	cmd.RunE = e.Run(func(ctx context.Context, _ []string) error { return run(ctx, e, access, o) })
	access.Flags.Add(cmd).AddNamespace(cmd)
	cmd.Flags().IntVar(&o.port, "port", defaultPort, "Port on 127.0.0.1. If it is in use, the next free one is taken.")
	cmd.Flags().BoolVar(&o.noOpen, "no-open", false, "Print the address, and open no browser.")
	o.plan.AddFlags(cmd)
	return cmd
}

func run(ctx context.Context, e *env.Env, access *env.Access, o options) error {
	if o.port < 1 || o.port > 65535 {
		return fmt.Errorf("--port %d: a port is a number from 1 to 65535", o.port)
	}
	if err := o.plan.Validate(); err != nil {
		return err
	}
	p, err := newPages(ctx, e, access, o.plan)
	if err != nil {
		return err
	}
	listener, port, err := listen(ctx, o.port)
	if err != nil {
		return err
	}
	if port != o.port {
		e.Say("Port %d is in use; %d is taken.", o.port, port)
	}
	s := newServer(p, port)
	e.Say("The dashboard is at %s", s.url())
	e.Say("This address works in one browser. Ctrl-C ends the dashboard.")
	if !o.noOpen {
		remove, err := open(s.url())
		defer remove()
		if err != nil {
			e.Say("No browser was opened (%v): open the address yourself.", err)
		}
	}
	return s.serve(ctx, listener)
}

// newPages connects to the control plane and reads it.
func newPages(ctx context.Context, e *env.Env, access *env.Access, settings planning.Settings) (*pages, error) {
	templates, err := parse()
	if err != nil {
		return nil, err
	}
	source, err := planning.Connect(ctx, e, access)
	if err != nil {
		return nil, err
	}
	namespace, _, err := access.Namespace()
	if err != nil {
		return nil, err
	}
	config, err := access.ControlPlane.RESTConfig()
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.QPS, config.WarningHandlerWithContext = -1, rest.NoWarnings{}
	raw, err := snapshot.Raw(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the control plane: %w", err)
	}
	reader := &snapshot.Reader{
		ControlPlane: source.Client, Namespace: namespace, Now: e.Now, Raw: raw,
		Member: func(cluster string) (dynamic.Interface, error) {
			config, err := access.MemberAccess(cluster).ToRESTConfig()
			if err != nil {
				return nil, err
			}
			return dynamic.NewForConfig(config)
		},
	}
	defer e.Waiting(func() string { return "the control plane to answer" })()
	l, err := startLive(ctx, config, reader, e.Name)
	if err != nil {
		return nil, err
	}
	return &pages{program: e.Name, namespace: namespace, live: l, reader: reader, source: source, templates: templates, settings: settings}, nil
}

// listen listens on a port of 127.0.0.1, or the next free one.
func listen(ctx context.Context, port int) (net.Listener, int, error) {
	var config net.ListenConfig
	last := min(port+maxPorts-1, 65535)
	for p := port; ; p++ {
		listener, err := config.Listen(ctx, "tcp4", fmt.Sprintf("127.0.0.1:%d", p))
		switch {
		case err == nil:
			return listener, p, nil
		case !errors.Is(err, syscall.EADDRINUSE) && !errors.Is(err, syscall.EACCES):
			return nil, 0, fmt.Errorf("--port %d: %w", p, err)
		case p >= last:
			return nil, 0, fmt.Errorf("--port %d: no port from it to %d is free; name another one", port, last)
		}
	}
}
