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
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/kubectl/pkg/util/completion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/kube"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/cli/env"
	"github.com/karmada-toolkit/karmada/pkg/domain/manifest"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
	"github.com/karmada-toolkit/karmada/pkg/insight/snapshot"
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

		Of a propagation policy it says which objects it has and which others have, of a Cluster what it has,
		what waits for it and why it is not Ready, of an object of a member, such as a pod, what it belongs to,
		which template it comes from, and who wrote it.

		Clusters in which the object is healthy are not asked. All others together have --deadline.

		With --output the document has schemaVersion (v1), object, cause (a word, such as NoPolicy,
		NoClusterFit, Unschedulable, QuotaExceeded, ApplyFailed, ClusterNotReady, Unhealthy or Working),
		answer, stages (name, text, details with of and text), next and gaps.`
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

	// watchInterval is the time between two readings of --watch.
	watchInterval = 2 * time.Second
	// width is the number of columns of lines.
	width = 80
)

type options struct {
	output   env.Output
	cluster  string
	watch    bool
	deadline time.Duration
}

// NewCommand returns the command.
func NewCommand(e *env.Env) *cobra.Command {
	access := e.NewAccess()
	var o options
	cmd := e.Command("why TYPE NAME [-n NAMESPACE] [-C CLUSTER]", short, long, examples)
	cmd.RunE = e.Run(func(ctx context.Context, args []string) error { return run(ctx, e, access, o, args) })
	access.Flags.Add(cmd).AddNamespace(cmd)
	cmd.ValidArgsFunction = completion.ResourceTypeAndNameCompletionFunc(access.Factory())
	env.AddOutputFlag(cmd, &o.output)
	cmd.Flags().StringVarP(&o.cluster, "cluster", "C", "", "Name of the member cluster whose object is explained.")
	_ = cmd.RegisterFlagCompletionFunc("cluster", access.Complete.Clusters)
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "Print again whenever the answer changes, until interrupted.")
	cmd.Flags().DurationVar(&o.deadline, "deadline", 2*time.Second, "How long clusters may take to answer, all together.")
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
	before := ""
	for {
		account, err := q.explain(ctx)
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

// question is what a command asks.
type question struct {
	access  *env.Access
	program string
	cluster string
	args    []string
	reader  *snapshot.Reader
}

func newQuestion(ctx context.Context, e *env.Env, access *env.Access, o options, args []string) (*question, error) {
	if _, err := access.ControlPlane.ReadClient(ctx); err != nil {
		return nil, err
	}
	config, err := access.ControlPlane.RESTConfig()
	if err != nil {
		return nil, err
	}
	if o.cluster != "" {
		if _, err := access.ControlPlane.Cluster(ctx, o.cluster); err != nil {
			return nil, err
		}
	}
	mapper, err := access.ToRESTMapper()
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.QPS = -1
	c, err := client.New(config, client.Options{Scheme: kube.NewScheme(), Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("connecting to the control plane: %w", err)
	}
	q := &question{access: access, program: e.Name, cluster: o.cluster, args: args}
	q.reader = &snapshot.Reader{ControlPlane: c, Deadline: o.deadline, Now: e.Now, Member: q.member}
	return q, nil
}

// member returns a client for a member.
func (q *question) member(cluster string) (dynamic.Interface, error) {
	config, err := q.access.MemberAccess(cluster).ToRESTConfig()
	if err != nil {
		return nil, err
	}
	return dynamic.NewForConfig(config)
}

// explain reads the object and computes the account.
func (q *question) explain(ctx context.Context) (*why.Account, error) {
	if q.cluster != "" {
		return q.explainInMember(ctx)
	}
	object, mapping, err := read(q.access, q.args)
	if err != nil {
		return nil, err
	}
	switch object.GroupVersionKind().GroupKind() {
	case clusterv1alpha1.GroupVersion.WithKind("Cluster").GroupKind():
		cluster := &clusterv1alpha1.Cluster{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, cluster); err != nil {
			return nil, fmt.Errorf("decoding cluster %s: %w", object.GetName(), err)
		}
		facts, err := q.reader.Cluster(ctx, cluster)
		if err != nil {
			return nil, err
		}
		return why.Cluster(facts, q.program), nil
	case policyv1alpha1.GroupVersion.WithKind("PropagationPolicy").GroupKind(), policyv1alpha1.GroupVersion.WithKind("ClusterPropagationPolicy").GroupKind():
		of := scope.NamespacedPolicy()
		if object.GetNamespace() == "" {
			of = scope.ClusterPolicy()
		}
		p := of.New()
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, p); err != nil {
			return nil, fmt.Errorf("decoding policy %s: %w", object.GetName(), err)
		}
		facts, err := q.reader.Policy(ctx, p)
		if err != nil {
			return nil, err
		}
		return why.Policy(facts, q.program), nil
	}
	return q.template(ctx, object, mapping)
}

func (q *question) template(ctx context.Context, object *unstructured.Unstructured, mapping *meta.RESTMapping) (*why.Account, error) {
	facts, err := q.reader.Template(ctx, object, mapping)
	if err != nil {
		return nil, err
	}
	return why.Template(facts, q.program), nil
}

// maxOwners is the number of owners of an object that are followed.
const maxOwners = 5

// explainInMember explains an object of a member: from what it belongs to, back to the template of the control plane.
func (q *question) explainInMember(ctx context.Context) (*why.Account, error) {
	in := q.access.MemberAccess(q.cluster)
	object, _, err := read(in, q.args)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", q.cluster, err)
	}
	problem := ""
	if pod := (&corev1.Pod{}); object.GetKind() == "Pod" && runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, pod) == nil {
		problem = why.PodProblem(pod)
	}
	var owned []*unstructured.Unstructured
	root := object
	for range maxOwners {
		owner := metav1.GetControllerOfNoCopy(root)
		if owner == nil {
			break
		}
		next, _, err := readNamed(in, object.GetNamespace(), owner)
		if err != nil {
			break // what cannot be read is not followed
		}
		owned, root = append(owned, next), next
	}
	var template *why.Account
	if manifest.Owned(root) {
		found, mapping, err := readNamed(q.access, root.GetNamespace(), &metav1.OwnerReference{APIVersion: root.GetAPIVersion(), Kind: root.GetKind(), Name: root.GetName()})
		if err != nil {
			return nil, fmt.Errorf("reading the template of %s %s: %w", root.GetKind(), root.GetName(), err)
		}
		if template, err = q.template(ctx, found, mapping); err != nil {
			return nil, err
		}
	}
	return why.InMember(q.cluster, object, owned, template, problem, q.program), nil
}

// readNamed reads an object by its kind.
func readNamed(access *env.Access, namespace string, o *metav1.OwnerReference) (*unstructured.Unstructured, *meta.RESTMapping, error) {
	gv, err := schema.ParseGroupVersion(o.APIVersion)
	if err != nil {
		return nil, nil, err
	}
	arg := o.Kind + "." + gv.Version
	if gv.Group != "" {
		arg += "." + gv.Group
	}
	return readIn(access, namespace, []string{arg, o.Name})
}

// read returns the object that the arguments name.
func read(access *env.Access, args []string) (*unstructured.Unstructured, *meta.RESTMapping, error) {
	namespace, _, err := access.Namespace()
	if err != nil {
		return nil, nil, err
	}
	return readIn(access, namespace, args)
}

func readIn(access *env.Access, namespace string, args []string) (*unstructured.Unstructured, *meta.RESTMapping, error) {
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
