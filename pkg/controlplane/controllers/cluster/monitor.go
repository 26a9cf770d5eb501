package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
)

// What a cluster that nobody reports on is said to be.
const (
	reasonNeverUpdated  = "ClusterStatusNeverUpdated"
	messageNeverUpdated = "Cluster status controller never posted cluster status."
	reasonUnknown       = "ClusterStatusUnknown"
	messageUnknown      = "Cluster status controller stopped posting cluster status."
)

// sign is the last sign of life of a cluster. Times are those at which it was
// observed here, so that the clocks of agents do not matter.
type sign struct {
	uid   types.UID
	ready *metav1.Condition
	renew time.Time
	at    time.Time
}

// monitor times out clusters that pull: their agents renew a lease.
type monitor struct {
	r     *Reconciler
	signs map[string]*sign
}

func newMonitor(r *Reconciler) *monitor { return &monitor{r: r, signs: map[string]*sign{}} }

// run checks all clusters every period.
func (m *monitor) run(ctx context.Context) error {
	ticker := m.r.deps.Clock.NewTicker(m.r.deps.MonitorPeriod)
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

// check looks at all clusters once.
func (m *monitor) check(ctx context.Context) error {
	var clusters clusterv1alpha1.ClusterList
	if err := m.r.client.List(ctx, &clusters, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing clusters: %w", err)
	}
	var renewals map[string]time.Time
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
		}
		seen[cluster.Name] = true
		now := m.r.deps.Clock.Now()
		if !m.observe(cluster, renewals[cluster.Name], now) {
			errs = append(errs, m.timeOut(ctx, cluster, now))
		}
	}
	for name := range m.signs {
		if !seen[name] {
			delete(m.signs, name)
		}
	}
	return errors.Join(errs...)
}

// renewals returns when each lease was renewed.
func (m *monitor) renewals(ctx context.Context) (map[string]time.Time, error) {
	var leases coordinationv1.LeaseList
	if err := m.r.live.List(ctx, &leases, client.InNamespace(clusterv1alpha1.NamespaceKarmadaCluster)); err != nil {
		return nil, fmt.Errorf("listing the leases of clusters: %w", err)
	}
	out := make(map[string]time.Time, len(leases.Items))
	for i := range leases.Items {
		if at := leases.Items[i].Spec.RenewTime; at != nil {
			out[leases.Items[i].Name] = at.Time
		}
	}
	return out, nil
}

// observe takes note of signs of life and says whether the cluster is alive.
func (m *monitor) observe(cluster *clusterv1alpha1.Cluster, renewed, now time.Time) bool {
	ready := readyCondition(cluster)
	s := m.signs[cluster.Name]
	if s == nil || s.uid != cluster.UID {
		s = &sign{uid: cluster.UID, ready: ready.DeepCopy(), renew: renewed, at: now}
		m.signs[cluster.Name] = s
	}
	if ready == nil && s.renew.IsZero() {
		s.at = cluster.CreationTimestamp.Time
	}
	if !sameCondition(s.ready, ready) {
		s.at = now
	}
	if renewed.After(s.renew) {
		s.at, s.renew = now, renewed
	}
	s.ready = ready.DeepCopy()
	grace := m.r.deps.MonitorGracePeriod
	if ready == nil {
		grace = m.r.deps.StartupGracePeriod
	}
	return !now.After(s.at.Add(grace))
}

func sameCondition(a, b *metav1.Condition) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message && a.LastTransitionTime.Equal(&b.LastTransitionTime)
}

// timeOut writes that nothing is known of the cluster.
func (m *monitor) timeOut(ctx context.Context, cluster *clusterv1alpha1.Cluster, now time.Time) error {
	unknown := metav1.Condition{
		Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionUnknown,
		Reason: reasonUnknown, Message: messageUnknown, LastTransitionTime: metav1.NewTime(now),
	}
	switch ready := readyCondition(cluster); {
	case ready == nil:
		unknown.Reason, unknown.Message = reasonNeverUpdated, messageNeverUpdated
	case ready.Status == metav1.ConditionUnknown:
		return nil
	}
	conditions := append([]metav1.Condition{}, cluster.Status.Conditions...)
	meta.SetStatusCondition(&conditions, unknown)
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": cluster.ResourceVersion},
		"status":   map[string]any{"conditions": conditions},
	})
	if err != nil {
		return fmt.Errorf("encoding: %w", err)
	}
	out := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: cluster.Name}}
	if err := m.r.client.Status().Patch(ctx, out, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("writing the status of cluster %s: %w", cluster.Name, err)
	}
	return nil
}
