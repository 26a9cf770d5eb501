package kubelite

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/klog/v2"
)

// components run beside each other and end together.
type components struct {
	ctx    context.Context //nolint:containedctx // the life of the group
	cancel context.CancelFunc
	group  sync.WaitGroup
	// failed gets what the first component that ended by itself ended with.
	failed chan error
}

// newComponents makes a group that does not end with ctx, only by stop: an order is kept when the cluster ends.
func newComponents(ctx context.Context) *components {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	return &components{ctx: ctx, cancel: cancel, failed: make(chan error, 1)}
}

// run starts a component, which is meant to last until its context ends.
func (c *components) run(name string, f func(ctx context.Context) error) {
	c.group.Go(func() {
		err := f(c.ctx)
		if c.ctx.Err() != nil {
			return
		}
		if err == nil {
			err = errors.New("ended by itself")
		}
		select {
		case c.failed <- fmt.Errorf("%s: %w", name, err):
		default:
			klog.ErrorS(err, "Component ended", "component", name)
		}
	})
}

// stop ends all components and waits for them, but not for ever.
func (c *components) stop() {
	c.cancel()
	if !within(stopTimeout, c.group.Wait) {
		klog.InfoS("Some components did not end in time and are left behind", "timeout", stopTimeout)
	}
}

// within waits for f, but not longer than the limit, and reports whether it returned.
func within(limit time.Duration, f func()) bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
		return true
	case <-time.After(limit):
		return false
	}
}
