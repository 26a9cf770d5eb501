package failover

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/operate/failover"
)

// document is the state of failover in JSON.
type document struct {
	// Stopped is why evictions are stopped; none while they are not.
	Stopped *stoppedDocument `json:"stopped,omitempty"`
	// SilentSince is since when no karmada-controller-manager has renewed its Lease; none while one does.
	SilentSince *time.Time         `json:"silentSince,omitempty"`
	Clusters    []clusterDocument  `json:"clusters"`
	Evictions   []evictionDocument `json:"evictions"`
}

// stoppedDocument says since when, and how many of the clusters failed at once.
type stoppedDocument struct {
	Since  time.Time `json:"since"`
	Failed int       `json:"failed"`
	Total  int       `json:"total"`
}

// clusterDocument is a cluster that is not Ready or has NoExecute taints.
type clusterDocument struct {
	Name  string     `json:"name"`
	Ready string     `json:"ready"`
	Since *time.Time `json:"since,omitempty"`
	// Evictions is active, stopped or none.
	Evictions string         `json:"evictions"`
	Taints    []corev1.Taint `json:"taints"`
}

// evictionDocument is the departure of a workload from a cluster.
type evictionDocument struct {
	Namespace string `json:"namespace,omitempty"`
	Workload  string `json:"workload"`
	Cluster   string `json:"cluster"`
	Replicas  int32  `json:"replicas"`
	Priority  int32  `json:"priority"`
	// Phase is UnderWay, Pending, Stopped or Skipped.
	Phase           string     `json:"phase"`
	Reason          string     `json:"reason,omitempty"`
	At              *time.Time `json:"at,omitempty"`
	PurgeMode       string     `json:"purgeMode,omitempty"`
	DeletedBy       *time.Time `json:"deletedBy,omitempty"`
	RunsNowhereElse bool       `json:"runsNowhereElse"`
}

// newDocument returns the state of failover as it is printed in JSON.
func newDocument(r *failover.Report) document {
	out := document{SilentSince: optional(r.Silent), Clusters: make([]clusterDocument, 0, len(r.Clusters)), Evictions: make([]evictionDocument, 0, len(r.Evictions))}
	if m := &r.MassFailure; m.Stopped() {
		out.Stopped = &stoppedDocument{Since: m.Since.UTC(), Failed: m.Failed, Total: m.Total}
	}
	for i := range r.Clusters {
		out.Clusters = append(out.Clusters, newClusterDocument(&r.Clusters[i]))
	}
	for i := range r.Evictions {
		v := &r.Evictions[i]
		out.Evictions = append(out.Evictions, evictionDocument{
			Namespace: v.Namespace, Workload: v.Workload, Cluster: v.Cluster, Replicas: v.Replicas, Priority: v.Priority, Phase: phaseName(v.Phase),
			Reason: v.Reason, At: optional(v.At), PurgeMode: string(v.Purge), DeletedBy: optional(v.Until), RunsNowhereElse: v.Nowhere,
		})
	}
	return out
}

func newClusterDocument(c *clusterv1alpha1.Cluster) clusterDocument {
	d := clusterDocument{Name: c.Name, Ready: "Unknown", Evictions: evictionsOf(c), Taints: append([]corev1.Taint{}, c.Spec.Taints...)}
	if d.Evictions == noTaint {
		d.Evictions = "none"
	}
	if condition := c.ReadyCondition(); condition != nil {
		d.Ready, d.Since = string(condition.Status), optional(condition.LastTransitionTime.Time)
	}
	return d
}

// phaseName returns the name of a phase, which does not change when its words for people do.
func phaseName(p failover.Phase) string {
	switch p {
	case failover.UnderWay:
		return "UnderWay"
	case failover.Pending:
		return "Pending"
	case failover.Stopped:
		return "Stopped"
	case failover.Unclaimed:
		return "Skipped"
	}
	return string(p)
}

// optional returns a time, or nothing if it is not known.
func optional(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC().Truncate(time.Second)
	return &t
}
