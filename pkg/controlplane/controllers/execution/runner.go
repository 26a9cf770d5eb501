package execution

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/karmada-toolkit/karmada/internal/debounce"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/interpreter"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
)

// runner serves the Works of one cluster.
type runner struct {
	c                  *Controller
	cluster, namespace string
	queue              priorityqueue.PriorityQueue[string]
	log                logr.Logger
	waiting            debounce.Backlog[string]

	base   context.Context //nolint:containedctx // the life of the controller
	ctx    context.Context //nolint:containedctx // the life of the mirrors, which start when a Work needs them
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu     sync.Mutex
	member *access.Member
	kinds  map[schema.GroupVersionResource]*kind
	works  map[string]*state
}

func newRunner(ctx context.Context, c *Controller, cluster string) *runner {
	log := ctrllog.FromContext(ctx).WithName(Name).WithValues("Cluster", klog.KRef("", cluster))
	r := &runner{
		base: ctx, c: c, cluster: cluster, namespace: names.ExecutionNamespace(cluster), log: log,
		kinds: map[schema.GroupVersionResource]*kind{},
		works: map[string]*state{},
		queue: priorityqueue.New("execution-"+cluster, func(o *priorityqueue.Opts[string]) {
			o.RateLimiter = workqueue.NewTypedItemExponentialFailureRateLimiter[string](c.deps.RetryBase, c.deps.RetryMax)
			o.Log = log
		}),
	}
	r.ctx, r.cancel = context.WithCancel(ctrllog.IntoContext(ctx, log))
	return r
}

// interpreter returns the interpreter for the objects of the cluster: objects that are
// slow to interpret cost that cluster only.
func (r *runner) interpreter() Interpreter {
	if i, ok := r.c.deps.Interpreter.(*interpreter.Interpreter); ok {
		return i.ForCluster(r.cluster)
	}
	return r.c.deps.Interpreter
}

func (r *runner) start(workers int) {
	for range workers {
		r.done.Go(func() {
			for r.next() {
			}
		})
	}
}

func (r *runner) stop() {
	r.cancel()
	r.queue.ShutDown()
	r.done.Wait()
}

// next handles one Work and says whether there will be more.
func (r *runner) next() bool {
	name, priority, shutdown := r.queue.GetWithPriority()
	if shutdown {
		return false
	}
	defer r.queue.Done(name)
	after, err := r.sync(r.ctx, name)
	if r.ctx.Err() != nil {
		return true
	}
	opts := priorityqueue.AddOpts{Priority: new(priority)}
	if err != nil {
		r.log.V(2).Info("Work failed, trying again", "Work", klog.KRef(r.namespace, name), "err", err)
		opts.RateLimited = true
		r.queue.AddWithOpts(opts, name)
	} else {
		r.queue.Forget(name)
	}
	if after > 0 {
		opts.RateLimited, opts.After = false, after
		r.queue.AddWithOpts(opts, name)
	}
	return true
}

// state returns what is remembered of a Work. What was remembered of an earlier
// one with the same name is dropped.
func (r *runner) state(name string, uid types.UID) *state {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.works[name]
	if s != nil && s.uid != uid {
		r.releaseLocked(name, s)
		s = nil
	}
	if s == nil {
		s = &state{uid: uid, gone: map[types.UID]bool{}}
		r.works[name] = s
	}
	return s
}

// forget drops what is remembered of a Work.
func (r *runner) forget(name string) {
	r.waiting.Forget(name)
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.works[name]; s != nil {
		r.releaseLocked(name, s)
		delete(r.works, name)
	}
}

// rebind takes over a member that was opened anew. The mirrors of the old one
// stop; what they showed is seen again by those that replace them.
func (r *runner) rebind(member *access.Member) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.member == member {
		return
	}
	r.member = member
	for _, k := range r.kinds {
		k.cancel()
		r.mirrorLocked(k)
	}
}

// retryMirrors has the mirrors that wait after a failure try at once.
func (r *runner) retryMirrors() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range r.kinds {
		k.mirror.Retry()
	}
}

// wakeFailed enqueues the Works whose last attempt failed.
func (r *runner) wakeFailed() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, s := range r.works {
		if s.failing.Load() {
			r.queue.AddWithOpts(priorityqueue.AddOpts{Priority: new(background)}, name)
		}
	}
}

// bounded limits one request to the member.
func (r *runner) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, r.c.deps.Timeout)
}

// later enqueues a Work for when a burst of events is over.
func (r *runner) later(name string, after time.Duration) {
	r.queue.AddWithOpts(priorityqueue.AddOpts{After: after}, name)
}
