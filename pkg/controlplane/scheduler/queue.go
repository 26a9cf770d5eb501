package scheduler

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	sharedmetrics "github.com/karmada-toolkit/karmada/internal/metrics"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// Periods of the queue.
const (
	firstBackoff       = time.Second
	longestBackoff     = 10 * time.Second
	backoffSweep       = time.Second
	unschedulableSweep = 30 * time.Second
	unschedulableWait  = 5 * time.Minute
)

// key names a binding; Namespace is empty for a ClusterResourceBinding.
type key struct{ Namespace, Name string }

func keyOf(b workv1alpha2.Binding) key { return key{b.GetNamespace(), b.GetName()} }

// String is <namespace>/<name>, or <name>.
func (k key) String() string {
	if k.Namespace == "" {
		return k.Name
	}
	return k.Namespace + "/" + k.Name
}

// item is a binding in the queue.
type item struct {
	key      key
	priority int32
	// entered is when it came into the active queue, order breaks ties.
	entered  time.Time
	order    int64
	attempts int
	ready    time.Time
	// turn is set while its namespace has a worker for it.
	turn bool
}

// queue hands out bindings: the highest priority first, and of these the one that waits
// longest in each namespace. The namespaces take turns, see controllers.Turns. A binding that failed waits in backoff; one that lacks room waits in
// unschedulable until something changes. While a binding is being handled it is
// not handed out again; if it is pushed meanwhile it comes again afterwards.
type queue struct {
	clock clock.WithTicker
	// retry returns when an item that failed may be tried again.
	retry func(*item) time.Time
	// byPriority is set when priorities count and bindings that lack room wait for a
	// change; otherwise it is first come first served, and they are retried
	// like those that failed.
	byPriority bool
	// metrics may be nil.
	metrics *sharedmetrics.WorkQueue

	mu            sync.Mutex
	wait          *sync.Cond
	active        *controllers.Turns[key]
	queued        map[key]*item
	backoff       map[key]*item
	unschedulable map[key]*item
	working       map[key]*item
	dirty         map[key]int32
	sequence      int64
	closed        bool
}

// newQueue returns the queue by priority for a number of workers.
func newQueue(c clock.WithTicker, workers int) *queue {
	q := &queue{
		clock: c, byPriority: true, active: controllers.NewTurns[key](workers, 0),
		queued: map[key]*item{}, backoff: map[key]*item{}, unschedulable: map[key]*item{},
		working: map[key]*item{}, dirty: map[key]int32{},
	}
	q.retry = func(i *item) time.Time {
		delay := longestBackoff
		if i.attempts < 5 {
			delay = min(firstBackoff<<max(i.attempts-1, 0), longestBackoff)
		}
		return i.entered.Add(delay)
	}
	q.wait = sync.NewCond(&q.mu)
	return q
}

// Push adds a binding for which something has changed.
func (q *queue) Push(k key, priority int32) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.byPriority {
		priority = 0
	}
	if _, ok := q.working[k]; ok {
		q.dirty[k] = priority
		return
	}
	if i, ok := q.queued[k]; ok {
		if i.priority != priority {
			i.priority = priority
			q.active.SetPriority(k, int(priority), false)
		}
		return
	}
	delete(q.backoff, k)
	delete(q.unschedulable, k)
	q.activate(&item{key: k, priority: priority})
}

// PushAfter is Push after a delay for a binding that is not in the queue.
func (q *queue) PushAfter(k key, priority int32, delay time.Duration) {
	q.mu.Lock()
	known := holds(q, k)
	if !known {
		i := &item{key: k, ready: q.clock.Now().Add(delay)}
		if q.byPriority {
			i.priority = priority
		}
		q.backoff[k] = i
		q.metrics.Retried()
	}
	q.mu.Unlock()
	if known {
		q.Push(k, priority)
	}
}

// holds reports whether a binding is in the queue or being handled. The caller holds the lock.
func holds(q *queue, k key) bool {
	return slices.ContainsFunc([]map[key]*item{q.working, q.queued, q.backoff, q.unschedulable}, func(items map[key]*item) bool { return items[k] != nil })
}

// claim has the caller handle a binding, as Pop does, until Done. It reports false for one that is in the queue or being
// handled.
func claim(q *queue, k key) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if holds(q, k) || q.closed {
		return false
	}
	q.working[k] = &item{key: k}
	q.metrics.Started(k)
	return true
}

func (q *queue) activate(i *item) {
	q.sequence++
	i.entered, i.order = q.clock.Now(), q.sequence
	q.active.Push(i.key, i.key.Namespace, int(i.priority))
	q.queued[i.key] = i
	q.metrics.Added(i.key)
	q.wait.Signal()
}

// Pop waits for a binding. It reports false once the queue is closed.
func (q *queue) Pop() (key, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for !q.closed {
		if k, _, _, ok := q.active.Pop(); ok {
			i := q.queued[k]
			delete(q.queued, k)
			i.attempts++
			i.turn = true
			q.working[k] = i
			q.metrics.Started(k)
			return k, true
		}
		q.wait.Wait()
	}
	return key{}, false
}

// outcome is the result of handling a binding.
type outcome int

const (
	// finished: nothing more to do.
	finished outcome = iota
	// failed: retried after a delay.
	failed
	// parked: retried when something changes.
	parked
)

// Done ends the work on a binding.
func (q *queue) Done(k key, o outcome) {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := q.working[k]
	delete(q.working, k)
	if i == nil {
		return
	}
	q.metrics.Done(k)
	if i.turn {
		i.turn = false
		defer release(q, k.Namespace)
	}
	if priority, ok := q.dirty[k]; ok {
		delete(q.dirty, k)
		i.priority = priority
		if o == finished {
			i.attempts = 0
		}
		q.activate(i)
		return
	}
	switch {
	case o == parked && q.byPriority:
		q.unschedulable[k] = i
	case o != finished:
		i.ready = q.retry(i)
		q.backoff[k] = i
		q.metrics.Retried()
	}
}

// release ends the use of a worker by a namespace. The caller holds the lock.
func release(q *queue, namespace string) {
	q.active.Release(namespace)
	if q.active.Eligible() {
		q.wait.Signal()
	}
}

// Wake moves parked bindings that concern the caller into the active queue.
func (q *queue) Wake(concerned func(key) bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for k, i := range q.unschedulable {
		if concerned(k) {
			delete(q.unschedulable, k)
			q.activate(i)
		}
	}
}

// Recheck is Wake that also requeues bindings that are being handled: what they are
// about to wait for may have happened already.
func (q *queue) Recheck(concerned func(key) bool) {
	q.Wake(concerned)
	q.mu.Lock()
	defer q.mu.Unlock()
	for k, i := range q.working {
		if _, known := q.dirty[k]; !known && concerned(k) {
			q.dirty[k] = i.priority
		}
	}
}

// Parked reports whether a binding waits for a change.
func (q *queue) Parked(k key) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	_, ok := q.unschedulable[k]
	return ok
}

// Sweep moves what has waited long enough into the active queue.
func (q *queue) Sweep(unschedulableToo bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.metrics.Refresh()
	now := q.clock.Now()
	var due []*item
	for k, i := range q.backoff {
		if !i.ready.After(now) {
			delete(q.backoff, k)
			due = append(due, i)
		}
	}
	if unschedulableToo {
		for k, i := range q.unschedulable {
			if now.Sub(i.entered) > unschedulableWait {
				delete(q.unschedulable, k)
				due = append(due, i)
			}
		}
	}
	slices.SortFunc(due, func(a, b *item) int { // each namespace's oldest first
		return cmp.Or(a.entered.Compare(b.entered), cmp.Compare(a.order, b.order))
	})
	for _, i := range due {
		q.activate(i)
	}
}

// Run sweeps until the channel is closed, then closes the queue.
func (q *queue) Run(stop <-chan struct{}) {
	ticker := q.clock.NewTicker(backoffSweep)
	defer ticker.Stop()
	last := q.clock.Now()
	for {
		select {
		case <-stop:
			q.Close()
			return
		case <-ticker.C():
			too := q.clock.Since(last) >= unschedulableSweep
			if too {
				last = q.clock.Now()
			}
			q.Sweep(too)
		}
	}
}

// Close makes every Pop return.
func (q *queue) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.wait.Broadcast()
}

// Pending returns the number of bindings that wait.
func (q *queue) Pending() (active, backoff, unschedulable int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.active.Len(), len(q.backoff), len(q.unschedulable)
}
