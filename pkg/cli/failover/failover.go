// Package failover holds the commands on evictions.
package failover

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/karmada-toolkit/karmada/internal/wait"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/cli/env"
	"github.com/karmada-toolkit/karmada/pkg/member"
	"github.com/karmada-toolkit/karmada/pkg/operate/failover"
)

const (
	short = "Show, resume and cancel evictions of workloads from clusters"
	long  = `
		Show, resume and cancel evictions of workloads from clusters.

		Workloads leave clusters with NoExecute taints that they do not tolerate. When many clusters
		fail at once, evictions from clusters that are not Ready are stopped, because then the control
		plane is likely cut off.`
	examples = `
		# Show which workloads leave clusters, or would
		{{.Name}} failover status

		# Evict although many clusters failed at once
		{{.Name}} failover resume

		# End the evictions from cluster member1 that are under way
		{{.Name}} failover cancel member1`

	statusLong = `
		Show which clusters are not Ready or evict, whether evictions are stopped, and which workloads
		leave clusters, or would if evictions were not stopped. Column DELETED shows when a workload is
		deleted from the cluster at the latest; a cluster that is back before gets it back, unless it is
		healthy elsewhere.

		That clusters with NoExecute taints evict has to be turned on in karmada-controller-manager.

		With --output the document has "stopped" (since, failed, total; absent while evictions are not
		stopped), "silentSince" (absent while karmada-controller-manager renews its Lease), "clusters" (name, ready, since, evictions, taints) and "evictions" (namespace, workload,
		cluster, replicas, priority, phase, reason, at, purgeMode, deletedBy, runsNowhereElse).`
	resumeLong = `
		Resume evictions that were stopped because many clusters failed at once.

		Workloads leave the clusters that are not Ready now. These clusters count as failed again only
		after they were Ready. Workloads for which no other Ready cluster of their
		placement remains would run nowhere, so --force is needed.`
	cancelLong = `
		End the evictions from a cluster that are under way.

		Its workloads stay there, with the replicas that they had. Workloads that its taints would
		evict again at once are left.`
)

// NewCommand returns the command.
func NewCommand(e *env.Env) *cobra.Command {
	return e.Group("failover", short, long, examples, newStatus(e), newResume(e), newCancel(e))
}

func newStatus(e *env.Env) *cobra.Command {
	access := e.NewAccess()
	var output env.Output
	cmd := e.Command("status", "Show which workloads leave clusters, or would", statusLong, "")
	cmd.Args = cobra.NoArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := access.ControlPlane.ReadClient(cmd.Context())
		if err != nil {
			return err
		}
		report, err := failover.Read(cmd.Context(), c, e.Now())
		if err != nil {
			return err
		}
		if output != "" {
			return e.PrintDocument(output, newDocument(report))
		}
		return printReport(e.Escaped().Out, e.Name, report, e.Now())
	}
	access.Flags.Add(cmd)
	env.AddOutputFlag(cmd, &output)
	return cmd
}

func newResume(e *env.Env) *cobra.Command {
	access := e.NewAccess()
	var timeout time.Duration
	var force bool
	cmd := e.Command("resume", "Resume evictions that were stopped because many clusters failed at once", resumeLong, "")
	cmd.Args = cobra.NoArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return runResume(cmd.Context(), e, access, force, timeout) }
	access.Flags.Add(cmd)
	cmd.Flags().DurationVar(&timeout, "timeout", 30*time.Second, "How long to wait for the controllers.")
	cmd.Flags().BoolVar(&force, "force", false, "Resume evictions also if workloads would run nowhere.")
	return cmd
}

func newCancel(e *env.Env) *cobra.Command {
	access := e.NewAccess()
	cmd := e.Command("cancel CLUSTER", "End the evictions from a cluster that are under way", cancelLong, "")
	cmd.Args = env.ExactlyOne("cluster name is required", "more than one cluster name is not supported")
	cmd.ValidArgsFunction = access.Complete.ClusterArg
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return runCancel(cmd.Context(), e, access, args[0]) }
	access.Flags.Add(cmd)
	return cmd
}

func runCancel(ctx context.Context, e *env.Env, access *env.Access, cluster string) error {
	c, err := access.ControlPlane.RequiredClient(ctx)
	if err != nil {
		return err
	}
	cancelled, left, err := failover.Cancel(ctx, c, cluster, e.Now())
	for i := range cancelled {
		v := &cancelled[i]
		_, _ = fmt.Fprintf(e.TerminalSafe().Out, "eviction of %s in namespace %s from cluster %s cancelled\n", v.Workload, orNone(v.Namespace), cluster)
	}
	switch {
	case err != nil:
		return err
	case len(left) > 0:
		return fmt.Errorf("%d evictions from cluster %q go on: its NoExecute taints would evict again; remove them first with %q", len(left), cluster, e.Name+" taint")
	case len(cancelled) == 0:
		return fmt.Errorf("no workload is being evicted from cluster %q; see %q", cluster, e.Name+" failover status")
	}
	return nil
}

func runResume(ctx context.Context, e *env.Env, access *env.Access, force bool, timeout time.Duration) error {
	c, err := access.ControlPlane.RequiredClient(ctx)
	if err != nil {
		return err
	}
	clusters, err := failover.Resume(ctx, c, force, e.Now(), wait.Options{Timeout: timeout, Publish: func(reason error) { e.Say("waiting: %v", reason) }})
	if errors.Is(err, failover.ErrNotStopped) {
		return fmt.Errorf("%w; see %q", err, e.Name+" failover status")
	}
	if errors.Is(err, failover.ErrNoneReady) {
		return fmt.Errorf("%w; wait until such a cluster is Ready, or use --force", err)
	}
	if err != nil {
		return err
	}
	text := "evictions resumed"
	if len(clusters) > 0 {
		text += ": workloads leave " + strings.Join(clusters, ", ")
	}
	_, err = fmt.Fprintln(e.TerminalSafe().Out, text)
	return err
}

// printReport prints the state of failover in sections.
func printReport(out io.Writer, program string, r *failover.Report, now time.Time) error {
	text := "Evictions are not stopped."
	if m := &r.MassFailure; m.Stopped() {
		text = fmt.Sprintf("Evictions from clusters that are not Ready are stopped for %s: %d of %d clusters failed at once.\n"+
			"They resume when the clusters are Ready, or with %q.", duration.HumanDuration(now.Sub(m.Since)), m.Failed, m.Total, program+" failover resume")
	}
	if !r.Silent.IsZero() {
		text += fmt.Sprintf("\nkarmada-controller-manager has not renewed its Lease for %s, and evicts nothing: it does not run, or the control plane\n"+
			"does not store what it writes, as when etcd is full. See its log, and that of etcd.", duration.HumanDuration(now.Sub(r.Silent)))
	}
	if _, err := fmt.Fprintln(out, text); err != nil {
		return err
	}
	clusters := [][]string{{"CLUSTER", "READY", "SINCE", "EVICTIONS", "TAINTS"}}
	for i := range r.Clusters {
		c := &r.Clusters[i]
		ready, at := "Unknown", "<unknown>"
		if condition := c.ReadyCondition(); condition != nil {
			ready, at = string(condition.Status), duration.HumanDuration(now.Sub(condition.LastTransitionTime.Time))
		}
		clusters = append(clusters, []string{c.Name, ready, at, evictionsOf(c), orNone(member.FormatTaints(c.Spec.Taints))})
	}
	evictions := [][]string{{"NAMESPACE", "WORKLOAD", "CLUSTER", "REPLICAS", "PRIORITY", "EVICTION", "DELETED"}}
	for i := range r.Evictions {
		v := &r.Evictions[i]
		evictions = append(evictions, []string{orNone(v.Namespace), v.Workload, v.Cluster, fmt.Sprint(v.Replicas), fmt.Sprint(v.Priority), v.Progress(now), orNone(v.Deleted(now))})
	}
	return errors.Join(printTable(out, clusters), printTable(out, evictions))
}

// printTable prints rows after an empty line, and nothing if there is only a heading.
func printTable(out io.Writer, rows [][]string) error {
	if len(rows) < 2 {
		return nil
	}
	w := printers.GetNewTabWriter(out)
	_, _ = fmt.Fprintln(w) // Flush returns errors
	for _, cells := range rows {
		_, _ = fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("printing the state of failover: %w", err)
	}
	return nil
}

// noTaint is printed for a cluster whose taints evict nothing.
const noTaint = "no NoExecute taint"

// evictionsOf returns whether workloads leave a cluster.
func evictionsOf(c *clusterv1alpha1.Cluster) string {
	switch {
	case meta.IsStatusConditionTrue(c.Status.Conditions, clusterv1alpha1.ClusterConditionEvictionsStopped):
		return "stopped"
	case !slices.ContainsFunc(c.Spec.Taints, func(t corev1.Taint) bool { return t.Effect == corev1.TaintEffectNoExecute }):
		return noTaint
	}
	return "active"
}

func orNone(s string) string {
	if s == "" {
		return "<none>"
	}
	return s
}
