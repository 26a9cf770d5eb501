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
	"github.com/karmada-toolkit/karmada/pkg/failover"
	"github.com/karmada-toolkit/karmada/pkg/member"
)

const (
	short = "Show and resume evictions of workloads from clusters"
	long  = `
		Show and resume evictions of workloads from clusters.

		Workloads leave clusters with NoExecute taints that they do not tolerate. When many clusters
		fail at once, evictions from clusters that are not Ready are stopped, because then the control
		plane is likely cut off.`
	examples = `
		# Show which workloads leave clusters, or would
		{{.Name}} failover status

		# Evict although many clusters failed at once
		{{.Name}} failover resume`

	statusLong = `
		Show which clusters are not Ready or evict, whether evictions are stopped, and which workloads
		leave clusters, or would if evictions were not stopped.

		That clusters with NoExecute taints evict has to be turned on in karmada-controller-manager.`
	resumeLong = `
		Resume evictions that were stopped because many clusters failed at once.

		Workloads leave the clusters that are not Ready now. These clusters count as failed again only
		after they were Ready.`
)

// NewCommand returns the command.
func NewCommand(e *env.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "failover",
		Short:   short,
		Long:    e.Long(long),
		Example: e.Examples(examples),
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newStatus(e), newResume(e))
	return cmd
}

func newStatus(e *env.Env) *cobra.Command {
	access := e.NewAccess()
	cmd := &cobra.Command{
		Use:                   "status",
		DisableFlagsInUseLine: true,
		Short:                 "Show which workloads leave clusters, or would",
		Long:                  e.Long(statusLong),
		Args:                  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := access.ControlPlane.RequiredClient(cmd.Context())
			if err != nil {
				return err
			}
			report, err := failover.Read(cmd.Context(), c, e.Now())
			if err != nil {
				return err
			}
			return printReport(e.Escaped().Out, e.Name, report, e.Now())
		},
	}
	access.Flags.Add(cmd)
	return cmd
}

func newResume(e *env.Env) *cobra.Command {
	access := e.NewAccess()
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:                   "resume",
		DisableFlagsInUseLine: true,
		Short:                 "Resume evictions that were stopped because many clusters failed at once",
		Long:                  e.Long(resumeLong),
		Args:                  cobra.NoArgs,
		RunE:                  func(cmd *cobra.Command, _ []string) error { return runResume(cmd.Context(), e, access, timeout) },
	}
	access.Flags.Add(cmd)
	cmd.Flags().DurationVar(&timeout, "timeout", 30*time.Second, "How long to wait for the controllers.")
	return cmd
}

func runResume(ctx context.Context, e *env.Env, access *env.Access, timeout time.Duration) error {
	c, err := access.ControlPlane.RequiredClient(ctx)
	if err != nil {
		return err
	}
	clusters, err := failover.Resume(ctx, c, wait.Options{Timeout: timeout, Publish: func(reason error) { e.Say("waiting: %v", reason) }})
	if errors.Is(err, failover.ErrNotStopped) {
		return fmt.Errorf("%w; see %q", err, e.Name+" failover status")
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
	if _, err := fmt.Fprintln(out, text); err != nil {
		return err
	}
	clusters := [][]string{{"CLUSTER", "READY", "SINCE", "EVICTIONS", "TAINTS"}}
	for i := range r.Clusters {
		c := &r.Clusters[i]
		ready, at := "Unknown", "<unknown>"
		if condition := meta.FindStatusCondition(c.Status.Conditions, clusterv1alpha1.ClusterConditionReady); condition != nil {
			ready, at = string(condition.Status), duration.HumanDuration(now.Sub(condition.LastTransitionTime.Time))
		}
		clusters = append(clusters, []string{c.Name, ready, at, evictionsOf(c), orNone(member.FormatTaints(c.Spec.Taints))})
	}
	evictions := [][]string{{"NAMESPACE", "WORKLOAD", "CLUSTER", "REPLICAS", "PRIORITY", "EVICTION"}}
	for i := range r.Evictions {
		v := &r.Evictions[i]
		evictions = append(evictions, []string{orNone(v.Namespace), v.Workload, v.Cluster, fmt.Sprint(v.Replicas), fmt.Sprint(v.Priority), v.Progress(now)})
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

// evictionsOf returns whether workloads leave a cluster.
func evictionsOf(c *clusterv1alpha1.Cluster) string {
	switch {
	case meta.IsStatusConditionTrue(c.Status.Conditions, clusterv1alpha1.ClusterConditionEvictionsStopped):
		return "stopped"
	case !slices.ContainsFunc(c.Spec.Taints, func(t corev1.Taint) bool { return t.Effect == corev1.TaintEffectNoExecute }):
		return "no NoExecute taint"
	}
	return "active"
}

func orNone(s string) string {
	if s == "" {
		return "<none>"
	}
	return s
}
