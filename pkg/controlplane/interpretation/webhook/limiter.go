package webhook

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/utils/clock"

	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
)

// ErrBusy is returned, wrapped, while a webhook has as many calls as it gets.
var ErrBusy = errors.New("webhook is busy")

const (
	// slotsPerOperation is the number of concurrent calls of one operation to a server. It
	// is lower than the number of workers of any controller that makes them, so that
	// some are left for other kinds however slow the server is.
	slotsPerOperation = 3
	// operationCount is the number of operations of interpreters.
	operationCount = 8
	// slowAfter is how long a call may be on its way before its limiter counts as
	// slow; then no caller waits for a slot.
	slowAfter = 500 * time.Millisecond
)

func slotsFor(op configv1alpha1.InterpreterOperation) int {
	if op == configv1alpha1.InterpreterOperationInterpretDependency {
		return 1 // its controller has two workers
	}
	return slotsPerOperation
}

// limiter bounds the calls of one operation to one server. A caller that finds no
// free slot waits for one as long as the server is quick; once it is slow, callers
// get ErrBusy at once, and their controllers retry.
type limiter struct {
	slots chan int
	clock clock.PassiveClock

	mu sync.Mutex
	// since is when the call in each slot began; zero for a free slot.
	since []time.Time
}

func newLimiter(slots int, c clock.PassiveClock) *limiter {
	l := &limiter{slots: make(chan int, slots), since: make([]time.Time, slots), clock: c}
	for i := range slots {
		l.slots <- i
	}
	return l
}

// enter takes a slot. The returned function gives it back.
func (l *limiter) enter(ctx context.Context) (leave func(), err error) {
	select {
	case i := <-l.slots:
		return l.take(i), nil
	default:
	}
	wait := slowAfter - l.oldest()
	if wait > 0 {
		t := time.NewTimer(wait)
		defer t.Stop()
		select {
		case i := <-l.slots:
			return l.take(i), nil
		case <-t.C:
		case <-ctx.Done():
		}
	}
	return nil, fmt.Errorf("%w: as many calls of this operation as it gets at a time (%d) wait for its answer", ErrBusy, len(l.since))
}

func (l *limiter) take(i int) func() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.since[i] = l.clock.Now()
	return func() {
		l.mu.Lock()
		l.since[i] = time.Time{}
		l.mu.Unlock()
		l.slots <- i
	}
}

// oldest returns how long the oldest call has been on its way.
func (l *limiter) oldest() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	var longest time.Duration
	for _, since := range l.since {
		if !since.IsZero() {
			longest = max(longest, l.clock.Since(since))
		}
	}
	return longest
}
