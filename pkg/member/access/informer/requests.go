package informer

import (
	"context"
	"sync"
)

// requests records the result of the last list or watch.
type requests struct {
	failed    func(error)
	recovered func()

	mu     sync.Mutex
	err    error
	cancel context.CancelFunc // ends the current run of the reflector, backoff included
}

func (r *requests) begin(cancel context.CancelFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cancel = cancel
}

// ended records the result of a request, unless it was canceled.
func (r *requests) ended(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	r.mu.Lock()
	before := r.err
	r.err = err
	r.mu.Unlock()
	switch {
	case err != nil:
		r.failed(err)
	case before != nil:
		r.recovered()
	}
}

func (r *requests) failure() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

func (r *requests) retry() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil && r.cancel != nil {
		r.cancel()
	}
}
