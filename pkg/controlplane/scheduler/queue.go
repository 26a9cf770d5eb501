package scheduler

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	sharedmetrics "github.com/karmada-toolkit/karmada/internal/metrics"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// Periods of the queue.
const (
	firstBackoff      = time.Second
	longestBackoff    = 10 * time.Second
	unschedulableWait = 5 * time.Minute
	queueSweep        = time.Second
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
	// entered is when it came into the active queue. order is the number of that entry; 0 if there was none, and its namespace
	// has no worker for it.
	entered  time.Time
	order    int64
	attempts int
	// working is set while it is being handled, again when it was pushed meanwhile.
	working, again bool
	// ready is when one that waits comes into the active queue, parked is set if a change can make it come earlier, and delayed if nothing
	// failed.
	ready           time.Time
	parked, delayed bool
}

// queue hands out bindings: the highest priority first, and of these the one that waits longest in each namespace. The
// namespaces take turns, see controllers.Turns. A binding that failed waits for its next attempt; one that lacks room is parked
// until something changes. While a binding is being handled it is not handed out again; if it is pushed meanwhile it comes again
// afterwards.
type queue struct {
	clock clock.WithTicker
	// base is the delay after the first attempt, which doubles with each further one up to longest.
	base, longest time.Duration
	// bucket is nil when priorities count and bindings that lack room wait for a
	// change; otherwise it is first come first served, and they are retried
	// like those that failed, at the rate of the bucket.
	bucket workqueue.TypedRateLimiter[key]
	// metrics may be nil.
	metrics *sharedmetrics.WorkQueue

	mu       sync.Mutex
	wait     *sync.Cond
	active   *controllers.Turns[key]
	current  map[key]*item // active or being handled
	waiting  map[key]*item
	sequence int64
	closed   bool
}

// newQueue returns the queue by priority for a number of workers.
func newQueue(c clock.WithTicker, workers int) *queue {
	q := &queue{
		clock: c, base: firstBackoff, longest: longestBackoff, active: controllers.NewTurns[key](workers, 0),
		current: map[key]*item{}, waiting: map[key]*item{},
	}
	q.wait = sync.NewCond(&q.mu)
	return q
}

// Push adds a binding for which something has changed.
func (q *queue) Push(k key, priority int32) { q.PushAfter(k, priority, 0) }

// PushAfter is Push after a delay for a binding that is not in the queue.
func (q *queue) PushAfter(k key, priority int32, delay time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.bucket != nil {
		priority = 0
	}
	i := q.current[k]
	switch {
	case i == nil && q.waiting[k] == nil && delay > 0:
		q.waiting[k] = &item{key: k, priority: priority, ready: q.clock.Now().Add(delay)}
		q.metrics.Retried()
	case i == nil:
		q.activate(&item{key: k, priority: priority})
	case i.working:
		i.priority, i.again = priority, true
	default:
		i.priority = priority
		q.active.SetPriority(k, int(priority), false)
	}
}

// claim has the caller handle a binding, as Pop does, until Done. It reports false for one that is in the queue or being
// handled.
func claim(q *queue, k key) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || q.current[k] != nil || q.waiting[k] != nil {
		return false
	}
	q.current[k] = &item{key: k, working: true}
	q.metrics.Started(k)
	return true
}

func (q *queue) activate(i *item) {
	q.sequence++
	i.entered, i.order = q.clock.Now(), q.sequence
	i.working, i.again, i.parked, i.delayed = false, false, false, false
	delete(q.waiting, i.key)
	q.current[i.key] = i
	q.active.Push(i.key, i.key.Namespace, int(i.priority))
	q.metrics.Added(i.key)
	q.wait.Signal()
}

// claimNew is claim of a binding that does not exist yet. It reports false, too, if others wait that may have a higher priority.
func (q *queue) claimNew(k key) bool {
	if active, _, _ := q.Pending(); active > 0 && q.bucket == nil {
		return false
	}
	return claim(q, k)
}

// Pop waits for a binding. It reports false once the queue is closed.
func (q *queue) Pop() (key, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for !q.closed {
		if k, _, _, ok := q.active.Pop(); ok {
			i := q.current[k]
			i.attempts++
			i.working = true
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
	// delayed: nothing failed; handled again after the least createdDelay.
	delayed
)

// Done ends the work on a binding.
func (q *queue) Done(k key, o outcome) {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := q.current[k]
	if i == nil || !i.working {
		return
	}
	delete(q.current, k)
	q.metrics.Done(k)
	if i.order > 0 {
		q.active.Release(k.Namespace)
		if q.active.Eligible() {
			q.wait.Signal()
		}
	}
	switch {
	case i.again:
		if o == finished || o == delayed {
			i.attempts = 0
		}
		q.activate(i)
	case o == parked && q.bucket == nil:
		i.ready, i.parked = i.entered.Add(unschedulableWait), true
		q.waiting[k] = i
	case o == delayed:
		i.attempts, i.delayed, i.ready = 0, true, q.clock.Now().Add(createdDelay.Stable)
		q.waiting[k] = i
	case o != finished:
		i.ready = q.retry(i)
		q.waiting[k] = i
		q.metrics.Retried()
	}
}

// retry returns when a binding that failed is tried again.
func (q *queue) retry(i *item) time.Time {
	delay := q.longest
	if i.attempts <= 32 {
		delay = min(q.base<<max(i.attempts-1, 0), q.longest)
	}
	if q.bucket == nil {
		return i.entered.Add(delay)
	}
	return q.clock.Now().Add(max(delay, q.bucket.When(i.key)))
}

// Wake moves parked bindings that concern the caller into the active queue. Those that are being handled come again: what
// they are about to wait for may have happened already.
func (q *queue) Wake(concerned func(key) bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for k, i := range q.current {
		i.again = i.again || i.working && concerned(k)
	}
	for k, i := range q.waiting {
		if i.parked && concerned(k) {
			q.activate(i)
		}
	}
}

// Parked reports whether a binding waits for a change.
func (q *queue) Parked(k key) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := q.waiting[k]
	return i != nil && i.parked
}

// Sweep moves what has waited long enough into the active queue.
func (q *queue) Sweep() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.metrics.Refresh()
	var due []*item
	for _, i := range q.waiting {
		if !i.ready.After(q.clock.Now()) {
			due = append(due, i)
		}
	}
	slices.SortFunc(due, func(a, b *item) int { return cmp.Compare(a.order, b.order) }) // each namespace's oldest first
	for _, i := range due {
		q.activate(i)
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
	for _, i := range q.waiting {
		switch {
		case i.parked:
			unschedulable++
		case !i.delayed:
			backoff++
		}
	}
	return q.active.Len(), backoff, unschedulable
}
