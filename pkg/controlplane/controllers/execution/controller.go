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
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	recording "github.com/karmada-toolkit/karmada/internal/events"
	"github.com/karmada-toolkit/karmada/internal/metrics"
	"github.com/karmada-toolkit/karmada/internal/resourceversion"
	"github.com/karmada-toolkit/karmada/internal/status"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/interpretation/notify"
	"github.com/karmada-toolkit/karmada/pkg/domain/execution"
	"github.com/karmada-toolkit/karmada/pkg/domain/interpreter"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
	"github.com/karmada-toolkit/karmada/pkg/member/lifetime"
)

// Name is the source of the events.
const Name = "execution-controller"

// StatusName is the source of the events about the status of objects.
const StatusName = "work-status-controller"

// Interpreter interprets objects.
type Interpreter interface {
	Retainer
	execution.Interpreter
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
	// Stuck gets the objects that are stuck in clusters. Optional.
	Stuck *Stuck
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
	if d.Stuck == nil {
		d.Stuck = &Stuck{}
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
	events    events
	duration  *prometheus.HistogramVec
	writes    *writeMetrics
	hasher    execution.Hasher
	// runners are those of the clusters that exist, and clusterless has the Works whose cluster does not exist.
	runners     *lifetime.Registry[*runner]
	clusterless priorityqueue.PriorityQueue[types.NamespacedName]
	// limiters limit the events of relayEvents.
	limiters *lifetime.Registry[*rate.Limiter]
}

// New returns a controller that writes with c and reads with live what the cache may not
// have yet.
func New(c client.Client, live client.Reader, applied, observed record.EventRecorder, d Deps) *Controller {
	d.complete()
	return &Controller{
		deps: d, client: c, live: live, finalizer: &finalizer{client: c, live: live}, hasher: execution.NewHasher(),
		events: newEvents(applied, observed, d), runners: lifetime.New(c, (*runner).stop), limiters: lifetime.New[*rate.Limiter](c, nil),
		clusterless: controllers.NewQueue(controllers.QueueOptions[types.NamespacedName]{RateLimiter: controllers.RateLimiter[types.NamespacedName](d.Retry)}),
		status: status.NewWriter(status.Options[*workv1alpha1.Work, *workv1alpha1.WorkStatus]{
			Get:    func(w *workv1alpha1.Work) *workv1alpha1.WorkStatus { return &w.Status },
			Client: c, Clock: d.Clock,
		}),
		writes: newWriteMetrics(d.Metrics),
		duration: metrics.Register(d.Metrics, prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "work_sync_workload_duration_seconds", Help: "Time to apply the objects of a Work.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 12),
		}, []string{"result"})),
	}
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

// find returns a Cluster from the cache, or nil.
func (c *Controller) find(ctx context.Context, name string) (*clusterv1alpha1.Cluster, error) {
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

// run watches Clusters and Works until ctx ends.
func (c *Controller) run(ctx context.Context, informers cache.Informers) error {
	var running sync.WaitGroup
	running.Go(func() { controllers.Run(ctx, c.clusterless, 1, c.reconcileClusterless) })
	defer running.Wait()
	defer c.runners.End()
	forgetClusters, err := controllers.Handle(ctx, informers, &clusterv1alpha1.Cluster{}, c.runners, c.limiters, c.clusterHandler(ctx))
	if err != nil {
		return err
	}
	defer forgetClusters()
	forgetWorks, err := controllers.Handle(ctx, informers, &workv1alpha1.Work{}, c.workHandler(ctx))
	if err != nil {
		return err
	}
	defer forgetWorks()
	c.runners.Sync()
	notify.Subscribe(c.deps.Interpreter, func(affects func(schema.GroupVersionKind) bool) {
		for _, r := range c.runners.All() {
			r.rulesChanged(affects)
		}
	})
	<-ctx.Done()
	return nil
}

// runner returns the runner of the cluster of a Work, or nil if there is no such cluster. It is started when it is needed first.
func (c *Controller) runner(ctx context.Context, work *workv1alpha1.Work) *runner {
	name, err := names.ClusterOfExecutionNamespace(work.Namespace)
	if err != nil {
		return nil
	}
	cluster, err := c.find(ctx, name)
	if err != nil || cluster == nil {
		return nil
	}
	r, _ := c.runners.Open(ctx, cluster, nil, func() *runner {
		r := newRunner(ctx, c, name)
		r.start(c.deps.workers())
		return r
	})
	return r
}

// enqueue enqueues a Work; behind those that users changed if low.
func (c *Controller) enqueue(ctx context.Context, work *workv1alpha1.Work, low bool) {
	switch r := c.runner(ctx, work); {
	case r == nil:
		c.clusterless.Add(types.NamespacedName{Namespace: work.Namespace, Name: work.Name})
	case low:
		r.addLow(work.Name)
	default:
		r.add(work.Name)
	}
}

// enqueueWorks enqueues the Works of a cluster that are selected.
func (c *Controller) enqueueWorks(ctx context.Context, cluster string, selected func(*workv1alpha1.Work) bool) {
	var works workv1alpha1.WorkList
	if err := c.client.List(ctx, &works, client.InNamespace(names.ExecutionNamespace(cluster)), client.UnsafeDisableDeepCopy); err != nil {
		ctrllog.FromContext(ctx).Error(err, "Listing works failed", "Cluster", klog.KRef("", cluster))
	}
	for i := range works.Items {
		if selected(&works.Items[i]) {
			c.enqueue(ctx, &works.Items[i], true)
		}
	}
}

func (c *Controller) workHandler(ctx context.Context) toolscache.ResourceEventHandler {
	return controllers.Handler[*workv1alpha1.Work]{
		Added: func(work *workv1alpha1.Work, initial bool) { c.enqueue(ctx, work, initial) },
		Updated: func(before, work *workv1alpha1.Work) {
			if workChanged(before, work) {
				c.enqueue(ctx, work, false)
			}
			c.relayEvents(ctx, before, work)
		},
		Deleted: func(work *workv1alpha1.Work) { c.enqueue(ctx, work, false) },
	}
}

// workChanged reports whether more than the status of a Work changed. After a restore of
// the control plane from a backup, the status is an older one too, and a generation may
// have other manifests than before.
func workChanged(before, now *workv1alpha1.Work) bool {
	return before.Generation != now.Generation || before.UID != now.UID ||
		!before.DeletionTimestamp.Equal(now.DeletionTimestamp) ||
		!slices.Equal(before.Finalizers, now.Finalizers) || before.Annotations[workv1alpha2.WantedAnnotation] != now.Annotations[workv1alpha2.WantedAnnotation] ||
		resourceversion.Newer(before.ResourceVersion, now.ResourceVersion) ||
		!sameManifests(before.Spec.Workload.Manifests, now.Spec.Workload.Manifests)
}

func sameManifests(a, b []workv1alpha1.Manifest) bool {
	return slices.EqualFunc(a, b, func(a, b workv1alpha1.Manifest) bool { return bytes.Equal(a.Raw, b.Raw) })
}

func (c *Controller) clusterHandler(ctx context.Context) toolscache.ResourceEventHandler {
	return controllers.Handler[*clusterv1alpha1.Cluster]{
		Added:   func(cluster *clusterv1alpha1.Cluster, _ bool) { c.enqueueWorks(ctx, cluster.Name, anyWork) },
		Updated: func(before, cluster *clusterv1alpha1.Cluster) { c.clusterChanged(ctx, before, cluster) },
		Deleted: func(cluster *clusterv1alpha1.Cluster) {
			c.deps.Stuck.clear(cluster.Name, "")
			c.enqueueWorks(ctx, cluster.Name, anyWork)
		},
	}
}

func anyWork(*workv1alpha1.Work) bool { return true }

// clusterChanged enqueues the Works of a cluster: all of them when it becomes Ready, is
// being deleted or its spec changed; those that are not applied when it serves other types.
func (c *Controller) clusterChanged(ctx context.Context, before, now *clusterv1alpha1.Cluster) {
	ready := now.Ready() && !before.Ready()
	served := !equality.Semantic.DeepEqual(before.Status.APIEnablements, now.Status.APIEnablements)
	if r, ok := c.runners.Get(now.Name); ok && (ready || served) {
		r.retry(nil)
	}
	switch {
	case ready, before.UID != now.UID, before.Generation != now.Generation, !before.DeletionTimestamp.Equal(now.DeletionTimestamp):
		c.enqueueWorks(ctx, now.Name, anyWork)
	case served:
		c.enqueueWorks(ctx, now.Name, func(work *workv1alpha1.Work) bool { return !execution.IsApplied(&work.Status) })
	}
}
