package scheduler

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/gates"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// Periods of the queue.
const (
	firstBackoff      = time.Second
	longestBackoff    = 10 * time.Second
	unschedulableWait = 5 * time.Minute
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

// queue hands out bindings: the highest priority first, and of these the one that waits longest in each namespace. The
// namespaces take turns, see controllers.Turns. A binding that failed waits for its next attempt; one that lacks room is parked
// until something changes. While a binding is being handled it is not handed out again; if it is pushed meanwhile it comes again
// afterwards.
type queue struct {
	*controllers.Queue[key]
	limiter workqueue.TypedRateLimiter[key]
	// fifo is set when priorities do not count, and bindings that lack room are retried like those that failed.
	fifo bool
}

// newQueue returns the queue that the gates select: by priority, or first come first served with rate-limited retries. r is for its metrics; nil for
// none.
func newQueue(o *Options, c clock.WithTicker, r prometheus.Registerer) *queue {
	q := &queue{limiter: workqueue.NewTypedItemExponentialFailureRateLimiter[key](firstBackoff, longestBackoff)}
	if l := &o.RateLimiter; !o.Gates.Enabled(gates.PriorityBasedScheduling) {
		q.fifo = true
		q.limiter = workqueue.NewTypedMaxOfRateLimiter(
			workqueue.NewTypedItemExponentialFailureRateLimiter[key](l.BaseDelay, l.MaxDelay),
			&workqueue.TypedBucketRateLimiter[key]{Limiter: rate.NewLimiter(rate.Limit(l.QPS), l.BucketSize)},
		)
	}
	name := "scheduler"
	if r == nil {
		name = ""
	}
	q.Queue = controllers.NewQueue(controllers.QueueOptions[key]{
		Name: name, Metrics: r, Workers: o.Workers, Tenant: func(k key) string { return k.Namespace }, RateLimiter: q.limiter, Clock: c,
	})
	return q
}

// Push adds a binding for which something has changed.
func (q *queue) Push(k key, priority int32) { q.PushAfter(k, priority, 0) }

// PushAfter is Push after a delay, unless the binding is in the queue already.
func (q *queue) PushAfter(k key, priority int32, delay time.Duration) {
	p := int(priority)
	if q.fifo {
		p = 0
	}
	if q.Waits(k) {
		delay = 0
	}
	q.Forget(k)
	q.SetPriority(k, p)
	q.AddWithOpts(priorityqueue.AddOpts{Priority: &p, After: delay}, k)
}

// claimNew is Claim of a binding that does not exist yet. It reports false, too, if others wait that may have a higher priority.
func (q *queue) claimNew(k key) bool { return (q.fifo || q.Ready() == 0) && q.Claim(k) }

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

// Finish ends the work on a binding.
func (q *queue) Finish(k key, o outcome) {
	switch {
	case o == finished:
		q.Forget(k)
	case o == delayed:
		q.Forget(k)
		q.Requeue(k, createdDelay.Stable, controllers.WaitTime)
	case o == parked && !q.fifo:
		q.Requeue(k, unschedulableWait, controllers.WaitChange)
	default:
		q.Requeue(k, q.limiter.When(k), controllers.WaitRetry)
	}
	q.Done(k)
}

// Pending returns the number of bindings that wait.
func (q *queue) Pending() (active, backoff, unschedulable int) {
	return q.Ready(), q.Waiting(controllers.WaitRetry), q.Waiting(controllers.WaitChange)
}
