// Package clusterstatus collects the status of member clusters and writes it into
// their Cluster: whether they are ready, the APIs that they serve, and their
// resources. Every cluster has its own goroutine, so that a slow one does not delay
// the others. The controller runs in the control plane for clusters with sync mode
// Push, and in the agent of a cluster with sync mode Pull.
package clusterstatus

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/status"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
	"github.com/karmada-toolkit/karmada/pkg/member/lifetime"
)

// Name is the name of the controller.
const Name = "cluster-status-controller"

// Bounds of the default time limit of a probe.
const (
	minProbeTimeout = time.Second
	maxProbeTimeout = 3 * time.Second
)

// Deps are the dependencies and options of the controller.
type Deps struct {
	Members access.Members
	// Select reports whether the status of a cluster is collected. Default: it is for
	// those with sync mode Push and a Secret.
	Select func(*clusterv1alpha1.Cluster) bool
	// Frequency is the time between two collections from a healthy cluster. Default: 10 s.
	Frequency time.Duration
	// SuccessThreshold and FailureThreshold are how long the probes of a cluster must
	// succeed or fail before its Ready condition changes. Default: 30 s.
	SuccessThreshold, FailureThreshold time.Duration
	// Resources enables the summaries of nodes and pods.
	Resources bool
	// Modeling enables counting nodes by grade, for clusters with resource models.
	Modeling bool
	// ProbeTimeout limits a probe. Default: 3 s, or FailureThreshold if that is shorter,
	// but at least 1 s.
	ProbeTimeout time.Duration
	// Timeout limits the other requests. Default: access.Timeout.
	Timeout time.Duration
	// Healthy is called when a probe succeeded: an agent starts to renew its lease
	// then. Optional.
	Healthy func(cluster *clusterv1alpha1.Cluster)
	// Probed is called after each probe with the time when it began. Optional.
	Probed func(cluster *clusterv1alpha1.Cluster, healthy bool, at time.Time)
	// Conditions returns more conditions for the status of a cluster. Optional.
	Conditions func(cluster *clusterv1alpha1.Cluster) []metav1.Condition
	// Clock defaults to the real one.
	Clock clock.Clock
	// Metrics defaults to the registry of controller-runtime.
	Metrics prometheus.Registerer
}

func (d *Deps) complete() {
	if d.Select == nil {
		d.Select = func(c *clusterv1alpha1.Cluster) bool {
			return c.Spec.SyncMode == clusterv1alpha1.Push && c.Spec.SecretRef != nil
		}
	}
	for _, p := range []struct {
		value    *time.Duration
		standard time.Duration
	}{
		{&d.Frequency, 10 * time.Second},
		{&d.SuccessThreshold, 30 * time.Second},
		{&d.FailureThreshold, 30 * time.Second},
		{&d.Timeout, access.Timeout},
	} {
		if *p.value <= 0 {
			*p.value = p.standard
		}
	}
	if d.ProbeTimeout <= 0 {
		d.ProbeTimeout = min(maxProbeTimeout, max(minProbeTimeout, d.FailureThreshold))
	}
	d.Clock = cmp.Or[clock.Clock](d.Clock, clock.RealClock{})
	if d.Metrics == nil {
		d.Metrics = ctrlmetrics.Registry
	}
}

// controller runs a collector for each cluster.
type controller struct {
	*shared
	collectors *lifetime.Registry[*collector]
}

// shared is what all collectors use.
type shared struct {
	deps    Deps
	client  client.Client
	writer  *status.Writer[*clusterv1alpha1.Cluster, *clusterv1alpha1.ClusterStatus]
	metrics *clusterMetrics
	delays  delays
}

func newController(c client.Client, live client.Reader, d Deps) *controller {
	d.complete()
	writer := status.NewWriter(status.Options[*clusterv1alpha1.Cluster, *clusterv1alpha1.ClusterStatus]{
		Get:               func(c *clusterv1alpha1.Cluster) *clusterv1alpha1.ClusterStatus { return &c.Status },
		Set:               func(c *clusterv1alpha1.Cluster, s *clusterv1alpha1.ClusterStatus) { c.Status = *s.DeepCopy() }, // the answer is decoded into it
		Copy:              copyStatus,
		Shared:            []string{"conditions"},
		UpdateIfForbidden: true,
		Client:            c, Live: live, Clock: d.Clock,
	})
	return &controller{
		shared:     &shared{deps: d, client: c, writer: writer, metrics: newMetrics(d.Metrics), delays: delays{clock: d.Clock}},
		collectors: lifetime.New(c, (*collector).stop),
	}
}

// copyStatus copies the conditions, which are modified in place. The other fields are replaced as a whole: the APIs of a
// cluster take most of its status, and are the same for months.
func copyStatus(s *clusterv1alpha1.ClusterStatus) *clusterv1alpha1.ClusterStatus {
	out := *s
	out.Conditions = slices.Clone(s.Conditions)
	return &out
}

// Setup adds the controller to the manager. It runs while the manager is the leader.
func Setup(_ context.Context, mgr manager.Manager, d Deps) error {
	c := newController(mgr.GetClient(), mgr.GetAPIReader(), d)
	if err := mgr.Add(manager.RunnableFunc(func(ctx context.Context) error { return c.run(ctx, mgr.GetCache()) })); err != nil {
		return fmt.Errorf("adding the %s: %w", Name, err)
	}
	return controllers.Follow(mgr, &clusterv1alpha1.Cluster{}, c.collectors)
}

// run runs the collectors until ctx is done.
func (c *controller) run(ctx context.Context, informers cache.Informers) error {
	clusters, err := informers.GetInformer(ctx, &clusterv1alpha1.Cluster{})
	if err != nil {
		return fmt.Errorf("watching clusters: %w", err)
	}
	defer c.collectors.End()
	go c.delays.run(ctx)
	handle, err := clusters.AddEventHandler(controllers.Handler[*clusterv1alpha1.Cluster]{
		Added:   func(cluster *clusterv1alpha1.Cluster, _ bool) { c.changed(ctx, nil, cluster) },
		Updated: func(before, cluster *clusterv1alpha1.Cluster) { c.changed(ctx, before, cluster) },
		Deleted: func(cluster *clusterv1alpha1.Cluster) { c.metrics.forget(cluster.Name) },
	})
	if err != nil {
		return fmt.Errorf("watching clusters: %w", err)
	}
	<-ctx.Done()
	return clusters.RemoveEventHandler(handle)
}

// changed starts, stops or triggers the collector of a cluster; before is nil for a new one.
func (c *controller) changed(ctx context.Context, before, cluster *clusterv1alpha1.Cluster) {
	if !c.deps.Select(cluster) {
		c.collectors.Close(cluster)
		return
	}
	started := false
	col, ok := c.collectors.Open(ctx, cluster, nil, func() *collector {
		started = true
		return startCollector(ctx, c.shared, cluster)
	})
	if ok && !started && (before == nil || before.Generation != cluster.Generation || len(before.Finalizers) != len(cluster.Finalizers)) {
		col.trigger.Fire()
	}
}
