package top

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/client-go/rest"
	"k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/internal/usage"
	"github.com/karmada-toolkit/karmada/pkg/cli/env"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
)

const (
	podExamples = `
		# Show the pods of all members in the default namespace
		{{.Name}} top pod

		# Show the pods of two members in all namespaces, those that use most CPU first
		{{.Name}} top pod -A -C member1,member2 --sort-by=cpu

		# Show the containers of a pod
		{{.Name}} top pod POD_NAME --containers

		# Show the pods with a label, and their total
		{{.Name}} top pod -l app=nginx --sum`
	// metricsDelay is the age from which the usage of a pod is expected.
	metricsDelay = 2 * time.Minute
)

// podRequest is the command line.
type podRequest struct {
	request
	namespace     string
	allNamespaces bool
	fields        string
	containers    bool
	sum           bool
}

// memberPods are the pods of a member: their usage, or, if there is none, the pods without.
type memberPods struct {
	cluster string
	usage   []v1beta1.PodMetrics
	without []metav1.PartialObjectMetadata
}

func newPodCommand(e *env.Env) *cobra.Command {
	access := e.NewAccess()
	r := &podRequest{}
	cmd := e.Command("pod [NAME | -l label]", "Display resource (CPU/memory) usage of pods of member clusters", long, podExamples)
	cmd.Aliases = []string{"pods", "po"}
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if err := r.complete(args, "only one of NAME or selector can be provided"); err != nil {
			return err
		}
		if r.namespace, _, err = access.Namespace(); err != nil {
			return err
		}
		if r.allNamespaces && r.name != "" {
			return errors.New("a pod cannot be named across all namespaces; leave out --all-namespaces or the name")
		}
		ctx, stop := e.Interruptible(cmd.Context())
		defer stop()
		return r.run(ctx, e, access)
	}
	r.addFlags(cmd, access, "C")
	access.Flags.AddNamespace(cmd)
	fs := cmd.Flags()
	fs.BoolVarP(&r.allNamespaces, "all-namespaces", "A", false, "Show the pods of all namespaces.")
	fs.StringVar(&r.fields, "field-selector", "", "Selector (field query) to filter on, supports '=', '==', and '!=' (e.g. --field-selector metadata.name=a).")
	fs.BoolVar(&r.containers, "containers", false, "Show the usage of each container.")
	fs.BoolVar(&r.sum, "sum", false, "Show the sum of the usage.")
	return cmd
}

func (r *podRequest) run(ctx context.Context, e *env.Env, access *env.Access) error {
	members, failure := each(ctx, e, access, &r.request, r.read)
	pods, total := r.sorted(members)
	if r.output != "" {
		return cmp.Or(e.PrintDocument(r.output, newPodsDocument(pods)), failure)
	}
	var rows [][]string
	for _, p := range pods {
		rows = append(rows, r.rowsOf(p)...)
	}
	if len(rows) > 0 {
		if r.sum {
			rows = append(rows, r.footer("________", "________"), r.footer(cpuText(total), memoryText(total)))
		}
		if err := table(e, r.header(), r.noHeaders, rows); err != nil {
			return err
		}
		return failure
	}
	if failure != nil {
		return failure
	}
	return r.nothing(e, members)
}

// read returns the pods of a member.
func (r *podRequest) read(ctx context.Context, c rest.Interface, cluster string) (memberPods, error) {
	q := usage.Query{Namespace: r.namespace, Name: r.name, Labels: r.selector, Fields: r.fields, TooLarge: access.IsLimit}
	if r.allNamespaces {
		q.Namespace = ""
	}
	out := memberPods{cluster: cluster}
	var err error
	if out.usage, err = usage.Pods(ctx, c, q); err != nil || len(out.usage) > 0 {
		return out, err
	}
	req := c.Get().AbsPath("/api/v1").NamespaceIfScoped(q.Namespace, q.Namespace != "").Resource("pods").
		SetHeader("Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json").Param("limit", "500")
	if q.Labels != "" {
		req = req.Param("labelSelector", q.Labels)
	}
	if q.Fields != "" {
		req = req.Param("fieldSelector", q.Fields)
	}
	data, err := kube.Body(ctx, req)
	if err != nil {
		return out, err
	}
	list := metav1.PartialObjectMetadataList{}
	if err := json.Unmarshal(data, &list); err != nil {
		return out, fmt.Errorf("reading pods: %w", err)
	}
	out.without = list.Items
	return out, nil
}

// nothing returns why no usage is shown.
func (r *podRequest) nothing(e *env.Env, members []memberPods) error {
	young := false
	for _, m := range members {
		for i := range m.without {
			pod := &m.without[i]
			if age := e.Now().Sub(pod.CreationTimestamp.Time); age > metricsDelay {
				return fmt.Errorf("cluster(%s): Metrics not available for pod %s/%s, age: %s", m.cluster, pod.Namespace, pod.Name, duration.HumanDuration(age))
			}
			young = true
		}
	}
	switch {
	case young:
		return errNotYet
	case r.allNamespaces:
		e.SayLine("No resources found")
	default:
		e.SayLine(fmt.Sprintf("No resources found in %s namespace.", r.namespace))
	}
	return nil
}

func (r *podRequest) header() []string {
	header := []string{"NAME", "CLUSTER", "CPU(cores)", "MEMORY(bytes)"}
	if r.containers {
		header = slices.Insert(header, 0, "POD")
	}
	if r.allNamespaces {
		header = slices.Insert(header, 0, "NAMESPACE")
	}
	return header
}

// footer returns a row with the last two columns.
func (r *podRequest) footer(cpu, memory string) []string {
	row := make([]string, len(r.header()))
	row[len(row)-2], row[len(row)-1] = cpu, memory
	return row
}

// pod is the usage of a pod in a cluster.
type pod struct {
	*v1beta1.PodMetrics
	cluster string
	sum     corev1.ResourceList
}

// sorted returns the pods in order, and their total.
func (r *podRequest) sorted(members []memberPods) ([]pod, corev1.ResourceList) {
	var pods []pod
	total := corev1.ResourceList{}
	for _, m := range members {
		for i := range m.usage {
			p := pod{PodMetrics: &m.usage[i], cluster: m.cluster, sum: corev1.ResourceList{}}
			for _, c := range p.Containers {
				add(p.sum, c.Usage)
			}
			add(total, p.sum)
			pods = append(pods, p)
		}
	}
	slices.SortStableFunc(pods, func(a, b pod) int {
		return cmp.Or(compareUsage(r.sortBy, a.sum, b.sum), cmp.Compare(a.cluster, b.cluster),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return pods, total
}

func (r *podRequest) rowsOf(p pod) [][]string {
	var prefix []string
	if r.allNamespaces {
		prefix = append(prefix, p.Namespace)
	}
	if !r.containers {
		return [][]string{append(prefix, p.Name, p.cluster, cpuText(p.sum), memoryText(p.sum))}
	}
	prefix = append(prefix, p.Name)
	var rows [][]string
	for _, c := range p.Containers {
		rows = append(rows, append(slices.Clone(prefix), c.Name, p.cluster, cpuText(c.Usage), memoryText(c.Usage)))
	}
	return rows
}

// add adds quantities to a sum.
func add(sum, more corev1.ResourceList) {
	for name, quantity := range more {
		total := sum[name]
		total.Add(quantity)
		sum[name] = total
	}
}
