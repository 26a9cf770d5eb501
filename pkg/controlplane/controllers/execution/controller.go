// Package execution applies the objects of Works to their cluster and writes their
// status to the Work. It runs in the control plane for clusters in Push mode, and in the
// agent of a cluster in Pull mode.
//
// Every cluster has a queue, workers and clients of its own, so that no cluster delays
// another one. A Work of a cluster that is not Ready is reconciled when the cluster is,
// not periodically. The status of a Work, conditions and the status of its objects, is
// written by one function and as seldom as possible.
package execution

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	recording "github.com/karmada-toolkit/karmada/internal/events"
	"github.com/karmada-toolkit/karmada/internal/metrics"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/execution/apply"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/execution/member"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/execution/workstatus"
	"github.com/karmada-toolkit/karmada/pkg/domain/interpreter"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
)

// Name is the source of the events.
const Name = "execution-controller"

// StatusName is the source of the events about the status of objects.
const StatusName = "work-status-controller"

// Interpreter interprets objects.
type Interpreter interface {
	apply.Retainer
	workstatus.Interpreter
}

// Deps is what the controller needs.
type Deps struct {
	Members     access.Members
	Interpreter Interpreter
	// Accept selects the clusters that are served. Default: those in Push mode.
	Accept func(*clusterv1alpha1.Cluster) bool
	// ReadBindings keeps the objects of a Work that somebody else than its binding deletes. Agents cannot read bindings.
	ReadBindings bool
	// Workers is half the number of Works of a cluster that are reconciled at a time:
	// while objects of some are applied, others have their status written. Default 5.
	Workers int
	// Policy bounds the delay of writes of the status.
	Policy workstatus.Policy
	// Retry bounds the delay of retries. Default 5 ms and 30 s; those of a cluster that
	// becomes Ready, or serves other types, end at once.
	Retry controllers.Retry
	// Timeout bounds a request to a member. Default access.Timeout.
	Timeout time.Duration
	// Events returns the recorder of a source. Default: that of the manager.
	Events func(source string) record.EventRecorder
	// EventMode selects the successes that are recorded. Default: Transitions.
	EventMode recording.Mode
	// SuccessDelay is the time for which the clusters of one event about a template are collected. Setup sets 2 s unless
	// every success is recorded; otherwise 0 records each cluster at once.
	SuccessDelay time.Duration
	// WentBack is called when a cluster was found to be restored from an older copy of its
	// store: it has version to, after from. It must not block. Optional.
	WentBack func(cluster, from, to string)
	// Clock defaults to the real one.
	Clock clock.PassiveClock
	// Metrics defaults to the registry of controller-runtime.
	Metrics prometheus.Registerer
}

func (d *Deps) complete() {
	if d.Accept == nil {
		d.Accept = func(c *clusterv1alpha1.Cluster) bool { return c.Spec.SyncMode == clusterv1alpha1.Push }
	}
	d.Workers = controllers.Workers(d.Workers, 5)
	if d.Retry.MaxDelay <= 0 {
		d.Retry.MaxDelay = 30 * time.Second
	}
	if d.WentBack == nil {
		d.WentBack = func(string, string, string) {}
	}
	if d.Timeout <= 0 {
		d.Timeout = access.Timeout
	}
	d.Clock = cmp.Or[clock.PassiveClock](d.Clock, clock.RealClock{})
	if d.Metrics == nil {
		d.Metrics = ctrlmetrics.Registry
	}
}

// workers returns the number of Works of a cluster that are reconciled at a time.
func (d *Deps) workers() int { return 2 * d.Workers }

// Controller reconciles the Works of all clusters.
type Controller struct {
	deps      Deps
	client    client.Client
	live      client.Reader
	finalizer *finalizer
	status    *statusWriter
	relay     *relay
	events    events
	duration  *prometheus.HistogramVec
	writes    *apply.Metrics
	hasher    member.Hasher
	revisions ruleRevisions
	runners   runners
}

// New returns a controller that writes with c and reads with live what the cache may not
// have yet.
func New(c client.Client, live client.Reader, applied, observed record.EventRecorder, d Deps) *Controller {
	d.complete()
	out := &Controller{
		deps: d, client: c, live: live, finalizer: &finalizer{client: c, live: live}, hasher: member.NewHasher(),
		events: newEvents(applied, observed, d),
		writes: apply.NewMetrics(d.Metrics),
		duration: metrics.Register(d.Metrics, prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "work_sync_workload_duration_seconds", Help: "Time to apply the objects of a Work.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 12),
		}, []string{"result"})),
	}
	out.status = newStatusWriter(out)
	out.relay = &relay{client: c, clock: d.Clock, events: out.events, accept: d.Accept, cluster: out.cluster}
	return out
}

// Setup adds the controller to the manager. It runs while the manager is the leader.
func Setup(_ context.Context, mgr manager.Manager, d Deps) error {
	if d.SuccessDelay == 0 && !d.EventMode.All() {
		d.SuccessDelay = successDelay
	}
	if d.Events == nil {
		d.Events = mgr.GetEventRecorderFor
	}
	c := New(mgr.GetClient(), mgr.GetAPIReader(), d.Events(Name), d.Events(StatusName), d)
	if err := mgr.Add(manager.RunnableFunc(func(ctx context.Context) error { return c.run(ctx, mgr.GetCache()) })); err != nil {
		return fmt.Errorf("adding the %s: %w", Name, err)
	}
	return nil
}

// cluster returns the Cluster from the cache, or nil.
func (c *Controller) cluster(ctx context.Context, name string) (*clusterv1alpha1.Cluster, error) {
	cluster := &clusterv1alpha1.Cluster{}
	err := c.client.Get(ctx, client.ObjectKey{Name: name}, cluster, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading cluster %s: %w", name, err)
	}
	return cluster, nil
}

// interpreter returns the interpreter for the objects of a cluster: the limits of the
// time that objects take to interpret are per cluster.
func (c *Controller) interpreter(cluster string) Interpreter {
	if i, ok := c.deps.Interpreter.(*interpreter.Interpreter); ok {
		return i.ForCluster(cluster)
	}
	return c.deps.Interpreter
}

// runner returns the runner of a cluster. It is started when it is needed first.
func (c *Controller) runner(ctx context.Context, cluster string) *runner {
	return c.runners.getOrAdd(cluster, func() *runner {
		r := newRunner(ctx, c, cluster)
		r.start(c.deps.workers())
		return r
	})
}

// retire stops the runner of a cluster that is gone with its last Work. If the cluster
// is back by then, another runner takes its Works.
func (c *Controller) retire(ctx context.Context, r *runner) {
	if c.runners.remove(r) && ctx.Err() == nil {
		c.enqueueWorks(ctx, r.cluster)
	}
}
