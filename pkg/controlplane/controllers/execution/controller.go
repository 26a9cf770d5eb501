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
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	recording "github.com/karmada-toolkit/karmada/internal/events"
	"github.com/karmada-toolkit/karmada/internal/metrics"
	"github.com/karmada-toolkit/karmada/internal/status"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/execution/apply"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/execution/member"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/execution/workstatus"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/interpretation/notify"
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
		status: status.NewWriter(status.Options[*workv1alpha1.Work, *workv1alpha1.WorkStatus]{
			Get:    func(w *workv1alpha1.Work) *workv1alpha1.WorkStatus { return &w.Status },
			Client: c, Clock: d.Clock,
		}),
		writes: apply.NewMetrics(d.Metrics),
		duration: metrics.Register(d.Metrics, prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "work_sync_workload_duration_seconds", Help: "Time to apply the objects of a Work.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 12),
		}, []string{"result"})),
	}
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
	c.deps.Stuck.clear(r.cluster, "")
	if c.runners.remove(r) && ctx.Err() == nil {
		c.enqueueWorks(ctx, r.cluster)
	}
}

// run watches Clusters and Works until ctx ends.
func (c *Controller) run(ctx context.Context, informers cache.Informers) error {
	clusters, err := informers.GetInformer(ctx, &clusterv1alpha1.Cluster{})
	if err != nil {
		return fmt.Errorf("watching clusters: %w", err)
	}
	works, err := informers.GetInformer(ctx, &workv1alpha1.Work{})
	if err != nil {
		return fmt.Errorf("watching works: %w", err)
	}
	onCluster, err := clusters.AddEventHandler(c.clusterHandler(ctx))
	if err != nil {
		return fmt.Errorf("watching clusters: %w", err)
	}
	onWork, err := works.AddEventHandler(c.workHandler(ctx))
	if err != nil {
		return fmt.Errorf("watching works: %w", err)
	}
	notify.Subscribe(c.deps.Interpreter, c.requeueAffected)
	<-ctx.Done()
	_ = clusters.RemoveEventHandler(onCluster)
	_ = works.RemoveEventHandler(onWork)
	c.runners.stop()
	return nil
}

// requeueAffected enqueues the Works with objects of kinds whose rules changed.
func (c *Controller) requeueAffected(affects func(schema.GroupVersionKind) bool) {
	c.revisions.advance(affects)
	for _, r := range c.runners.all() {
		r.queue.addLow(r.informers.Works(affects)...)
	}
}

func (c *Controller) workHandler(ctx context.Context) toolscache.ResourceEventHandler {
	enqueue := func(work *workv1alpha1.Work, initial bool) {
		cluster, err := names.ClusterOfExecutionNamespace(work.Namespace)
		switch {
		case err != nil:
		case initial:
			c.runner(ctx, cluster).queue.addLow(work.Name)
		default:
			c.runner(ctx, cluster).queue.add(work.Name)
		}
	}
	return controllers.Handler[*workv1alpha1.Work]{
		Added: enqueue,
		Updated: func(before, work *workv1alpha1.Work) {
			if workChanged(before, work) {
				enqueue(work, false)
			}
			c.relay.workChanged(ctx, before, work)
		},
		Deleted: func(work *workv1alpha1.Work) { enqueue(work, false) },
	}
}

// workChanged reports whether more than the status of a Work changed. After a restore of
// the control plane from a backup, the status is an older one too, and a generation may
// have other manifests than before.
func workChanged(before, now *workv1alpha1.Work) bool {
	return before.Generation != now.Generation || before.UID != now.UID ||
		!before.DeletionTimestamp.Equal(now.DeletionTimestamp) ||
		!slices.Equal(before.Finalizers, now.Finalizers) || before.Annotations[workv1alpha2.WantedAnnotation] != now.Annotations[workv1alpha2.WantedAnnotation] ||
		status.Newer(before.ResourceVersion, now.ResourceVersion) ||
		!sameManifests(before.Spec.Workload.Manifests, now.Spec.Workload.Manifests)
}

func sameManifests(a, b []workv1alpha1.Manifest) bool {
	return slices.EqualFunc(a, b, func(a, b workv1alpha1.Manifest) bool { return bytes.Equal(a.Raw, b.Raw) })
}

func (c *Controller) clusterHandler(ctx context.Context) toolscache.ResourceEventHandler {
	return controllers.Handler[*clusterv1alpha1.Cluster]{
		Added:   func(cluster *clusterv1alpha1.Cluster, _ bool) { c.clusterChanged(ctx, nil, cluster) },
		Updated: func(before, cluster *clusterv1alpha1.Cluster) { c.clusterChanged(ctx, before, cluster) },
		Deleted: func(cluster *clusterv1alpha1.Cluster) { c.clusterDeleted(ctx, cluster.Name) },
	}
}

// clusterChanged enqueues the Works of a cluster: all of them when it becomes Ready, is
// being deleted or its spec changed; those that failed when it serves other types.
func (c *Controller) clusterChanged(ctx context.Context, before, now *clusterv1alpha1.Cluster) {
	r := c.runners.get(now.Name)
	if before == nil {
		c.enqueueWorks(ctx, now.Name)
		return
	}
	becameReady := now.Ready() && !before.Ready()
	if becameReady || before.UID != now.UID || before.Generation != now.Generation || !before.DeletionTimestamp.Equal(now.DeletionTimestamp) {
		if r != nil && becameReady {
			r.informers.Retry()
		}
		c.enqueueWorks(ctx, now.Name)
		return
	}
	if r != nil && !equality.Semantic.DeepEqual(before.Status.APIEnablements, now.Status.APIEnablements) {
		r.informers.Retry()
		r.queue.addLow(r.works.failing()...)
	}
}

// clusterDeleted enqueues the Works of a cluster, and stops its runner if there are none.
func (c *Controller) clusterDeleted(ctx context.Context, cluster string) {
	c.relay.forget(cluster)
	r := c.runners.get(cluster)
	if c.enqueueWorks(ctx, cluster) == 0 && r != nil {
		c.retire(ctx, r)
	}
}

// enqueueWorks enqueues all Works of a cluster and returns their number; -1 if that is
// unknown.
func (c *Controller) enqueueWorks(ctx context.Context, cluster string) int {
	var works workv1alpha1.WorkList
	if err := c.client.List(ctx, &works, client.InNamespace(names.ExecutionNamespace(cluster)), client.UnsafeDisableDeepCopy); err != nil {
		return -1
	}
	if len(works.Items) == 0 {
		return 0
	}
	keys := make([]string, len(works.Items))
	for i := range works.Items {
		keys[i] = works.Items[i].Name
	}
	c.runner(ctx, cluster).queue.addLow(keys...)
	return len(keys)
}

// runners are the runners of the clusters. It is safe for concurrent use.
type runners struct {
	mu        sync.Mutex
	byCluster map[string]*runner
}

// get returns the runner of a cluster, or nil.
func (r *runners) get(cluster string) *runner {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byCluster[cluster]
}

// getOrAdd returns the runner of a cluster. If there is none, it adds the one that start
// returns.
func (r *runners) getOrAdd(cluster string, start func() *runner) *runner {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byCluster[cluster] == nil {
		if r.byCluster == nil {
			r.byCluster = map[string]*runner{}
		}
		r.byCluster[cluster] = start()
	}
	return r.byCluster[cluster]
}

// all returns the runners, in no order.
func (r *runners) all() []*runner {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Values(r.byCluster))
}

// remove stops a runner, and reports whether it was still the one of its cluster: that of a later cluster of this name stays.
func (r *runners) remove(old *runner) bool {
	r.mu.Lock()
	current := r.byCluster[old.cluster] == old
	if current {
		delete(r.byCluster, old.cluster)
	}
	r.mu.Unlock()
	if current {
		old.stop()
	}
	return current
}

// stop stops all runners.
func (r *runners) stop() {
	for _, runner := range r.all() {
		r.remove(runner)
	}
}
