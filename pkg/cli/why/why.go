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

	"github.com/mitchellh/go-wordwrap"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/kubectl/pkg/util/completion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/pkg/cli/env"
	"github.com/karmada-toolkit/karmada/pkg/insight/snapshot"
	"github.com/karmada-toolkit/karmada/pkg/insight/why"
)

const (
	short = "Explain where an object is, why not elsewhere, and what to do"
	long  = `
		Explain what became of an object of the control plane.

		The first line is the answer, the last one the next step. Between them is the chain: which policy
		has the object and which others select it, where it was scheduled and why not in other clusters,
		which overrides change it, what was applied, and the state in each cluster. It is computed with the
		decisions of the control plane, from what you may read: what you may not read is named, not guessed.

		Clusters in which the object is healthy are not asked. All others together have --deadline.

		With --output the document has schemaVersion (v1), object, cause (a word, such as NoPolicy,
		NoClusterFit, Unschedulable, QuotaExceeded, ApplyFailed, ClusterNotReady, Unhealthy or Working),
		answer, stages (name, text, details with of and text), next and gaps.`
	examples = `
		# Explain a Deployment
		{{.Name}} why deployment nginx

		# Explain it again whenever the answer changes
		{{.Name}} why deployment/nginx -n shop -w

		# The cause in a word, for a script
		{{.Name}} why deployment nginx -o json | jq -r .cause`

	// watchInterval is the time between two readings of --watch.
	watchInterval = 2 * time.Second
	// width is the number of columns of lines.
	width = 80
)

type options struct {
	output   env.Output
	watch    bool
	deadline time.Duration
}

// NewCommand returns the command.
func NewCommand(e *env.Env) *cobra.Command {
	access := e.NewAccess()
	var o options
	cmd := e.Command("why TYPE NAME [-n NAMESPACE]", short, long, examples)
	cmd.RunE = e.Run(func(ctx context.Context, args []string) error { return run(ctx, e, access, o, args) })
	access.Flags.Add(cmd).AddNamespace(cmd)
	cmd.ValidArgsFunction = completion.ResourceTypeAndNameCompletionFunc(access.Factory())
	env.AddOutputFlag(cmd, &o.output)
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "Print again whenever the answer changes, until interrupted.")
	cmd.Flags().DurationVar(&o.deadline, "deadline", 2*time.Second, "How long clusters may take to answer, all together.")
	return cmd
}

func run(ctx context.Context, e *env.Env, access *env.Access, o options, args []string) error {
	if len(args) == 0 || len(args) == 1 && !strings.Contains(args[0], "/") || len(args) > 2 {
		return errors.New("name one object as TYPE NAME or TYPE/NAME, such as: deployment nginx")
	}
	if _, err := access.ControlPlane.ReadClient(ctx); err != nil {
		return err
	}
	config, err := access.ControlPlane.RESTConfig()
	if err != nil {
		return err
	}
	mapper, err := access.ToRESTMapper()
	if err != nil {
		return err
	}
	config = rest.CopyConfig(config)
	config.QPS = -1
	c, err := client.New(config, client.Options{Scheme: kube.NewScheme(), Mapper: mapper})
	if err != nil {
		return fmt.Errorf("connecting to the control plane: %w", err)
	}
	before := ""
	for {
		account, err := explain(ctx, e, access, c, o, args)
		if err != nil {
			return err
		}
		if summary := fmt.Sprint(account.Cause, account.Answer); summary != before {
			before = summary
			if err := show(e, o, account); err != nil {
				return err
			}
		}
		if !o.watch {
			return nil
		}
		select {
		case <-ctx.Done():
			return env.ErrInterrupted
		case <-time.After(watchInterval):
		}
	}
}

// explain reads the object and computes the account.
func explain(ctx context.Context, e *env.Env, access *env.Access, c client.Reader, o options, args []string) (*why.Account, error) {
	object, mapping, err := read(access, args)
	if err != nil {
		return nil, err
	}
	reader := &snapshot.Reader{ControlPlane: c, Deadline: o.deadline, Now: e.Now, Member: func(cluster string) (dynamic.Interface, error) {
		config, err := access.MemberAccess(cluster).ToRESTConfig()
		if err != nil {
			return nil, err
		}
		return dynamic.NewForConfig(config)
	}}
	facts, err := reader.Template(ctx, object, mapping)
	if err != nil {
		return nil, err
	}
	return why.Template(facts, e.Name), nil
}

// read returns the object of the control plane that the arguments name.
func read(access *env.Access, args []string) (*unstructured.Unstructured, *meta.RESTMapping, error) {
	namespace, _, err := access.Namespace()
	if err != nil {
		return nil, nil, err
	}
	infos, err := resource.NewBuilder(access).Unstructured().NamespaceParam(namespace).DefaultNamespace().ResourceTypeOrNameArgs(false, args...).Flatten().Do().Infos()
	if err != nil {
		return nil, nil, err
	}
	object, ok := infos[0].Object.(*unstructured.Unstructured)
	if !ok || len(infos) != 1 {
		return nil, nil, errors.New("name one object as TYPE NAME or TYPE/NAME")
	}
	return object, infos[0].Mapping, nil
}

func show(e *env.Env, o options, account *why.Account) error {
	if o.output != "" {
		return e.PrintDocument(o.output, account)
	}
	return print(e.Escaped().Out, account)
}

// print prints an account in lines of at most width columns.
func print(out io.Writer, a *why.Account) error {
	var text strings.Builder
	paragraph(&text, "", a.Answer)
	if len(a.Stages) > 0 {
		text.WriteString("\n")
	}
	for _, s := range a.Stages {
		paragraph(&text, fmt.Sprintf("  %-12s", s.Name), s.Text)
		longest := len(slices.MaxFunc(append(s.Details, why.Detail{}), func(a, b why.Detail) int { return len(a.Of) - len(b.Of) }).Of)
		for _, d := range s.Details {
			paragraph(&text, fmt.Sprintf("    %-*s  ", min(longest, width/2), d.Of), d.Text)
		}
	}
	for _, gap := range a.Gaps {
		paragraph(&text, "  not read    ", gap)
	}
	if a.Next != "" {
		paragraph(&text, "  next        ", a.Next)
	}
	_, err := io.WriteString(out, text.String())
	return err
}

// paragraph writes a text after a label. Further lines are below its begin.
func paragraph(out *strings.Builder, label, text string) {
	wrapped := wordwrap.WrapString(text, uint(max(20, width-len(label))))
	out.WriteString(strings.TrimRight(label+strings.ReplaceAll(wrapped, "\n", "\n"+strings.Repeat(" ", len(label))), " ") + "\n")
}
