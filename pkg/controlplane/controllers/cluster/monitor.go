package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/karmada-toolkit/karmada/internal/status"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/env"
)

// Reasons and messages of the Ready condition of a cluster without reports.
const (
	reasonNeverUpdated  = "ClusterStatusNeverUpdated"
	messageNeverUpdated = "Cluster status controller never posted cluster status."
	reasonUnknown       = "ClusterStatusUnknown"
	messageUnknown      = "Cluster status controller stopped posting cluster status."
)

// report is the last report of a cluster. Its time is that at which it was observed
// here, so that the clocks of agents do not matter.
type report struct {
	uid     types.UID
	ready   *metav1.Condition
	renewed time.Time
	// at is when it was observed, and since when the one before still was: it came between these.
	at, since time.Time
	// observed reports whether the report was observed when it came, not only when this process started.
	observed bool
	// failing reports whether the agent does not reach its cluster: the condition follows later.
	failing bool
	written status.Written[*clusterv1alpha1.ClusterStatus]
}

// monitor sets the Ready condition of clusters with sync mode Pull to Unknown when
// their agents report no status and renew no lease any longer.
type monitor struct {
	env     *env.Env
	options Options
	writer  *status.Writer[*clusterv1alpha1.Cluster, *clusterv1alpha1.ClusterStatus]
	reports map[string]*report // by cluster
	// checked is when the leases were read last, and previous when before that.
	checked, previous time.Time
}

func newMonitor(r *reconciler) *monitor {
	// Without live reads: after a conflict the cluster may be Ready.
	return &monitor{env: r.env, options: r.options, reports: map[string]*report{}, writer: status.For(r.env.Client, nil, r.env.Clock,
		func(c *clusterv1alpha1.Cluster) *clusterv1alpha1.ClusterStatus { return &c.Status }, "conditions")}
}

// run checks all clusters every period.
func (m *monitor) run(ctx context.Context) error {
	ticker := m.env.Clock.NewTicker(m.options.MonitorPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
		if err := m.check(ctx); err != nil && ctx.Err() == nil {
			ctrllog.FromContext(ctx).Error(err, "Checking the health of clusters failed")
		}
	}
}

// check checks all clusters once.
func (m *monitor) check(ctx context.Context) error {
	var clusters clusterv1alpha1.ClusterList
	if err := m.env.Client.List(ctx, &clusters, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing clusters: %w", err)
	}
	var renewals map[string]renewal
	seen := map[string]bool{}
	var errs []error
	for i := range clusters.Items {
		cluster := &clusters.Items[i]
		if cluster.Spec.SyncMode != clusterv1alpha1.Pull || !cluster.DeletionTimestamp.IsZero() {
			continue
		}
		if renewals == nil {
			var err error
			if renewals, err = m.renewals(ctx); err != nil {
				return err
			}
			m.continueAfter(m.env.Clock.Now())
		}
		seen[cluster.Name] = true
		now := m.env.Clock.Now()
		s := m.observe(cluster, renewals[cluster.Name], now)
		m.publish(cluster, s, now)
		if m.overdue(cluster, s, now) {
			errs = append(errs, m.writeUnknown(ctx, cluster, s, now))
		}
	}
	maps.DeleteFunc(m.reports, func(name string, _ *report) bool { return !seen[name] })
	return errors.Join(errs...)
}

// continueAfter leaves out the time in which nothing was probed: this process was stopped, or the API server did not answer, and agents
// that could not renew their leases either have what was left of their time.
func (m *monitor) continueAfter(now time.Time) {
	if away := now.Sub(m.checked) - 2*m.options.MonitorPeriod; !m.checked.IsZero() && away > 0 {
		for _, s := range m.reports {
			s.at = s.at.Add(away)
		}
	}
	m.previous, m.checked = m.checked, now
}

// renewal is what the lease of a cluster reports.
type renewal struct {
	at      time.Time
	failing bool
}

// renewals returns what each lease reports.
func (m *monitor) renewals(ctx context.Context) (map[string]renewal, error) {
	var leases coordinationv1.LeaseList
	if err := m.env.Live.List(ctx, &leases, client.InNamespace(clusterv1alpha1.NamespaceKarmadaCluster)); err != nil {
		return nil, fmt.Errorf("listing the leases of clusters: %w", err)
	}
	out := make(map[string]renewal, len(leases.Items))
	for i := range leases.Items {
		if lease := &leases.Items[i]; lease.Spec.RenewTime != nil {
			out[lease.Name] = renewal{lease.Spec.RenewTime.Time, lease.Annotations[clusterv1alpha1.FailingAnnotation] == "true"}
		}
	}
	return out, nil
}

// observe returns the last report of a cluster.
func (m *monitor) observe(cluster *clusterv1alpha1.Cluster, lease renewal, now time.Time) *report {
	renewed := lease.at
	ready := cluster.ReadyCondition()
	s := m.reports[cluster.Name]
	if s == nil || s.uid != cluster.UID {
		s = &report{uid: cluster.UID, ready: ready.DeepCopy(), renewed: renewed, at: now}
		m.reports[cluster.Name] = s
	}
	if ready == nil && s.renewed.IsZero() {
		s.at = cluster.CreationTimestamp.Time
	}
	if !sameCondition(s.ready, ready) {
		s.at, s.since, s.observed = now, m.previous, true
	}
	// The clock of an agent may be wrong, and set back: any other time is a report.
	if !renewed.IsZero() && !renewed.Equal(s.renewed) {
		s.at, s.since, s.renewed, s.observed = now, m.previous, renewed, true
	}
	s.ready, s.failing = ready.DeepCopy(), lease.failing
	return s
}

// publish calls Options.Reported. The condition Unknown is no report: the monitor wrote it. Of a healthy cluster it says the earliest
// time of the report: with the time of the check, the report would seem to have come after the failure of another cluster that it
// came before.
func (m *monitor) publish(cluster *clusterv1alpha1.Cluster, last *report, now time.Time) {
	if m.options.Reported == nil {
		return
	}
	late := now.Sub(last.at) > m.options.MonitorGracePeriod/2
	if unknown := last.ready != nil && last.ready.Status == metav1.ConditionUnknown; late || last.failing || last.observed && !unknown {
		at, healthy := last.at, !late && !last.failing
		if healthy {
			at = last.since
		}
		m.options.Reported(cluster, healthy, at)
	}
}

// overdue reports whether the next report of a cluster is overdue.
func (m *monitor) overdue(cluster *clusterv1alpha1.Cluster, last *report, now time.Time) bool {
	grace := m.options.MonitorGracePeriod
	if cluster.ReadyCondition() == nil {
		grace = m.options.StartupGracePeriod
	}
	return now.After(last.at.Add(grace))
}

func sameCondition(a, b *metav1.Condition) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message && a.LastTransitionTime.Equal(&b.LastTransitionTime)
}

// writeUnknown sets the Ready condition of a cluster to Unknown.
func (m *monitor) writeUnknown(ctx context.Context, cluster *clusterv1alpha1.Cluster, last *report, now time.Time) error {
	_, err := m.writer.Write(ctx, cluster, &last.written, func(s *clusterv1alpha1.ClusterStatus) {
		unknown := metav1.Condition{
			Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionUnknown,
			Reason: reasonUnknown, Message: messageUnknown, LastTransitionTime: metav1.NewTime(now),
		}
		switch ready := meta.FindStatusCondition(s.Conditions, clusterv1alpha1.ClusterConditionReady); {
		case ready == nil:
			unknown.Reason, unknown.Message = reasonNeverUpdated, messageNeverUpdated
		case ready.Status == metav1.ConditionUnknown:
			return
		}
		meta.SetStatusCondition(&s.Conditions, unknown)
	})
	return err
}

// unhealthy reports whether there is a taint of unhealthy clusters.
func unhealthy(taints []corev1.Taint) bool {
	return slices.ContainsFunc(taints, clusterv1alpha1.IsHealthTaint)
}
