package controllers

import (
	"cmp"
	"container/heap"
	"context"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/log"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/karmada-toolkit/karmada/internal/metrics"
)

// unfinishedPeriod is the time between two computations of the metrics about work that goes on.
const unfinishedPeriod = 500 * time.Millisecond

// QueueOptions are the options of a queue.
type QueueOptions[T comparable] struct {
	// Name is the name in metrics. Default: there are no metrics.
	Name string
	// Workers is the number of workers that take keys. Default 1.
	Workers int
	// Guests is a number of workers beside Workers. With guests one tenant holds at most Workers, else at most four fifths of
	// them. Default 0.
	Guests int
	// Tenant returns the namespace whose share of the workers a key uses; "" has no limit: it is that of objects without a
	// namespace, which administrators own. It is called once for each time that a key is added.
	Tenant func(T) string
	// RateLimiter is the one of AddRateLimited. Default: that of Retry's defaults.
	RateLimiter workqueue.TypedRateLimiter[T]
	// Clock is the real clock by default.
	Clock clock.WithTicker
}

// NewQueue returns a queue that behaves as the priority queue of controller-runtime, and in which tenants take turns: see
// Turns. No tenant holds all workers of a queue with several, and none waits for all keys of another one.
func NewQueue[T comparable](o QueueOptions[T]) priorityqueue.PriorityQueue[T] {
	o.Clock = cmp.Or[clock.WithTicker](o.Clock, clock.RealClock{})
	if o.RateLimiter == nil {
		o.RateLimiter = RateLimiter[T](Retry{})
	}
	if o.Tenant == nil {
		o.Tenant = func(T) string { return "" }
	}
	q := &queue[T]{
		limiter: limiter[T]{o.RateLimiter}, tenant: o.Tenant, clock: o.Clock,
		ready: NewTurns[T](max(1, o.Workers), o.Guests), working: map[T]*worked{}, delayed: map[T]*delayedKey[T]{},
		later: ordered[*delayedKey[T]]{
			less:  func(a, b *delayedKey[T]) bool { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.order, b.order)) < 0 },
			moved: func(d *delayedKey[T], index int) { d.index = index },
		},
		earlier: make(chan struct{}, 1), stop: make(chan struct{}),
	}
	if o.Name != "" {
		q.metrics = metrics.NewWorkQueue(ctrlmetrics.Registry, o.Name, o.Clock)
	}
	q.wait = sync.NewCond(&q.mu)
	go queueRun(q)
	return q
}

// delayedKey is a key that waits for its time.
type delayedKey[T comparable] struct {
	key      T
	at       time.Time
	order    uint64
	priority int
	index    int
}

// worked is a key that a worker has.
type worked struct {
	tenant string
	// again is set when the key was added meanwhile.
	again    bool
	priority int
}

type queue[T comparable] struct {
	limiter[T]

	tenant  func(T) string
	clock   clock.WithTicker
	metrics *metrics.WorkQueue // nil without a name

	mu       sync.Mutex
	wait     *sync.Cond
	ready    *Turns[T]
	working  map[T]*worked
	delayed  map[T]*delayedKey[T]
	later    ordered[*delayedKey[T]]
	sequence uint64
	again    int
	closed   bool

	earlier chan struct{} // the first of later changed
	stop    chan struct{}
}

var _ priorityqueue.PriorityQueue[string] = &queue[string]{}

// AddWithOpts implements priorityqueue.PriorityQueue.
func (q *queue[T]) AddWithOpts(o priorityqueue.AddOpts, keys ...T) {
	for _, key := range keys {
		after := o.After
		if o.RateLimited {
			if limited := q.limiter.limiter.When(key); after == 0 || limited < after {
				after = limited
			}
		}
		queueAdd(q, key, ptr.Deref(o.Priority, 0), after)
	}
}

func queueAdd[T comparable](q *queue[T], key T, priority int, after time.Duration) {
	tenant := q.tenant(key)
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	if after > 0 {
		q.metrics.Retried()
		queueAddLater(q, key, priority, q.clock.Now().Add(after))
		return
	}
	if d := q.delayed[key]; d != nil {
		heap.Remove(&q.later, d.index)
		delete(q.delayed, key)
		priority = max(priority, d.priority)
	}
	queueAddReady(q, key, tenant, priority)
}

// queueAddLater adds a key that waits for a time, unless it is ready already.
func queueAddLater[T comparable](q *queue[T], key T, priority int, at time.Time) {
	if current, ok := q.ready.Priority(key); ok {
		queueRaise(q, key, current, priority)
		return
	}
	if w := q.working[key]; w != nil && w.again {
		queueRepeat(q, key, w, max(w.priority, priority))
		return
	}
	if d := q.delayed[key]; d != nil {
		d.priority = max(d.priority, priority)
		if at.Before(d.at) {
			d.at = at
			heap.Fix(&q.later, d.index)
		}
	} else {
		q.sequence++
		d = &delayedKey[T]{key: key, at: at, order: q.sequence, priority: priority}
		q.delayed[key] = d
		heap.Push(&q.later, d)
	}
	if q.later.items[0].key == key {
		select {
		case q.earlier <- struct{}{}:
		default:
		}
	}
}

// queueAddReady adds a key that is due.
func queueAddReady[T comparable](q *queue[T], key T, tenant string, priority int) {
	if w := q.working[key]; w != nil {
		if w.again {
			priority = max(priority, w.priority)
		}
		queueRepeat(q, key, w, priority)
		return
	}
	if current, ok := q.ready.Priority(key); ok {
		queueRaise(q, key, current, priority)
		return
	}
	q.metrics.AddedWith(key, priority)
	q.ready.Push(key, tenant, priority)
	q.wait.Signal()
}

// queueRaise gives a key that is ready a higher priority.
func queueRaise[T comparable](q *queue[T], key T, current, priority int) {
	if priority > current {
		q.metrics.AddedWith(key, priority)
		q.ready.SetPriority(key, priority, true)
	}
}

// queueRepeat has a key that a worker has handed out again afterwards.
func queueRepeat[T comparable](q *queue[T], key T, w *worked, priority int) {
	if !w.again {
		q.again++
	}
	q.metrics.AddedWith(key, priority)
	w.again, w.priority = true, priority
}

// queueRun makes delayed keys ready until the queue is shut down.
func queueRun[T comparable](q *queue[T]) {
	ticker := q.clock.NewTicker(unfinishedPeriod)
	defer ticker.Stop()
	for {
		var due <-chan time.Time
		stop := func() bool { return true }
		if wait, ok := queueMoveDue(q); ok {
			timer := q.clock.NewTimer(wait)
			due, stop = timer.C(), timer.Stop
		}
		select {
		case <-q.stop:
			stop()
			return
		case <-due:
		case <-q.earlier:
		case <-ticker.C():
			q.metrics.Refresh()
		}
		stop()
	}
}

// queueMoveDue makes the keys ready whose time has come, and returns the time until the next one, if there is one.
func queueMoveDue[T comparable](q *queue[T]) (time.Duration, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.later.Len() > 0 {
		first := q.later.items[0]
		if wait := first.at.Sub(q.clock.Now()); wait > 0 {
			return wait, true
		}
		heap.Pop(&q.later)
		delete(q.delayed, first.key)
		queueAddReady(q, first.key, q.tenant(first.key), first.priority)
	}
	return 0, false
}

// GetWithPriority implements priorityqueue.PriorityQueue.
func (q *queue[T]) GetWithPriority() (key T, priority int, shutdown bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for !q.closed {
		if key, tenant, priority, ok := q.ready.Pop(); ok {
			q.working[key] = &worked{tenant: tenant}
			q.metrics.Started(key)
			return key, priority, false
		}
		q.wait.Wait()
	}
	return key, 0, true
}

// Get implements workqueue.TypedInterface.
func (q *queue[T]) Get() (key T, shutdown bool) {
	key, _, shutdown = q.GetWithPriority()
	return key, shutdown
}

// Done implements workqueue.TypedInterface.
func (q *queue[T]) Done(key T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	w := q.working[key]
	if w == nil {
		return
	}
	delete(q.working, key)
	q.metrics.Done(key)
	if w.again {
		q.again--
		q.ready.Push(key, w.tenant, w.priority)
	}
	q.ready.Release(w.tenant)
	if q.ready.Eligible() {
		q.wait.Signal()
	}
}

// Add implements workqueue.TypedInterface.
func (q *queue[T]) Add(key T) { queueAdd(q, key, 0, 0) }

// AddAfter implements workqueue.TypedDelayingInterface.
func (q *queue[T]) AddAfter(key T, after time.Duration) { queueAdd(q, key, 0, after) }

// AddRateLimited implements workqueue.TypedRateLimitingInterface.
func (q *queue[T]) AddRateLimited(key T) { queueAdd(q, key, 0, q.limiter.limiter.When(key)) }

// limiter has the methods of a queue that are those of its rate limiter.
type limiter[T comparable] struct {
	limiter workqueue.TypedRateLimiter[T]
}

// Forget implements workqueue.TypedRateLimitingInterface.
func (l limiter[T]) Forget(key T) { l.limiter.Forget(key) }

// NumRequeues implements workqueue.TypedRateLimitingInterface.
func (l limiter[T]) NumRequeues(key T) int { return l.limiter.NumRequeues(key) }

// Len implements workqueue.TypedInterface: keys that wait for their time are not counted.
func (q *queue[T]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.ready.Len() + q.again
}

// ShuttingDown implements workqueue.TypedInterface.
func (q *queue[T]) ShuttingDown() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closed
}

// ShutDown implements workqueue.TypedInterface. What is ready is not handed out any more.
func (q *queue[T]) ShutDown() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed {
		q.closed = true
		close(q.stop)
		q.wait.Broadcast()
	}
}

// ShutDownWithDrain implements workqueue.TypedInterface. It does not drain, as the queue of controller-runtime does not.
func (q *queue[T]) ShutDownWithDrain() { q.ShutDown() }

// Run hands the keys of a queue to workers that run fn, as Work does, until ctx ends.
func Run[T comparable](ctx context.Context, q priorityqueue.PriorityQueue[T], workers int, fn func(context.Context, T) (time.Duration, error)) {
	var running sync.WaitGroup
	for range workers {
		running.Go(func() { Work(ctx, q, fn) })
	}
	<-ctx.Done()
	q.ShutDown()
	running.Wait()
}

// Work hands the keys of a queue to fn until the queue is shut down.
func Work[T comparable](ctx context.Context, q priorityqueue.PriorityQueue[T], fn func(context.Context, T) (time.Duration, error)) {
	for Next(ctx, q, fn) {
	}
}

// Next hands the next key of a queue to fn, which returns when it is due again if nothing happens until then: never if 0. After an error it is
// due again after the delay of the rate limiter, too. It reports false after the queue was shut down.
func Next[T comparable](ctx context.Context, q priorityqueue.PriorityQueue[T], fn func(context.Context, T) (time.Duration, error)) bool {
	key, priority, shutdown := q.GetWithPriority()
	if shutdown {
		return false
	}
	defer q.Done(key)
	after, err := fn(ctx, key)
	switch {
	case ctx.Err() != nil:
		return true
	case err != nil:
		log.FromContext(ctx).V(2).Info("Reconciling failed, trying again", "key", key, "err", err)
		q.AddWithOpts(priorityqueue.AddOpts{Priority: &priority, RateLimited: true}, key)
	default:
		q.Forget(key)
	}
	if after > 0 {
		q.AddWithOpts(priorityqueue.AddOpts{Priority: &priority, After: after}, key)
	}
	return true
}
