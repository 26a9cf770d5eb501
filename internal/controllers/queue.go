package controllers

import (
	"cmp"
	"container/heap"
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
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
	// Metrics is where they are registered. Default: the registry of controller-runtime.
	Metrics prometheus.Registerer
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
func NewQueue[T comparable](o QueueOptions[T]) *Queue[T] {
	o.Clock = cmp.Or[clock.WithTicker](o.Clock, clock.RealClock{})
	if o.RateLimiter == nil {
		o.RateLimiter = RateLimiter[T](Retry{})
	}
	if o.Tenant == nil {
		o.Tenant = func(T) string { return "" }
	}
	q := &Queue[T]{
		limiter: limiter[T]{o.RateLimiter}, tenant: o.Tenant, clock: o.Clock,
		ready: NewTurns[T](max(1, o.Workers), o.Guests), working: map[T]*worked{}, delayed: map[T]*delayedKey[T]{},
		later: ordered[*delayedKey[T]]{
			less:  func(a, b *delayedKey[T]) bool { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.order, b.order)) < 0 },
			moved: func(d *delayedKey[T], index int) { d.index = index },
		},
		earlier: NewTrigger(), stop: make(chan struct{}),
	}
	if o.Name != "" {
		q.metrics = metrics.NewWorkQueue(cmp.Or[prometheus.Registerer](o.Metrics, ctrlmetrics.Registry), o.Name, o.Clock)
	}
	q.wait = sync.NewCond(&q.mu)
	go queueRun(q)
	return q
}

// Wait is what a key waits for that is not ready.
type Wait int

// The waits.
const (
	WaitTime   Wait = iota // a time
	WaitRetry              // a time after a failure
	WaitChange             // a time, or Wake
)

// delayedKey is a key that waits.
type delayedKey[T comparable] struct {
	key      T
	wait     Wait
	at       time.Time
	order    uint64
	priority int
	index    int
}

// worked is a key that a worker has.
type worked struct {
	tenant string
	// priority is that with which it was handed out, and next that with which it is handed out again if it was added meanwhile.
	priority, next int
	again          bool
	// claimed is set if it takes no worker.
	claimed bool
}

// Queue is the queue that NewQueue returns.
type Queue[T comparable] struct {
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

	earlier Trigger // the first of later changed
	stop    chan struct{}
}

var _ priorityqueue.PriorityQueue[string] = &Queue[string]{}

// AddWithOpts implements priorityqueue.PriorityQueue.
func (q *Queue[T]) AddWithOpts(o priorityqueue.AddOpts, keys ...T) {
	for _, key := range keys {
		after, wait := o.After, WaitTime
		if o.RateLimited {
			if limited := q.limiter.limiter.When(key); after == 0 || limited < after {
				after, wait = limited, WaitRetry
			}
		}
		queueAdd(q, key, ptr.Deref(o.Priority, 0), after, wait)
	}
}

func queueAdd[T comparable](q *Queue[T], key T, priority int, after time.Duration, wait Wait) {
	tenant := q.tenant(key)
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	if after > 0 {
		q.metrics.Retried()
		queueAddLater(q, key, priority, q.clock.Now().Add(after), wait)
		return
	}
	if d := q.delayed[key]; d != nil {
		queueTake(q, d)
		priority = max(priority, d.priority)
	}
	queueAddReady(q, key, tenant, priority)
}

// queueTake takes a key out of those that wait.
func queueTake[T comparable](q *Queue[T], d *delayedKey[T]) {
	heap.Remove(&q.later, d.index)
	delete(q.delayed, d.key)
}

// queueAddLater adds a key that waits for a time, unless it is ready already.
func queueAddLater[T comparable](q *Queue[T], key T, priority int, at time.Time, wait Wait) {
	if current, ok := q.ready.Priority(key); ok {
		queueRaise(q, key, current, priority)
		return
	}
	if w := q.working[key]; w != nil && w.again {
		queueRepeat(q, key, w, max(w.next, priority))
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
		d = &delayedKey[T]{key: key, wait: wait, at: at, order: q.sequence, priority: priority}
		q.delayed[key] = d
		heap.Push(&q.later, d)
	}
	if q.later.items[0].key == key {
		q.earlier.Fire()
	}
}

// queueAddReady adds a key that is due.
func queueAddReady[T comparable](q *Queue[T], key T, tenant string, priority int) {
	if w := q.working[key]; w != nil {
		if w.again {
			priority = max(priority, w.next)
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
func queueRaise[T comparable](q *Queue[T], key T, current, priority int) {
	if priority > current {
		q.metrics.AddedWith(key, priority)
		q.ready.SetPriority(key, priority, true)
	}
}

// queueRepeat has a key that a worker has handed out again afterwards.
func queueRepeat[T comparable](q *Queue[T], key T, w *worked, priority int) {
	if !w.again {
		q.again++
	}
	q.metrics.AddedWith(key, priority)
	w.again, w.next = true, priority
}

// queueRun makes delayed keys ready until the queue is shut down.
func queueRun[T comparable](q *Queue[T]) {
	ticker := q.clock.NewTicker(unfinishedPeriod)
	defer ticker.Stop()
	for {
		var due <-chan time.Time
		stop := func() bool { return true }
		if wait, ok := q.Sweep(); ok {
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

// Sweep makes the keys ready whose time has come, and returns the time until the next one, if there is one. The queue calls it by itself.
func (q *Queue[T]) Sweep() (time.Duration, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.later.Len() > 0 {
		first := q.later.items[0]
		if wait := first.at.Sub(q.clock.Now()); wait > 0 {
			return wait, true
		}
		queueTake(q, first)
		queueAddReady(q, first.key, q.tenant(first.key), first.priority)
	}
	return 0, false
}

// GetWithPriority implements priorityqueue.PriorityQueue.
func (q *Queue[T]) GetWithPriority() (key T, priority int, shutdown bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for !q.closed {
		if key, tenant, priority, ok := q.ready.Pop(); ok {
			q.working[key] = &worked{tenant: tenant, priority: priority}
			q.metrics.Started(key)
			return key, priority, false
		}
		q.wait.Wait()
	}
	return key, 0, true
}

// Get implements workqueue.TypedInterface.
func (q *Queue[T]) Get() (key T, shutdown bool) {
	key, _, shutdown = q.GetWithPriority()
	return key, shutdown
}

// Done implements workqueue.TypedInterface.
func (q *Queue[T]) Done(key T) {
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
		q.ready.Push(key, w.tenant, w.next)
	}
	if !w.claimed {
		q.ready.Release(w.tenant)
	}
	if q.ready.Eligible() {
		q.wait.Signal()
	}
}

// Claim has the caller work on a key, as GetWithPriority does, until Done. It takes no worker. It reports false for a key that is in the queue
// or that a worker has.
func (q *Queue[T]) Claim(key T) bool {
	tenant := q.tenant(key)
	q.mu.Lock()
	defer q.mu.Unlock()
	_, ready := q.ready.Priority(key)
	if q.closed || ready || q.working[key] != nil || q.delayed[key] != nil {
		return false
	}
	q.working[key] = &worked{tenant: tenant, claimed: true}
	q.metrics.Started(key)
	return true
}

// Requeue makes a key that a worker has wait, with the priority with which it was handed out.
func (q *Queue[T]) Requeue(key T, after time.Duration, wait Wait) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if w := q.working[key]; w != nil && !q.closed {
		if wait == WaitRetry {
			q.metrics.Retried()
		}
		queueAddLater(q, key, w.priority, q.clock.Now().Add(after), wait)
	}
}

// Wake makes the keys ready that wait for a change that concerns them. Those that a worker has come again: what they are about to wait for may
// have happened already.
func (q *Queue[T]) Wake(concerned func(T) bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for key, w := range q.working {
		if !w.again && concerned(key) {
			queueRepeat(q, key, w, w.priority)
		}
	}
	for key, d := range q.delayed {
		if d.wait == WaitChange && concerned(key) {
			queueTake(q, d)
			queueAddReady(q, key, q.tenant(key), d.priority)
		}
	}
}

// SetPriority changes the priority of a key that is in the queue, to a lower one, too.
func (q *Queue[T]) SetPriority(key T, priority int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if current, ok := q.ready.Priority(key); ok && current != priority {
		q.metrics.AddedWith(key, priority)
		q.ready.SetPriority(key, priority, false)
	}
	if d := q.delayed[key]; d != nil {
		d.priority = priority
	}
	if w := q.working[key]; w != nil && w.again {
		w.next = priority
	}
}

// Ready returns the number of keys that wait for nothing but a worker. Len has those, too, that a worker has and that come again.
func (q *Queue[T]) Ready() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.ready.Len()
}

// Waits reports whether a key waits for a change.
func (q *Queue[T]) Waits(key T) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	d := q.delayed[key]
	return d != nil && d.wait == WaitChange
}

// Waiting returns the number of keys that wait for something.
func (q *Queue[T]) Waiting(wait Wait) (n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, d := range q.delayed {
		if d.wait == wait {
			n++
		}
	}
	return n
}

// Add implements workqueue.TypedInterface.
func (q *Queue[T]) Add(key T) { queueAdd(q, key, 0, 0, WaitTime) }

// AddAfter implements workqueue.TypedDelayingInterface.
func (q *Queue[T]) AddAfter(key T, after time.Duration) { queueAdd(q, key, 0, after, WaitTime) }

// AddRateLimited implements workqueue.TypedRateLimitingInterface.
func (q *Queue[T]) AddRateLimited(key T) { queueAdd(q, key, 0, q.limiter.limiter.When(key), WaitRetry) }

// limiter has the methods of a queue that are those of its rate limiter.
type limiter[T comparable] struct {
	limiter workqueue.TypedRateLimiter[T]
}

// Forget implements workqueue.TypedRateLimitingInterface.
func (l limiter[T]) Forget(key T) { l.limiter.Forget(key) }

// NumRequeues implements workqueue.TypedRateLimitingInterface.
func (l limiter[T]) NumRequeues(key T) int { return l.limiter.NumRequeues(key) }

// Len implements workqueue.TypedInterface: keys that wait for their time are not counted.
func (q *Queue[T]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.ready.Len() + q.again
}

// ShuttingDown implements workqueue.TypedInterface.
func (q *Queue[T]) ShuttingDown() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closed
}

// ShutDown implements workqueue.TypedInterface. What is ready is not handed out any more.
func (q *Queue[T]) ShutDown() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed {
		q.closed = true
		close(q.stop)
		q.wait.Broadcast()
	}
}

// ShutDownWithDrain implements workqueue.TypedInterface. It does not drain, as the queue of controller-runtime does not.
func (q *Queue[T]) ShutDownWithDrain() { q.ShutDown() }

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
