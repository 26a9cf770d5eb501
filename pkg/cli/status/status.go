// Package status is the command that reports whether a federation is healthy, and its worst problems.
package status

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/pkg/cli/env"
	"github.com/karmada-toolkit/karmada/pkg/insight/snapshot"
	"github.com/karmada-toolkit/karmada/pkg/insight/status"
)

const (
	short = "Show whether the control plane, clusters and workloads are all right"
	long  = `
		Show whether the control plane, the clusters and the workloads are all right.

		Below the numbers are the ten problems that affect most workloads, each with the command that
		shows more. The exit code is 1 if there is a problem, and 0 otherwise. What you may not read, and
		what has not answered within --deadline, is named, and no problem. If you may not list the bindings of
		all namespaces, those of the namespace of --namespace or the kubeconfig are shown.

		A rollout is a problem while its object is Unhealthy. A binding without a decision is a
		problem after 30 seconds. What is suspended is none.

		With --output the document has schemaVersion (v1), healthy, answer, controlPlane, clusters (absent
		if they cannot be read), work, problems (reason, object, text, workloads, next), problemCount and gaps.`
	examples = `
		# Show the state of the federation
		{{.Name}} status

		# Show it again whenever it changes
		{{.Name}} status -w

		# The commands that explain the problems, for a script
		{{.Name}} status -o json | jq -r '.problems[].next'`
)

// NewCommand returns the command.
func NewCommand(e *env.Env) *cobra.Command {
	access := e.NewAccess()
	var o env.Reading
	cmd := e.Command("status", short, long, examples)
	cmd.Args, cmd.ValidArgsFunction = env.NoArguments, cobra.NoFileCompletions
	cmd.RunE = e.Run(func(ctx context.Context, _ []string) error { return run(ctx, e, access, o) })
	access.Flags.Add(cmd).AddNamespace(cmd)
	o.AddFlags(cmd, "How long all answers may take together.")
	return cmd
}

func run(ctx context.Context, e *env.Env, access *env.Access, o env.Reading) error {
	config, err := access.ControlPlane.RESTConfig()
	if err != nil {
		return err
	}
	host := config.Host
	if u, err := url.Parse(host); err == nil && u.Host != "" {
		host = u.Host
	}
	reader, err := newReader(config, e, access, o)
	if err != nil {
		return err
	}
	healthy := false
	err = o.Run(ctx, func() (string, func() error, error) {
		facts, err := reader.Federation(ctx)
		if err != nil {
			return "", nil, err
		}
		if facts.Silent() {
			return "", nil, fmt.Errorf("the server %s did not answer within %s; check that it is the API server of a control plane and not overloaded, or wait longer with --deadline", host, o.Deadline)
		}
		if !facts.Reached() {
			if _, err := access.ControlPlane.OwnClient(ctx); err != nil { // its error has the cause, which takes longer
				return "", nil, err
			}
		}
		report := status.Federation(facts, e.Name)
		healthy = report.Healthy
		return stateOf(report), func() error { return show(e, o, report) }, nil
	})
	if err == nil && !healthy {
		return cmdutil.ErrExit
	}
	return err
}

// newReader returns a reader of the control plane. It makes no requests.
func newReader(config *rest.Config, e *env.Env, access *env.Access, o env.Reading) (*snapshot.Reader, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.WarningHandlerWithContext = -1, rest.NoWarnings{}
	config.WrapTransport = nil // that of the environment first waits for the API of clusters
	c, err := client.New(config, client.Options{Scheme: kube.NewScheme(), Mapper: snapshot.Mapper()})
	if err != nil {
		return nil, fmt.Errorf("connecting to the control plane: %w", err)
	}
	raw, err := snapshot.Raw(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the control plane: %w", err)
	}
	namespace, _, err := access.Namespace()
	if err != nil {
		return nil, err
	}
	return &snapshot.Reader{ControlPlane: c, Namespace: namespace, Deadline: o.Deadline, Now: e.Now, Raw: raw}, nil
}

// stateOf returns what of a report is not a time.
func stateOf(r *status.Report) string {
	c := *r
	c.ControlPlane.Roles = nil
	body, _ := json.Marshal(&c) // it has no types that cannot be encoded
	return string(body)
}

func show(e *env.Env, o env.Reading, report *status.Report) error {
	if o.Output != "" {
		return e.PrintDocument(o.Output, report)
	}
	return print(e.Escaped().Out, report, env.Width(e.Out))
}
