// Package top is the command that shows the usage of nodes and pods of all members.
package top

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/karmada-toolkit/karmada/pkg/cli/env"
	"github.com/karmada-toolkit/karmada/pkg/cli/fanout"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
)

const long = `
		Display the usage of CPU and memory of nodes or pods in member clusters.

		All members are requested at once. The usage of those that respond in time is
		shown; the others are named on stderr with the reason, and the exit code is 1.
		The members must serve the metrics API, as metrics-server does.

		With --output the result is one document, in the same order: pods, each with cluster,
		namespace, name, usage and containers (name and usage), or nodes, each with cluster, name,
		usage and available. Usage that is not known is left out.`

// memberTimeout is how long a member may take by default.
const memberTimeout = 2 * time.Second

// The values of --sort-by.
const (
	sortCPU    = "cpu"
	sortMemory = "memory"
)

var errNotYet = errors.New("metrics not available yet")

// NewCommand returns the command.
func NewCommand(e *env.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Display resource (CPU/memory) usage of member clusters",
		Long:  e.Long(long),
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newNodeCommand(e), newPodCommand(e))
	return cmd
}

// request is what the command lines of nodes and pods have in common.
type request struct {
	clusters      []string
	selector      string
	sortBy        string
	noHeaders     bool
	output        env.Output
	memberTimeout time.Duration
	// name is that of one object. Optional.
	name string
	// protobuf is accepted: responses of members are JSON, whose size is known before it is decoded.
	protobuf bool
}

// addFlags adds the flags; shorthand is that of --clusters.
func (r *request) addFlags(cmd *cobra.Command, access *env.Access, shorthand string) {
	access.Flags.Add(cmd)
	fs := cmd.Flags()
	fs.StringSliceVarP(&r.clusters, "clusters", shorthand, []string{}, "Names of the members to show; default all.")
	fs.StringVarP(&r.selector, "selector", "l", "", "Selector (label query) to filter on, supports '=', '==', '!=', 'in' and 'notin' (e.g. -l key1=value1,key2=value2).")
	fs.StringVar(&r.sortBy, "sort-by", "", "Sort by cpu or memory, the largest first.")
	fs.BoolVar(&r.noHeaders, "no-headers", false, "If present, print output without headers.")
	fs.BoolVar(&r.protobuf, "use-protocol-buffers", true, "Accepted for compatibility; members are requested in JSON.")
	fs.DurationVar(&r.memberTimeout, "member-timeout", memberTimeout, "How long each member may take to answer; 0 is for ever.")
	env.AddOutputFlag(cmd, &r.output)
	if err := cmd.RegisterFlagCompletionFunc("clusters", access.Complete.Clusters); err != nil {
		panic(err)
	}
}

// complete reads the arguments. either is the error about a name and a selector.
func (r *request) complete(args []string, either string) error {
	if len(args) > 0 {
		r.name = args[0]
	}
	switch {
	case len(args) > 1:
		return fmt.Errorf("one name at most can be given, got %q; select several by --selector", args)
	case r.name != "" && r.selector != "":
		return errors.New(either)
	case r.sortBy != "" && r.sortBy != sortCPU && r.sortBy != sortMemory:
		return errors.New("--sort-by accepts only cpu or memory")
	case r.memberTimeout < 0:
		return fmt.Errorf("--member-timeout %s must not be negative, e.g. 2s", r.memberTimeout)
	}
	return nil
}

// each reads from the members. It returns what they have and the failures of the others.
func each[T any](ctx context.Context, e *env.Env, plane *env.Access, r *request, read func(ctx context.Context, c rest.Interface, cluster string) (T, error)) ([]T, error) {
	members, err := plane.ControlPlane.KnownClusters(ctx, r.clusters)
	if err != nil {
		return nil, err
	}
	defer e.Waiting(func() string { return "the members to answer" })()
	outcomes := fanout.Each(ctx, fanout.Limits{Deadline: r.memberTimeout}, members, func(ctx context.Context, cluster string) (T, error) {
		client, err := clientFor(plane, cluster)
		if err != nil {
			var none T
			return none, err
		}
		return read(ctx, client, cluster)
	})
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return gather(e, r, outcomes)
}

// clientFor returns a client of a member. Responses of members have limits.
func clientFor(plane *env.Access, cluster string) (rest.Interface, error) {
	config, err := plane.ControlPlane.MemberConfig(cluster)
	if err != nil {
		return nil, err
	}
	config = access.Guard(rest.CopyConfig(config))
	config.GroupVersion = &schema.GroupVersion{}
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	client, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for %s: %w", cluster, err)
	}
	return client, nil
}

// gather separates values and failures. That a member does not have the named object is a failure only if no member has
// it.
func gather[T any](e *env.Env, r *request, outcomes []fanout.Outcome[T]) ([]T, error) {
	var values []T
	var errs, missing []error
	for _, o := range outcomes {
		switch {
		case o.Err == nil:
			values = append(values, o.Value)
		case r.name != "" && isMissing(o.Err):
			missing = append(missing, o.Err)
		default:
			err := fanout.ClusterError(o.Cluster, withoutAPI(o.Err), r.memberTimeout)
			if fanout.NotReported(o.Err) && !slices.Contains(r.clusters, o.Cluster) {
				e.SayLine(err.Error())
				continue
			}
			errs = append(errs, err)
		}
	}
	if len(values) == 0 && len(missing) > 0 {
		errs = append(errs, missing[0])
	}
	return values, utilerrors.NewAggregate(errs)
}

// isMissing reports whether an object does not exist whose type does.
func isMissing(err error) bool {
	var status apierrors.APIStatus
	return apierrors.IsNotFound(err) && !apierrors.IsUnexpectedServerError(err) &&
		errors.As(err, &status) && status.Status().Details != nil && status.Status().Details.Name != ""
}

// withoutAPI replaces the error of a member without metrics API.
func withoutAPI(err error) error {
	if apierrors.IsNotFound(err) && !isMissing(err) {
		return errors.New("metrics API not available: install metrics-server in the cluster")
	}
	return err
}

// cpuText returns thousandths of a core, memoryText MiB.
func cpuText(usage corev1.ResourceList) string { return fmt.Sprintf("%dm", usage.Cpu().MilliValue()) }

func memoryText(usage corev1.ResourceList) string {
	return fmt.Sprintf("%dMi", usage.Memory().Value()>>20)
}

// compareUsage returns the order of --sort-by: the largest first.
func compareUsage(sortBy string, a, b corev1.ResourceList) int {
	switch sortBy {
	case sortCPU:
		return b.Cpu().Cmp(*a.Cpu())
	case sortMemory:
		return b.Memory().Cmp(*a.Memory())
	}
	return 0
}

// table prints rows.
func table(e *env.Env, header []string, noHeaders bool, rows [][]string) error {
	w := printers.GetNewTabWriter(e.Escaped().Out)
	if !noHeaders {
		rows = slices.Insert(rows, 0, header)
	}
	for _, row := range rows {
		if _, err := fmt.Fprintln(w, strings.Join(row, "\t")); err != nil {
			return err
		}
	}
	return w.Flush()
}

// podsDocument is the usage of pods in JSON.
type podsDocument struct {
	Pods []podDocument `json:"pods"`
}

type podDocument struct {
	Cluster    string              `json:"cluster"`
	Namespace  string              `json:"namespace"`
	Name       string              `json:"name"`
	Usage      corev1.ResourceList `json:"usage"`
	Containers []containerDocument `json:"containers"`
}

type containerDocument struct {
	Name  string              `json:"name"`
	Usage corev1.ResourceList `json:"usage"`
}

func newPodsDocument(pods []pod) podsDocument {
	out := podsDocument{Pods: make([]podDocument, 0, len(pods))}
	for _, p := range pods {
		d := podDocument{Cluster: p.cluster, Namespace: p.Namespace, Name: p.Name, Usage: p.sum, Containers: []containerDocument{}}
		for _, c := range p.Containers {
			d.Containers = append(d.Containers, containerDocument{Name: c.Name, Usage: c.Usage})
		}
		out.Pods = append(out.Pods, d)
	}
	return out
}

// nodesDocument is the usage of nodes in JSON.
type nodesDocument struct {
	Nodes []nodeDocument `json:"nodes"`
}

// nodeDocument is a node. Available is what is allocatable, or the capacity with --show-capacity.
type nodeDocument struct {
	Cluster   string              `json:"cluster"`
	Name      string              `json:"name"`
	Usage     corev1.ResourceList `json:"usage,omitempty"`
	Available corev1.ResourceList `json:"available,omitempty"`
}

func newNodesDocument(nodes []node) nodesDocument {
	out := nodesDocument{Nodes: make([]nodeDocument, 0, len(nodes))}
	for _, n := range nodes {
		out.Nodes = append(out.Nodes, nodeDocument{Cluster: n.cluster, Name: n.name, Usage: n.usage, Available: n.available})
	}
	return out
}
