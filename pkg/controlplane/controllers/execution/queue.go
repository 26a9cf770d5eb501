package execution

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
)

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
