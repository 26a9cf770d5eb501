// Package follow follows the objects of members: one reflector for each resource of a member in the process, with any number of projections,
// each of which stores the part of each object that its user needs.
package follow

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// From returns a Config.Project for objects of type O.
func From[O runtime.Object, T any](project func(obj O, old *T) (T, error)) func(runtime.Object, *T) (T, error) {
	return func(in runtime.Object, old *T) (out T, err error) {
		obj, ok := in.(O)
		if !ok {
			return out, fmt.Errorf("unexpected %T", in)
		}
		return project(obj, old)
	}
}

// Config describes the objects and what is stored of them. All callbacks are optional and must not block.
type Config[T any] struct {
	// Name is for logs.
	Name string
	Source
	// Project returns the projection of an object. old is the stored one, or nil; parts of it may be shared.
	Project func(obj runtime.Object, old *T) (T, error)
	// Settle copies a projection of a list and its key. What a page leaves is then copied in one go, and lies together: the memory
	// between is free for others again. Optional.
	Settle func(key types.NamespacedName, value T) (types.NamespacedName, T)
	// Size returns the approximate size of a projection in bytes. Optional.
	Size func(value T) int
	// MaxSize returns the limit of the size of all objects together. Default: 64 MiB. The number of objects is limited in any case.
	MaxSize func() int
	// Budget is the limit that several projections have together. Optional.
	Budget *Budget
	// Changed is called for every change, one at a time: old is nil for a new object, now for one that was deleted.
	Changed func(key types.NamespacedName, old, now *T)
	// Synced is called after the first complete list.
	Synced func()
	// Version returns the resource version of a projection: a list with an older version of an object than before, or that is older itself,
	// shows that the cluster was restored from an older copy of its store. Optional.
	Version func(value T) string
	// Failed is called when a list or a watch fails.
	Failed func(err error)
}

func (c *Config[T]) complete() {
	if c.Size == nil {
		c.Size = func(T) int { return 0 }
	}
	if c.MaxSize == nil {
		c.MaxSize = func() int { return maxSize }
	}
	if c.Changed == nil {
		c.Changed = func(types.NamespacedName, *T, *T) {}
	}
	if c.Synced == nil {
		c.Synced = func() {}
	}
	if c.Version == nil {
		c.Version = func(T) string { return "" }
	}
	if c.Failed == nil {
		c.Failed = func(error) {}
	}
}

// sizeOf returns the approximate size of an object in bytes.
func (c *Config[T]) sizeOf(key types.NamespacedName, value *T) int {
	const overhead = 64
	size := overhead + len(key.Namespace) + len(key.Name)
	if value != nil {
		size += c.Size(*value)
	}
	return size
}

// Budget is how large the objects of several projections may be together, in bytes: no limit if that is 0. Its projections are to be dropped.
type Budget struct {
	limit int
	used  atomic.Int64
}

// NewBudget returns a budget of a number of bytes; 0 for no limit.
func NewBudget(limit int) *Budget { return &Budget{limit: limit} }

// Used returns how large the objects are together.
func (b *Budget) Used() int { return int(b.used.Load()) }

func (b *Budget) rest() int {
	if b.limit <= 0 {
		return 1 << 60
	}
	return b.limit - b.Used()
}

// Projection stores the projections of the objects.
type Projection[T any] struct {
	*store[T]
	reader reader

	mu sync.Mutex
	// unhook forgets what ends the projection; nil while it is not started. starts counts the starts.
	unhook func()
	starts int
}

// New returns an empty projection; Start fills it.
func New[T any](cfg Config[T]) *Projection[T] {
	cfg.complete()
	p := &Projection[T]{store: newStore(cfg)}
	p.reader = reader{Source: cfg.Source, sink: p.store}
	return p
}

// Start returns a projection that follows the objects until ctx ends or it is stopped.
func Start[T any](ctx context.Context, cfg Config[T]) *Projection[T] {
	p := New(cfg)
	p.Start(ctx)
	return p
}

// Start follows the objects until ctx ends, the Member is closed, or the projection is stopped. A projection that is stopped can be started again.
func (p *Projection[T]) Start(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.unhook != nil {
		return
	}
	shared.mu.Lock()
	shared.joinLocked(&p.reader)
	shared.mu.Unlock()
	p.starts++
	n := p.starts
	ended := context.AfterFunc(ctx, func() { p.end(n, nil) })
	closed := p.reader.member.OnClose(func() { p.end(n, errClosed) })
	p.unhook = func() {
		ended()
		closed()
	}
}

// end ends what a start began, with a failure if err is not nil.
func (p *Projection[T]) end(start int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.starts != start || p.unhook == nil {
		return
	}
	shared.leave(&p.reader)
	if err != nil {
		p.ended(err)
	}
}

// Stop ends the following. The objects stay. No callback is called any more when it returns.
func (p *Projection[T]) Stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.unhook != nil {
		p.unhook()
		p.unhook = nil
	}
	shared.leave(&p.reader)
}

// Drop stops, and gives what the objects take of the budget back.
func (p *Projection[T]) Drop() {
	p.Stop()
	p.store.drop()
}

// Ready returns why the objects are not current, or nil: they cannot be read, or were not listed yet.
func (p *Projection[T]) Ready() error {
	if err := p.Failure(); err != nil {
		return err
	}
	if !p.HasSynced() {
		return fmt.Errorf("%s are not read yet", p.reader.resource.Resource)
	}
	return nil
}

// Await returns when the first list is complete or failed, or ctx ends, and what Ready returns then.
func (p *Projection[T]) Await(ctx context.Context) error {
	select {
	case <-p.store.first:
		return p.Ready()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Retry ends the backoff after a failure.
func (p *Projection[T]) Retry() {
	if s := p.reader.at.Load(); s != nil && p.Failure() != nil {
		s.retry()
	}
}
