// Package clusterstatus finds out how member clusters are and writes it into
// their Cluster: readiness first, as soon as it is known, then what they serve
// and how much room they have. Every cluster is looked at by a goroutine of its
// own, so a slow one delays nobody else. It runs in the control plane for
// clusters that are pushed to, and in the agent of a cluster that pulls.
package clusterstatus

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
)

// Name is that of the controller.
const Name = "cluster-status-controller"

// Members opens clusters.
type Members interface {
	Member(ctx context.Context, cluster *clusterv1alpha1.Cluster) (*access.Member, error)
}

// Deps is what the controller needs.
type Deps struct {
	Members Members
	// Select says which clusters are looked at. Default: those with sync mode Push
	// and a Secret.
	Select func(*clusterv1alpha1.Cluster) bool
	// Frequency is the time between looks at a healthy cluster. Default 10 s.
	Frequency time.Duration
	// SuccessThreshold and FailureThreshold are how long a cluster must be seen
	// well or ill before its Ready condition changes. Default 30 s.
	SuccessThreshold, FailureThreshold time.Duration
	// Resources has nodes and pods added up.
	Resources bool
	// Modeling has nodes counted by grade too, for clusters with resource models.
	Modeling bool
	// ProbeTimeout bounds the wait for an answer about health. Default 3 s.
	ProbeTimeout time.Duration
	// Timeout bounds the other requests. Default access.Timeout.
	Timeout time.Duration
	// Healthy is told when a cluster was seen to be healthy. An agent starts to
	// renew its lease then. Optional.
	Healthy func(cluster *clusterv1alpha1.Cluster)
	// Conditions returns more conditions to write into the status of a cluster, as
	// they are now. Optional.
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
		{&d.ProbeTimeout, 3 * time.Second},
		{&d.Timeout, access.Timeout},
	} {
		if *p.value <= 0 {
			*p.value = p.standard
		}
	}
	if d.Clock == nil {
		d.Clock = clock.RealClock{}
	}
	if d.Metrics == nil {
		d.Metrics = ctrlmetrics.Registry
	}
}

// Controller has a collector for each cluster.
type Controller struct {
	deps    Deps
	client  client.Client
	live    client.Reader
	metrics *metrics

	mu         sync.Mutex
	collectors map[string]*collector
	done       sync.WaitGroup

	// mayNotPatch says that the control plane refused to have a status patched.
	mayNotPatch atomic.Bool
}

// New returns a controller.
func New(c client.Client, live client.Reader, d Deps) (*Controller, error) {
	d.complete()
	m, err := newMetrics(d.Metrics)
	if err != nil {
		return nil, err
	}
	return &Controller{deps: d, client: c, live: live, metrics: m, collectors: map[string]*collector{}}, nil
}

// Setup adds the controller to the manager. It works while the manager leads.
func Setup(_ context.Context, mgr manager.Manager, d Deps) error {
	c, err := New(mgr.GetClient(), mgr.GetAPIReader(), d)
	if err != nil {
		return err
	}
	if err := mgr.Add(manager.RunnableFunc(func(ctx context.Context) error { return c.run(ctx, mgr.GetCache()) })); err != nil {
		return fmt.Errorf("adding the %s: %w", Name, err)
	}
	return nil
}

// run serves until ctx ends.
func (c *Controller) run(ctx context.Context, informers cache.Informers) error {
	clusters, err := informers.GetInformer(ctx, &clusterv1alpha1.Cluster{})
	if err != nil {
		return fmt.Errorf("watching clusters: %w", err)
	}
	handle, err := clusters.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { c.changed(ctx, nil, obj) },
		UpdateFunc: func(old, obj any) {
			c.changed(ctx, old, obj)
		},
		DeleteFunc: func(obj any) {
			if gone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
				obj = gone.Obj
			}
			if cluster, ok := obj.(*clusterv1alpha1.Cluster); ok {
				c.stop(cluster.Name)
				c.metrics.forget(cluster.Name)
			}
		},
	})
	if err != nil {
		return fmt.Errorf("watching clusters: %w", err)
	}
	<-ctx.Done()
	_ = clusters.RemoveEventHandler(handle)
	c.done.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.collectors = map[string]*collector{}
	return nil
}

// changed starts, stops or hurries the collector of a cluster.
func (c *Controller) changed(ctx context.Context, old, obj any) {
	cluster, ok := obj.(*clusterv1alpha1.Cluster)
	if !ok {
		return
	}
	if !c.deps.Select(cluster) {
		c.stop(cluster.Name)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if have := c.collectors[cluster.Name]; have != nil {
		before, ok := old.(*clusterv1alpha1.Cluster)
		if !ok || before.Generation != cluster.Generation || before.UID != cluster.UID || len(before.Finalizers) != len(cluster.Finalizers) {
			have.hurry()
		}
		return
	}
	own, cancel := context.WithCancel(ctx)
	col := newCollector(c, cluster.Name, cancel)
	c.collectors[cluster.Name] = col
	c.done.Go(func() { col.run(own) })
}

func (c *Controller) stop(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if col := c.collectors[name]; col != nil {
		col.cancel()
		delete(c.collectors, name)
	}
}
