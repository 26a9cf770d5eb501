// Package why is the command that explains what became of an object.
package why

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/kubectl/pkg/util/completion"

	"github.com/karmada-toolkit/karmada/pkg/cli/env"
	"github.com/karmada-toolkit/karmada/pkg/insight/why"
)

const (
	short = "Explain where an object is, why not elsewhere, and what to do"
	long  = `
		Explain what became of an object of the control plane or, with --cluster, of a member.

		The first line is the answer, the last one the next step. Between them is the chain: which policy
		has the object and which others select it, where it was scheduled and why not in other clusters,
		which overrides change it, what was applied, and the state in each cluster. It is computed with the
		decisions of the control plane, from what you may read: what you may not read is named, not guessed.

		For a propagation policy it lists the objects that it selects and the policy that has each, for a
		Cluster the objects that are applied, that wait and why it is not Ready, for an object of a member,
		such as a pod, its owners, its template and its field managers.

		Clusters in which the object is healthy are not asked. All others together have --deadline.

		With --output the document has schemaVersion (v1), object, cause (a word, such as NoPolicy,
		NoClusterFit, Unschedulable, QuotaExceeded, ApplyFailed, ClusterNotReady, Unhealthy or Working),
		answer, stages (name, text, details with of and text), times (what, cluster, at), next and gaps.`
	examples = `
		# Explain a Deployment
		{{.Name}} why deployment nginx

		# Explain a pod of a member
		{{.Name}} why pod nginx-6799fc88d8-2xkfj -C member1

		# Explain a policy and a cluster
		{{.Name}} why propagationpolicy nginx
		{{.Name}} why cluster member1

		# Explain it again whenever the answer changes
		{{.Name}} why deployment/nginx -n shop -w

		# The cause in a word, for a script
		{{.Name}} why deployment nginx -o json | jq -r .cause`
)

type options struct {
	env.Reading
	cluster string
	times   bool
}

// NewCommand returns the command.
func NewCommand(e *env.Env) *cobra.Command {
	access := e.NewAccess()
	var o options
	cmd := e.Command("why TYPE NAME [-n NAMESPACE] [-C CLUSTER]", short, long, examples)
	cmd.RunE = e.Run(func(ctx context.Context, args []string) error { return run(ctx, e, access, o, args) })
	access.Flags.Add(cmd).AddNamespace(cmd)
	cmd.ValidArgsFunction = completion.ResourceTypeAndNameCompletionFunc(access.Factory())
	o.AddFlags(cmd, "How long clusters may take to answer, all together.")
	cmd.Flags().StringVarP(&o.cluster, "cluster", "C", "", "Name of the member cluster whose object is explained.")
	cmd.Flags().BoolVar(&o.times, "times", false, "Also print when the object passed each stage.")
	_ = cmd.RegisterFlagCompletionFunc("cluster", access.Complete.Clusters)
	return cmd
}

func run(ctx context.Context, e *env.Env, access *env.Access, o options, args []string) error {
	if len(args) == 0 || len(args) == 1 && !strings.Contains(args[0], "/") || len(args) > 2 {
		return errors.New("name one object as TYPE NAME or TYPE/NAME, such as: deployment nginx")
	}
	q, err := newQuestion(ctx, e, access, o, args)
	if err != nil {
		return err
	}
	return o.Run(ctx, func() (string, func() error, error) {
		account, err := q.explain(ctx)
		if err != nil {
			return "", nil, err
		}
		return fmt.Sprint(account.Cause, account.Answer), func() error {
			if !o.times && o.Output == "" {
				account.Times = nil
			}
			return show(e, o, account)
		}, nil
	})
}

func show(e *env.Env, o options, account *why.Account) error {
	if o.Output != "" {
		return e.PrintDocument(o.Output, account)
	}
	return print(e.Escaped().Out, account)
}

// print prints an account in lines of at most env.Columns.
func print(out io.Writer, a *why.Account) error {
	var text strings.Builder
	env.Paragraph(&text, "", a.Answer)
	if len(a.Stages) > 0 {
		text.WriteString("\n")
	}
	for _, s := range a.Stages {
		env.Paragraph(&text, fmt.Sprintf("  %-12s", s.Name), s.Text)
		longest := len(slices.MaxFunc(append(s.Details, why.Detail{}), func(a, b why.Detail) int { return len(a.Of) - len(b.Of) }).Of)
		for _, d := range s.Details {
			env.Paragraph(&text, fmt.Sprintf("    %-*s  ", min(longest, env.Columns/2), d.Of), d.Text)
		}
	}
	for i, t := range a.Times {
		label, of := "", ""
		if i == 0 {
			label = "times"
		}
		if t.Cluster != "" {
			of = " in " + t.Cluster
		}
		env.Paragraph(&text, fmt.Sprintf("  %-12s", label), fmt.Sprintf("%s  +%-4s %s%s", t.At.UTC().Format(time.RFC3339), t.At.Sub(a.Times[0].At.Time), t.What, of))
	}
	for _, gap := range a.Gaps {
		env.Paragraph(&text, "  not read    ", gap)
	}
	if a.Next != "" {
		env.Paragraph(&text, "  next        ", a.Next)
	}
	_, err := io.WriteString(out, text.String())
	return err
}
