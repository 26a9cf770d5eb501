package execution

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/execution/apply"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/execution/member"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/execution/workstatus"
	bindingworks "github.com/karmada-toolkit/karmada/pkg/controlplane/works"
	"github.com/karmada-toolkit/karmada/pkg/domain/services"
)

// statusDelay is how long a change of the status of an object waits for the next one:
// controllers in members write several in a row.
const statusDelay = 50 * time.Millisecond

// leavingWorkers is the number of workers that a cluster gets in addition while it leaves: their requests are small, and
// users wait for the removal of all its objects.
const leavingWorkers = 20

// runner reconciles the Works of one cluster.
type runner struct {
	deps               *Deps
	client             client.Client
	live               client.Reader
	finalizer          *finalizer
	duration           *prometheus.HistogramVec
	cluster, namespace string
	// current returns a Cluster, or nil; retire stops the runner of a cluster that is gone with its last Work.
	current func(ctx context.Context, name string) (*clusterv1alpha1.Cluster, error)
	retire  func(*runner)

	ctx    context.Context //nolint:containedctx // the life of the workers and informers
	cancel context.CancelFunc

	queue     *queue
	works     *works
	informers *member.Informers
	applier   *applier
	reporter  *reporter
	leaving   sync.Once
}

func newRunner(ctx context.Context, c *Controller, cluster string) *runner {
	log := ctrllog.FromContext(ctx).WithName(Name).WithValues("Cluster", klog.KRef("", cluster))
	tenant := bindingworks.Tenant(ctx, c.client, services.ServiceNamespaceLabel, services.MCSNamespaceLabel)
	rules := c.interpreter(cluster)
	r := &runner{
		deps: &c.deps, client: c.client, live: c.live, finalizer: c.finalizer, duration: c.duration,
		current: c.cluster, retire: func(r *runner) { c.retire(ctx, r) },
		cluster: cluster, namespace: names.ExecutionNamespace(cluster),
		queue: newQueue(cluster, c.deps.workers(), c.deps.Retry, tenant, log),
		works: &works{hasher: c.hasher, byName: map[string]*workState{}},
		reporter: &reporter{
			cluster: cluster, clock: c.deps.Clock, status: c.status, events: c.events, interpreter: rules, stuck: c.deps.Stuck, revision: c.revisions.of,
			debouncer: workstatus.NewDebouncer(c.deps.Policy),
		},
	}
	r.ctx, r.cancel = context.WithCancel(ctrllog.IntoContext(ctx, log))
	r.informers = member.NewInformers(r.ctx, member.Config{ //nolint:contextcheck // they end with the runner
		Cluster: cluster, Hasher: c.hasher, Clock: c.deps.Clock,
		Works: r.works.len, Changed: r.changed, Synced: func(works []string) { r.queue.add(works...) },
		Closed: func() { r.queue.addLow(r.works.names()...) },
	})
	r.works.informers = r.informers
	r.applier = &applier{works: r.works, retainer: rules, revision: c.revisions.of, cached: c.client, live: c.live, kept: func(namespace, occupant string) { c.events.namespaceKept(cluster, namespace, occupant) }, config: apply.Config{
		Cluster: cluster, Timeout: c.deps.Timeout, Hasher: c.hasher, Clock: c.deps.Clock, Metrics: c.writes,
		Written: func(obj *unstructured.Unstructured) { c.events.objectApplied(obj, cluster) },
	}}
	return r
}

func (r *runner) start(workers int) { r.queue.start(r.ctx, workers, r.reconcile) }

// leave starts more workers for the removal of the objects of a cluster that is being deleted.
func (r *runner) leave() {
	r.leaving.Do(func() { r.start(leavingWorkers) })
}

func (r *runner) stop() {
	r.cancel()
	r.queue.stop()
	r.informers.Stop()
}

// changed enqueues the Work of an object that changed: at once when its content did, a
// little later when only its status did.
func (r *runner) changed(old, now *member.Snapshot) {
	owner := now
	if now == nil || now.Work.Name == "" {
		owner = old
	}
	if owner == nil || owner.Work.Namespace != r.namespace || owner.Work.Name == "" {
		return
	}
	work := owner.Work.Name
	replaced := old != nil && (now == nil || old.UID != now.UID)
	if replaced {
		r.works.deleted(work, old.UID)
	}
	switch {
	case replaced, old != nil && old.Hash != now.Hash:
		r.queue.add(work)
	case old == nil || !old.SameStatus(now):
		r.queue.addAfter(work, statusDelay)
	}
}

// forget drops the state of a Work.
func (r *runner) forget(work string) {
	r.deps.Stuck.clear(r.cluster, work)
	r.reporter.debouncer.Forget(work)
	r.works.forget(work)
}

// queue holds the names of the Works of one cluster that are to be reconciled, and runs
// the workers. Each cluster has its own, so that no cluster delays another one.
type queue struct {
	items     priorityqueue.PriorityQueue[string]
	namespace string
	log       logr.Logger
	workers   sync.WaitGroup

	mu      sync.Mutex
	stopped bool
}

// newQueue returns the queue of a cluster, whose workers the namespaces of the templates share: tenant returns that of a Work.
func newQueue(cluster string, workers int, retry controllers.Retry, tenant func(reconcile.Request) string, log logr.Logger) *queue {
	namespace := names.ExecutionNamespace(cluster)
	return &queue{
		namespace: namespace, log: log,
		items: controllers.NewQueue(controllers.QueueOptions[string]{
			Name: "execution-" + cluster, Workers: workers, RateLimiter: controllers.RateLimiter[string](retry),
			Tenant: func(work string) string {
				return tenant(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: work}})
			},
		}),
	}
}

// reconcileFunc reconciles a Work. It returns when to reconcile it again if nothing
// happens until then: never if 0.
type reconcileFunc func(ctx context.Context, name string) (time.Duration, error)

// start starts workers, unless the queue was stopped.
func (q *queue) start(ctx context.Context, workers int, reconcile reconcileFunc) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.stopped {
		return
	}
	for range workers {
		q.workers.Go(func() {
			for q.next(ctx, reconcile) {
			}
		})
	}
}

func (q *queue) stop() {
	q.mu.Lock()
	q.stopped = true
	q.mu.Unlock()
	q.items.ShutDown()
	q.workers.Wait()
}

// next reconciles one Work. It returns false after the queue was stopped.
func (q *queue) next(ctx context.Context, reconcile reconcileFunc) bool {
	name, priority, shutdown := q.items.GetWithPriority()
	if shutdown {
		return false
	}
	defer q.items.Done(name)
	after, err := reconcile(ctx, name)
	if ctx.Err() != nil {
		return true
	}
	opts := priorityqueue.AddOpts{Priority: new(priority)}
	if err != nil {
		q.log.V(2).Info("Work failed, trying again", "Work", klog.KRef(q.namespace, name), "err", err)
		opts.RateLimited = true
		q.items.AddWithOpts(opts, name)
	} else {
		q.items.Forget(name)
	}
	if after > 0 {
		opts.RateLimited, opts.After = false, after
		q.items.AddWithOpts(opts, name)
	}
	return true
}

// add enqueues Works.
func (q *queue) add(works ...string) {
	q.items.AddWithOpts(priorityqueue.AddOpts{}, works...)
}

// addLow enqueues Works behind those that users changed: those that exist at the start,
// and those that a cluster missed while it was not Ready.
func (q *queue) addLow(works ...string) {
	controllers.AddLowPriority(q.items, works...)
}

// addAfter enqueues a Work after a delay.
func (q *queue) addAfter(work string, delay time.Duration) {
	q.items.AddWithOpts(priorityqueue.AddOpts{After: delay}, work)
}
