package controllers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// errFenced is the error of writes after the lease may have been lost.
var errFenced = errors.New("the lease of the leader was not renewed in time, another replica may be the leader: not writing")

// Fence refuses the writes of a leader whose lease may have been lost: it was paused, or
// could not renew. Elections notice that only when they renew next, and controllers would
// go on until they are stopped. Time is the monotonic clock of the process, which goes on
// while the process is paused.
type Fence struct {
	clock           clock.WithDelayedExecution
	deadline, lease time.Duration
	lost            chan struct{}

	mu sync.Mutex
	// renewed is when the last successful renewal was sent; zero until the first one.
	renewed time.Time
	timer   clock.Timer
	ended   bool
	writes  map[*write]struct{}
}

// write is a request that is being sent.
type write struct{ cancel context.CancelCauseFunc }

// NewFence returns a Fence that refuses writes from deadline after the last renewal, and
// is lost from lease after it.
func NewFence(clk clock.WithDelayedExecution, deadline, lease time.Duration) *Fence {
	return &Fence{clock: clk, deadline: deadline, lease: lease, lost: make(chan struct{}), writes: map[*write]struct{}{}}
}

// FenceOf returns the Fence of a manager, nil if it has none. A nil Fence refuses nothing.
func FenceOf(mgr manager.Manager) *Fence {
	if m, ok := mgr.(interface{ Fence() *Fence }); ok {
		return m.Fence()
	}
	return nil
}

// Lost is closed when the lease may belong to another process.
func (f *Fence) Lost() <-chan struct{} {
	if f == nil {
		return nil
	}
	return f.lost
}

// Election returns what wraps the transport of the client of the election: it records when Leases are written. Of a leader that renews
// several, last is the one that it renews last; empty means that there is one.
func (f *Fence) Election(last string) func(http.RoundTripper) http.RoundTripper {
	return func(base http.RoundTripper) http.RoundTripper {
		return roundTripper{base: base, send: func(req *http.Request) (*http.Response, error) {
			sent := f.clock.Now()
			resp, err := base.RoundTrip(req)
			_, name, ok := strings.Cut(req.URL.Path, "/leases")
			if name = strings.TrimPrefix(name, "/"); name != "" && last != "" && name != last {
				ok = false
			}
			if err == nil && ok && !reads(req.Method) && resp.StatusCode < http.StatusMultipleChoices {
				f.renew(sent)
			}
			return resp, err
		}}
	}
}

// Wrap returns a transport that refuses writes when the lease may have been lost, and ends
// those that are not answered by then.
func (f *Fence) Wrap(base http.RoundTripper) http.RoundTripper {
	if f == nil {
		return base
	}
	return &fenced{fence: f, base: base}
}

func (f *Fence) renew(sent time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.clock.Now()
	if !f.renewed.IsZero() && now.Sub(f.renewed) >= f.lease {
		f.endLocked() // another leader may have worked since
	}
	if f.ended {
		return
	}
	f.renewed = sent
	if f.timer != nil {
		f.timer.Stop()
	}
	f.timer = f.clock.AfterFunc(f.deadline-now.Sub(sent), func() { go f.expire() })
}

// expire ends the writes at the deadline, and the Fence at the end of the lease.
func (f *Fence) expire() {
	f.mu.Lock()
	defer f.mu.Unlock()
	since := f.clock.Now().Sub(f.renewed)
	switch {
	case since < f.deadline:
		return // renewed since
	case since >= f.lease:
		f.endLocked()
		return
	}
	f.cancelLocked()
	f.timer = f.clock.AfterFunc(f.lease-since, func() { go f.expire() })
}

func (f *Fence) endLocked() {
	f.cancelLocked()
	if !f.ended {
		f.ended = true
		close(f.lost)
	}
}

func (f *Fence) cancelLocked() {
	for w := range f.writes {
		w.cancel(errFenced)
	}
	clear(f.writes)
}

// begin records a write, unless it is refused.
func (f *Fence) begin(w *write) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended || !f.renewed.IsZero() && f.clock.Now().Sub(f.renewed) >= f.deadline {
		return errFenced
	}
	f.writes[w] = struct{}{}
	return nil
}

func (f *Fence) finish(w *write) {
	w.cancel(context.Canceled)
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.writes, w)
}

// fenced is the transport of Wrap.
type fenced struct {
	fence *Fence
	base  http.RoundTripper
}

// WrappedRoundTripper lets client-go find the transport below.
func (t *fenced) WrappedRoundTripper() http.RoundTripper { return t.base }

// RoundTrip implements http.RoundTripper.
func (t *fenced) RoundTrip(req *http.Request) (*http.Response, error) {
	if reads(req.Method) {
		return t.base.RoundTrip(req)
	}
	ctx, cancel := context.WithCancelCause(req.Context())
	w := &write{cancel}
	if err := t.fence.begin(w); err != nil {
		cancel(err)
		return nil, fmt.Errorf("%s %s: %w", req.Method, req.URL.Path, err)
	}
	resp, err := t.base.RoundTrip(req.WithContext(ctx))
	if err != nil {
		if cause := context.Cause(ctx); errors.Is(cause, errFenced) {
			err = cause
		}
		t.fence.finish(w)
		return nil, err
	}
	resp.Body = &fencedBody{ReadCloser: resp.Body, done: sync.OnceFunc(func() { t.fence.finish(w) })}
	return resp, nil
}

// fencedBody ends a write when its response was read.
type fencedBody struct {
	io.ReadCloser
	done func()
}

// Close implements io.Closer.
func (b *fencedBody) Close() error {
	b.done()
	return b.ReadCloser.Close()
}

// reads reports whether requests of a method change nothing.
func reads(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions
}

type roundTripper struct {
	base http.RoundTripper
	send func(*http.Request) (*http.Response, error)
}

// RoundTrip implements http.RoundTripper.
func (r roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return r.send(req) }

// WrappedRoundTripper lets client-go find the transport below.
func (r roundTripper) WrappedRoundTripper() http.RoundTripper { return r.base }
