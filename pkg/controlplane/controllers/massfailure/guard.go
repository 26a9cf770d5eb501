// Package massfailure stops evictions from clusters that are not Ready when many clusters fail at once, because then the
// control plane is likely cut off. Its Guard reports to the controllers that evict which clusters they must not evict.
package massfailure

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/karmada-toolkit/karmada/internal/events"
	"github.com/karmada-toolkit/karmada/internal/metrics"
	"github.com/karmada-toolkit/karmada/internal/status"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/env"
	"github.com/karmada-toolkit/karmada/pkg/domain/eviction"
)

// Component is the name of the controller and the source of its events.
const Component = "mass-failure-controller"

// Options are the options of the controller.
type Options struct {
	// Threshold is the share of the clusters that is a mass failure, from 0 to 1. With 0, evictions are never stopped.
	Threshold float64
	// GracefulTimeout is how long an eviction task without a grace period lasts at most. It is published. Default 10 min.
	GracefulTimeout time.Duration
	// PullOnly is set if Observe is not called for clusters with sync mode Push. Otherwise it is for those that have a Secret.
	PullOnly bool
}

// health is what this process observed of a cluster.
type health struct{ failingSince, confirmed time.Time }

// Guard decides which clusters are not evicted. It is safe for concurrent use.
type Guard struct {
	env     *env.Env
	options Options
	client  client.Client
	live    client.Reader
	events  *events.Recorder
	metrics *guardMetrics
	writer  *status.Writer[*clusterv1alpha1.Cluster, *clusterv1alpha1.ClusterStatus]

	mu     sync.Mutex
	health map[types.UID]health // by cluster
	// loaded reports whether the stored state was read. Until then nothing is evicted.
	loaded bool
	state  eviction.MassFailureState
}

// New returns a Guard that reads clusters from the cache and its own state from the API server.
func New(e *env.Env, recorder *events.Recorder, o Options) *Guard {
	return &Guard{
		env: e, options: o, client: e.Client, live: e.Live, events: recorder, metrics: newMetrics(e.Metrics), health: map[types.UID]health{},
		writer: status.For(e.Client, e.Live, e.Clock, func(c *clusterv1alpha1.Cluster) *clusterv1alpha1.ClusterStatus { return &c.Status }, "conditions"),
	}
}

// Setup adds a Guard to the manager and returns it. It runs while the manager is the leader.
func Setup(e *env.Env, o Options) (*Guard, error) {
	g := New(e, events.ForManager(e.Manager, Component, events.Transitions), o)
	if err := e.Manager.Add(manager.RunnableFunc(g.run)); err != nil {
		return nil, fmt.Errorf("adding the %s: %w", Component, err)
	}
	return g, nil
}

// Observe records that a probe or report of a cluster showed at a time whether it is healthy.
func (g *Guard) Observe(cluster *clusterv1alpha1.Cluster, healthy bool, at time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	h := g.health[cluster.UID]
	switch {
	case healthy:
		h = health{confirmed: at}
	case h.failingSince.IsZero():
		h.failingSince = at
	}
	g.health[cluster.UID] = h
}

// Hold reports whether a cluster must not be evicted now.
func (g *Guard) Hold(ctx context.Context, cluster string) (bool, error) {
	v, _, err := g.decide(ctx, false)
	if err != nil || v == nil {
		return true, err
	}
	return slices.Contains(v.Held, cluster) || slices.Contains(v.Undecided, cluster), nil
}

// decide returns which clusters are not evicted, and all clusters, which are read-only. The verdict is nil until the
// stored state was read.
func (g *Guard) decide(ctx context.Context, resume bool) (*eviction.MassFailureVerdict, []clusterv1alpha1.Cluster, error) {
	var clusters clusterv1alpha1.ClusterList
	if err := g.client.List(ctx, &clusters, client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, fmt.Errorf("listing clusters: %w", err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.loaded {
		return nil, clusters.Items, nil
	}
	facts := eviction.MassFailureFacts{Now: g.env.Clock.Now(), Threshold: g.options.Threshold, State: g.state, Resume: resume}
	for i := range clusters.Items {
		if c, ok := g.healthOf(&clusters.Items[i]); ok {
			facts.Clusters = append(facts.Clusters, c)
		}
	}
	v := eviction.MassFailure(facts)
	g.state = v.State
	return &v, clusters.Items, nil
}

// healthOf returns what is known of a cluster, and false if it does not count: it is being deleted, or was never Ready.
func (g *Guard) healthOf(c *clusterv1alpha1.Cluster) (eviction.ClusterHealth, bool) {
	ready := c.ReadyCondition()
	// The version and the APIs are written when a cluster becomes Ready.
	joined := c.Status.KubernetesVersion != "" || len(c.Status.APIEnablements) > 0
	if ready == nil || !joined || !c.DeletionTimestamp.IsZero() {
		return eviction.ClusterHealth{}, false
	}
	h := g.health[c.UID]
	return eviction.ClusterHealth{
		Name: c.Name, Ready: ready.Status == metav1.ConditionTrue, ReadyChanged: ready.LastTransitionTime.Time,
		FailingSince: h.failingSince, Confirmed: h.confirmed, Unobserved: c.Spec.SyncMode != clusterv1alpha1.Pull && (g.options.PullOnly || c.Spec.SecretRef == nil),
	}, true
}

// guardMetrics are the metrics of a Guard.
type guardMetrics struct {
	stopped prometheus.Gauge
	held    prometheus.Gauge
}

func newMetrics(r prometheus.Registerer) *guardMetrics {
	return &guardMetrics{
		stopped: metrics.Register(r, prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "eviction_stopped", Help: "1 while evictions from clusters that are not Ready are stopped because many failed at once.",
		})),
		held: metrics.Register(r, prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "eviction_held_clusters", Help: "Number of clusters that are not evicted because many failed at once.",
		})),
	}
}

func (m *guardMetrics) set(stopped bool, held int) {
	value := 0.0
	if stopped {
		value = 1
	}
	m.stopped.Set(value)
	m.held.Set(float64(held))
}
