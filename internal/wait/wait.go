// Package wait polls until a condition holds, and publishes the reason while the wait takes long.
package wait

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	utilwait "k8s.io/apimachinery/pkg/util/wait"
)

const (
	// PublishInterval is the time between two reports of what is waited for. The first comes after one interval.
	PublishInterval = 2 * time.Second

	defaultInterval = 100 * time.Millisecond
	backoffFactor   = 2
)

// ErrTimeout is in the error of a wait that took longer than its timeout.
var ErrTimeout = errors.New("timed out")

// Options configure a wait.
type Options struct {
	// Interval is the time between two checks, 100 ms by default.
	Interval time.Duration
	// MaxInterval lets the interval double after each check, up to this limit. By default it is constant.
	MaxInterval time.Duration
	// Timeout limits the wait. Without it, the deadline is that of the context.
	Timeout time.Duration
	// Publish receives the reason why the wait goes on, every PublishInterval, also during a check that takes long.
	// It is nil while no check has returned. Publish runs in a goroutine of its own and has returned when the wait
	// ends. By default nothing is published.
	Publish func(reason error)
}

// terminal is an error of a check that ends the wait.
type terminal struct{ error }

func (t terminal) Unwrap() error { return t.error }

// Terminal returns an error with which a check ends the wait. Until returns err.
func Terminal(err error) error {
	if err == nil {
		return nil
	}
	return terminal{err}
}

// Until calls check, at once and then in intervals, until it returns nil or a Terminal error. An error of check names
// each object that is not in its desired state and the reason; errors.Join for several. When the wait ends early, the
// error wraps the cause and the last error of check; the cause of a timeout is ErrTimeout.
func Until(ctx context.Context, o Options, check func(context.Context) error) error {
	if o.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, o.Timeout, fmt.Errorf("%w after %s", ErrTimeout, o.Timeout))
		defer cancel()
	}
	var last reason
	if o.Publish != nil {
		defer Publish(ctx, func() { o.Publish(last.get()) })()
	}
	err := o.delay().Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		err := check(ctx)
		if t := (terminal{}); errors.As(err, &t) {
			return false, t
		}
		// A check that the end of the wait interrupted has no reason of its own.
		if err != nil && (ctx.Err() == nil || last.get() == nil) {
			last.set(err)
		}
		return err == nil, nil
	})
	if t := (terminal{}); errors.As(err, &t) {
		return t.error
	}
	if err == nil {
		return nil
	}
	if reason := last.get(); !errors.Is(reason, context.Cause(ctx)) {
		return fmt.Errorf("%w: %w", context.Cause(ctx), reason)
	}
	return context.Cause(ctx)
}

// delay returns the intervals between the checks.
func (o Options) delay() utilwait.DelayFunc {
	b := utilwait.Backoff{Duration: o.Interval}
	if b.Duration <= 0 {
		b.Duration = defaultInterval
	}
	for d := b.Duration; d < o.MaxInterval; d *= backoffFactor {
		b.Factor, b.Cap = backoffFactor, o.MaxInterval
		b.Steps++
	}
	return b.DelayFunc()
}

// Publish calls publish every PublishInterval until ctx or the returned function ends it. That function returns when
// publish is not running any more.
func Publish(ctx context.Context, publish func()) (stop func()) {
	return Every(ctx, PublishInterval, publish)
}

// Every calls f after each interval until ctx or the returned function ends it. That function returns when f is not
// running any more.
func Every(ctx context.Context, interval time.Duration, f func()) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				f()
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// reason is the last error of a check, shared with the goroutine that publishes it.
type reason struct {
	mu  sync.Mutex
	err error
}

func (r *reason) get() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

func (r *reason) set(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = err
}
