// Package informer watches the objects of one type in a cluster and stores of each a
// projection: only the part that its user needs.
package informer

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// Source is where the objects of one type are read.
type Source struct {
	// List and Watch read the objects.
	List  func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error)
	Watch func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
	// Example is an object of the type that they return.
	Example runtime.Object
}

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

// Config describes the objects and what is stored of them. All callbacks are optional
// and must not block.
type Config[T any] struct {
	// Name is for logs.
	Name string
	Source
	// Project returns the projection of an object. old is the stored one, or nil;
	// parts of it may be shared.
	Project func(obj runtime.Object, old *T) (T, error)
	// Settle copies a projection of a list and its key. What a page leaves is then copied in one go, and lies together: the memory
	// between is free for others again. Optional.
	Settle func(key types.NamespacedName, value T) (types.NamespacedName, T)
	// Size returns the approximate size of a projection in bytes. Optional.
	Size func(value T) int
	// MaxSize returns the limit of the size of all objects together. Default: none;
	// the number of objects is limited in any case.
	MaxSize func() int
	// Changed is called for every change, one at a time: old is nil for a new object,
	// now for one that was deleted.
	Changed func(key types.NamespacedName, old, now *T)
	// Synced is called after the first complete list.
	Synced func()
	// Version returns the resource version of a projection. Optional.
	Version func(value T) string
	// WentBack is called after a list that has an older resource version, or an older
	// version of an object, than was seen before: the cluster was restored from an older
	// copy of its store.
	WentBack func(from, to string)
	// Failed is called when a list or a watch fails, Recovered when one succeeds
	// after that.
	Failed    func(err error)
	Recovered func()
}

func (c *Config[T]) complete() {
	if c.Size == nil {
		c.Size = func(T) int { return 0 }
	}
	if c.MaxSize == nil {
		c.MaxSize = func() int { return math.MaxInt }
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
	if c.WentBack == nil {
		c.WentBack = func(string, string) {}
	}
	if c.Failed == nil {
		c.Failed = func(error) {}
	}
	if c.Recovered == nil {
		c.Recovered = func() {}
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

// Projection stores the projections of the objects.
type Projection[T any] struct {
	cfg      Config[T]
	requests *requests
	store    *store[T]
	lister   *lister[T]
}

// source makes the reflector list in pages and not as a stream, which has no limit on
// the number of objects.
type source struct{ *cache.ListWatch }

// IsWatchListSemanticsUnSupported is read by the reflector.
func (source) IsWatchListSemanticsUnSupported() bool { return true }

// New returns an empty projection; Run fills it.
func New[T any](cfg Config[T]) *Projection[T] {
	cfg.complete()
	p := &Projection[T]{cfg: cfg, requests: &requests{failed: cfg.Failed, recovered: cfg.Recovered}}
	p.store = newStore(cfg, p.requests)
	p.lister = newLister(cfg, p.store)
	return p
}

// Run watches the objects until ctx ends.
func (p *Projection[T]) Run(ctx context.Context) {
	from := source{&cache.ListWatch{ListWithContextFunc: p.list, WatchFuncWithContext: p.watch}}
	reflector := cache.NewReflectorWithOptions(from, p.cfg.Example, p.store, cache.ReflectorOptions{
		Name:    p.cfg.Name,
		Backoff: &wait.Backoff{Duration: 300 * time.Millisecond, Factor: 2, Jitter: 0.3, Steps: 6, Cap: 8 * time.Second},
	})
	// The probe of the cluster reports that it is unavailable; the reflector would log
	// every attempt.
	quiet := klog.NewContext(ctx, logr.Discard())
	for ctx.Err() == nil {
		attempt, cancel := context.WithCancel(quiet)
		p.requests.begin(cancel)
		reflector.RunWithContext(attempt)
		cancel()
	}
}

// HasSynced reports whether the first list is complete.
func (p *Projection[T]) HasSynced() bool { return p.store.hasSynced() }

// Failure returns the error of the last list or watch, or nil.
func (p *Projection[T]) Failure() error { return p.requests.failure() }

// Get returns the projection of an object, or nil. It is shared and read-only.
func (p *Projection[T]) Get(key types.NamespacedName) *T { return p.store.get(key) }

// Len returns the number of objects.
func (p *Projection[T]) Len() int { return p.store.len() }

// Each calls fn for every object, in no order. fn must not call the projection.
func (p *Projection[T]) Each(fn func(key types.NamespacedName, value *T)) { p.store.each(fn) }

// Snapshot calls fn for every object, in no order, and returns the resource version that the objects have together: empty
// before the first list is complete. fn must not call the projection.
func (p *Projection[T]) Snapshot(fn func(key types.NamespacedName, value *T)) string {
	return p.store.snapshot(fn)
}

// Version returns the resource version of the last list or event.
func (p *Projection[T]) Version() string {
	p.store.mu.RLock()
	defer p.store.mu.RUnlock()
	return p.store.version
}

// Retry ends the backoff after a failure.
func (p *Projection[T]) Retry() { p.requests.retry() }

func (p *Projection[T]) list(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	list, err := p.lister.list(ctx)
	p.requests.ended(ctx, err)
	if err != nil {
		return nil, err
	}
	return list, nil
}

func (p *Projection[T]) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	w, err := p.cfg.Watch(ctx, options)
	p.requests.ended(ctx, err)
	return w, err
}
