// Package capacity is the command that shows what member clusters have left.
package capacity

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/dynamic"
	"k8s.io/kubectl/pkg/util/completion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/cli/env"
	"github.com/karmada-toolkit/karmada/pkg/operate/capacity"
)

const (
	short = "Show what member clusters have left, and how much of a workload fits"
	long  = `
		Show what member clusters have left: processors, memory and pods, without the
		requests of the pods that run there or wait for a node.

		With --for, show how many more replicas of a workload fit into each cluster, which
		resource keeps it from being more, and who reports that: the summary in the status of
		the Cluster, the models of its nodes there, its estimator, or a ResourceQuota of the
		namespace that the control plane propagates. In models each node counts as the minimum of its
		grade: SOURCE then shows what the sum of free resources allows, if that is more. The scheduler takes the least of the
		former; a quota refuses pods that were scheduled. Affinity, taints and spread of the placement are not considered; "describe" of a
		binding has the decision.

		Estimators are called with --estimators. Those that "addons enable" installs run in the host
		cluster: with --host-kubeconfig or --host-context they are reached through its API server, else
		this machine must reach them. The certificates for that are those that init or local up
		keeps beside the kubeconfig of the control plane, unless flags name others. READY shows which clusters report now: taints keep new replicas away from those that are not Ready.

		With --output the document has a list "clusters": name, ready, readyNodes, nodes and free, or
		with --for cluster, ready, replicas, boundBy, source and note (why models allow less than the free sum) beside the "workload". What a cluster has not reported is
		left out.`
	examples = `
		# Show what all clusters have left
		{{.Name}} capacity

		# How many more replicas of a Deployment fit into each cluster
		{{.Name}} capacity --for deployment/nginx

		# How many replicas of a manifest would fit into two clusters
		{{.Name}} capacity --for nginx.yaml -C member1,member2

		# The same with the estimators, which run in the host cluster
		{{.Name}} capacity --for nginx.yaml --estimators --host-kubeconfig ~/.kube/config

		# For a script
		{{.Name}} capacity --for nginx.yaml -o json`
)

type flags struct {
	clusters   []string
	workload   string
	estimators bool
	host       env.Kubeconfig
	options    capacity.EstimatorOptions
	output     env.Output
}

// NewCommand returns the command.
func NewCommand(e *env.Env) *cobra.Command {
	access := e.NewAccess()
	f := flags{host: env.Kubeconfig{Flag: "--host-kubeconfig"}, options: capacity.NewEstimatorOptions()}
	cmd := e.Command("capacity [--for FILE|TYPE/NAME] [-C CLUSTERS]", short, long, examples)
	cmd.Args = env.NoArguments
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), e, access, f) }
	access.Flags.Add(cmd).AddNamespace(cmd)
	cmd.Flags().StringSliceVarP(&f.clusters, "cluster", "C", nil, "Names of the member clusters; default all.")
	cmd.Flags().StringVar(&f.workload, "for", "", "Workload that is to fit: a file with its manifest, - for standard input, or TYPE/NAME of a template.")
	cmd.Flags().BoolVar(&f.estimators, "estimators", false, "Call the estimators of the clusters as well.")
	cmd.Flags().StringVar(&f.host.Path, "host-kubeconfig", "", "Path to the kubeconfig of the host cluster, through whose API server --estimators reaches the estimators; default that of --kubeconfig if --host-context is given.")
	cmd.Flags().StringVar(&f.host.Context, "host-context", "", "Context of the kubeconfig of the host cluster; default the current one.")
	f.options.AddFlags(cmd.Flags())
	env.AddOutputFlag(cmd, &f.output)
	if err := cmd.RegisterFlagCompletionFunc("cluster", access.Complete.Clusters); err != nil {
		panic(err) // a flag that does not exist
	}
	if err := cmd.RegisterFlagCompletionFunc("for", completeWorkload(access)); err != nil {
		panic(err)
	}
	return cmd
}

// completeWorkload completes files, and TYPE/NAME of templates.
func completeWorkload(access *env.Access) cobra.CompletionFunc {
	types := []string{"deployments", "statefulsets", "jobs", "replicasets"}
	complete := completion.SpecifiedResourceTypeAndNameCompletionFunc(access.Factory(), types)
	return func(cmd *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if strings.Contains(prefix, "/") {
			found, _ := complete(cmd, nil, prefix)
			return found, cobra.ShellCompDirectiveDefault
		}
		var found []string
		for _, t := range types {
			if strings.HasPrefix(t, prefix) {
				found = append(found, t+"/")
			}
		}
		return found, cobra.ShellCompDirectiveNoSpace
	}
}

func run(ctx context.Context, e *env.Env, access *env.Access, f flags) error {
	if f.estimators && f.workload == "" {
		return errors.New("--estimators needs --for: estimators report how much of a workload fits")
	}
	if !f.estimators && f.host.Path+f.host.Context != "" {
		return errors.New("--host-kubeconfig and --host-context need --estimators: nothing else is read from the host cluster")
	}
	c, err := access.ControlPlane.ReadClient(ctx)
	if err != nil {
		return err
	}
	clusters, err := readClusters(ctx, access, c, f.clusters)
	if err != nil {
		return err
	}
	defer e.Waiting(func() string { return "the control plane to answer" })()
	if len(clusters) == 0 {
		e.Say("No cluster has joined the control plane.")
		if f.output == "" {
			return nil
		}
	}
	if f.workload == "" {
		if f.output != "" {
			return e.PrintDocument(f.output, newFreeDocument(clusters))
		}
		return printFree(e.Escaped().Out, clusters)
	}
	reader, err := newReader(access)
	if err != nil {
		return err
	}
	w, err := readWorkload(ctx, e, access, reader, f.workload)
	if err != nil {
		return err
	}
	fits, err := readFits(ctx, e, access, c, reader, f, w, clusters)
	if err != nil {
		return err
	}
	if f.output != "" {
		return e.PrintDocument(f.output, newFitsDocument(w, fits))
	}
	e.Say("%s: %s", describe(w), w.Requests())
	return printFits(e.Escaped().Out, w, fits)
}

// readFits returns how much of a workload fits into clusters by their status, their estimators and the quotas.
func readFits(ctx context.Context, e *env.Env, access *env.Access, c client.Client, reader *capacity.Reader, f flags,
	w *capacity.Workload, clusters []clusterv1alpha1.Cluster,
) ([]capacity.Fit, error) {
	var estimates capacity.Estimates
	if f.estimators {
		var err error
		if estimates, err = callEstimators(ctx, e, access, c, f, w, clusters); err != nil {
			return nil, err
		}
	}
	fits := capacity.Fits(w, clusters, estimates)
	quotas, err := reader.Quotas(ctx, w.Namespace)
	if apierrors.IsForbidden(err) {
		e.SayLine("Quotas are not counted: " + err.Error())
	} else if err != nil {
		return nil, err
	}
	quotas.Limit(w, fits)
	return fits, nil
}

// callEstimators returns the answers of the estimators, and prints which are missing.
func callEstimators(ctx context.Context, e *env.Env, access *env.Access, c client.Client, f flags,
	w *capacity.Workload, clusters []clusterv1alpha1.Cluster,
) (capacity.Estimates, error) {
	options := capacity.WithCertificates(f.options, access.ControlPlane.KubeconfigPath())
	if f.host.Path+f.host.Context != "" {
		f.host.Path = cmp.Or(f.host.Path, access.ControlPlane.KubeconfigFlag())
		config, err := e.Load(f.host)
		if err != nil {
			return nil, err
		}
		host, err := capacity.NewHost(config)
		if err != nil {
			return nil, err
		}
		options.Dial = host.Dial
	}
	estimates, err := capacity.CallEstimators(ctx, options, w, clusters, func(ctx context.Context, namespace, name string) (*corev1.Service, error) {
		service := &corev1.Service{}
		return service, c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, service)
	})
	if err != nil {
		return nil, err
	}
	for _, problem := range estimates.Problems(clusters, options) {
		e.SayLine(problem)
	}
	return estimates, nil
}

// describe names a workload and its unit.
func describe(w *capacity.Workload) string {
	unit := "replica"
	if len(w.Components) > 0 {
		unit = "set of components"
	}
	name := strings.TrimPrefix(w.Namespace+"/"+w.Name, "/")
	return fmt.Sprintf("%s %s has %d replicas; one %s requests", w.Kind, name, w.Replicas, unit)
}

// readClusters returns the named clusters, or all, sorted by name.
func readClusters(ctx context.Context, access *env.Access, c client.Client, named []string) ([]clusterv1alpha1.Cluster, error) {
	known, err := access.ControlPlane.KnownClusters(ctx, named)
	if err != nil {
		return nil, err
	}
	list := &clusterv1alpha1.ClusterList{}
	if err := c.List(ctx, list); err != nil {
		return nil, fmt.Errorf("listing the clusters: %w", err)
	}
	out := slices.DeleteFunc(list.Items, func(c clusterv1alpha1.Cluster) bool { return !slices.Contains(known, c.Name) })
	slices.SortFunc(out, func(a, b clusterv1alpha1.Cluster) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// readWorkload returns the workload of a file, or of a template of the control plane.
func readWorkload(ctx context.Context, e *env.Env, access *env.Access, reader *capacity.Reader, what string) (*capacity.Workload, error) {
	namespace, _, err := access.Namespace()
	if err != nil {
		return nil, err
	}
	file, path := isFile(what), what
	if file || what == "-" {
		if path, err = e.Manifest(ctx, what, false); err != nil {
			return nil, err
		}
	}
	builder := resource.NewBuilder(access).Unstructured().NamespaceParam(namespace).DefaultNamespace()
	switch {
	case what == "-":
		builder = builder.Stream(e.In, "standard input")
	case file:
		builder = builder.FilenameParam(false, &resource.FilenameOptions{Filenames: []string{path}})
	case strings.Count(what, "/") != 1:
		return nil, fmt.Errorf("--for %q is neither a file nor TYPE/NAME, such as deployment/nginx", what)
	default:
		builder = builder.ResourceTypeOrNameArgs(false, what)
	}
	infos, err := builder.Flatten().Do().Infos()
	if err != nil {
		return nil, err
	}
	if len(infos) != 1 {
		return nil, fmt.Errorf("--for %q has %d objects: give one workload", what, len(infos))
	}
	object, ok := infos[0].Object.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("--for %q: unexpected %T", what, infos[0].Object)
	}
	if file {
		return reader.Manifest(ctx, object)
	}
	return reader.Template(ctx, object)
}

func newReader(access *env.Access) (*capacity.Reader, error) {
	cfg, err := access.ControlPlane.RESTConfig()
	if err != nil {
		return nil, err
	}
	dyn, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("connecting to the control plane: %w", err)
	}
	return &capacity.Reader{ControlPlane: dyn}, nil
}

// isFile reports whether --for names a file, or standard input.
func isFile(what string) bool {
	if what == "-" || strings.HasSuffix(what, ".yaml") || strings.HasSuffix(what, ".yml") || strings.HasSuffix(what, ".json") {
		return true
	}
	info, err := os.Stat(what)
	return err == nil && !info.IsDir()
}

// printFree prints what clusters have left.
func printFree(out io.Writer, clusters []clusterv1alpha1.Cluster) error {
	w := printers.GetNewTabWriter(out)
	_, _ = fmt.Fprintln(w, "CLUSTER\tREADY\tNODES\tFREE CPU\tFREE MEMORY\tFREE PODS")
	for i := range clusters {
		c := &clusters[i]
		nodes := "<unknown>"
		if s := c.Status.NodeSummary; s != nil {
			nodes = fmt.Sprintf("%d/%d", s.ReadyNum, s.TotalNum)
		}
		free := capacity.FreeOf(c)
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", c.Name, c.ReadyStatus(), nodes, free.CPU, free.Memory, free.Pods)
	}
	return w.Flush()
}

// printFits prints how much of a workload fits into clusters.
func printFits(out io.Writer, workload *capacity.Workload, fits []capacity.Fit) error {
	w := printers.GetNewTabWriter(out)
	unit := "REPLICAS"
	if len(workload.Components) > 0 {
		unit = "SETS"
	}
	_, _ = fmt.Fprintf(w, "CLUSTER\tREADY\t%s\tBOUND BY\tSOURCE\n", unit)
	for _, f := range fits {
		count := fmt.Sprint(f.Replicas)
		if !f.Known {
			count = "<unknown>"
		}
		source := orDash(f.Source)
		if note := f.Note(); note != "" {
			source += " (" + note + ")"
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", f.Cluster, orDash(f.Ready), count, orDash(f.Bound), source)
	}
	return w.Flush()
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
