package federatedhpa

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"github.com/karmada-toolkit/karmada/pkg/member/access"
	"github.com/karmada-toolkit/karmada/pkg/member/access/informer"
)

// watchKey identifies a watch of one type in a namespace of a cluster.
type watchKey struct {
	cluster, namespace string
	resource           schema.GroupVersionResource
}

// watches are watches of members that begin when they are read for the first time, and end when nothing reads them any
// longer or when the member is closed.
type watches[T any] struct {
	config func(*access.Member, watchKey) informer.Config[T]
	clock  clock.PassiveClock
	mu     *sync.Mutex
	all    map[watchKey]*watched[T]
}

// watched is one watch.
type watched[T any] struct {
	projection *informer.Projection[T]
	member     *access.Member
	cancel     context.CancelFunc
	done       chan struct{}
	// first is closed after the first list, whether it succeeded or failed.
	first    chan struct{}
	lastRead time.Time
}

func newWatches[T any](config func(*access.Member, watchKey) informer.Config[T], clk clock.PassiveClock) watches[T] {
	return watches[T]{config: config, clock: clk, mu: &sync.Mutex{}, all: map[watchKey]*watched[T]{}}
}

// of returns the watch of a key, which runs until ctx ends.
func (w *watches[T]) of(ctx context.Context, member *access.Member, key watchKey) *watched[T] {
	w.mu.Lock()
	defer w.mu.Unlock()
	e := w.all[key]
	if e == nil || e.member != member {
		if e != nil {
			e.cancel()
		}
		e = w.begin(ctx, member, key)
		w.all[key] = e
	}
	e.lastRead = w.clock.Now()
	return e
}

func (w *watches[T]) begin(ctx context.Context, member *access.Member, key watchKey) *watched[T] {
	ctx, cancel := context.WithCancel(ctx)
	e := &watched[T]{member: member, cancel: cancel, done: make(chan struct{}), first: make(chan struct{})}
	var once sync.Once
	listed := func() { once.Do(func() { close(e.first) }) }
	cfg := w.config(member, key)
	cfg.Name = fmt.Sprintf("%s %s in namespace %s", key.cluster, key.resource.Resource, key.namespace)
	cfg.Synced, cfg.Failed = listed, func(error) { listed() }
	e.projection = informer.New(cfg)
	go func() {
		defer close(e.done)
		e.projection.Run(ctx)
	}()
	go func() {
		defer cancel()
		select {
		case <-member.Done():
		case <-ctx.Done():
		}
	}()
	return e
}

// stop ends the watches that were read before now plus offset, and waits for them.
func (w *watches[T]) stop(offset time.Duration) {
	w.mu.Lock()
	var ended []*watched[T]
	limit := w.clock.Now().Add(offset)
	for key, e := range w.all {
		if e.lastRead.Before(limit) {
			e.cancel()
			ended = append(ended, e)
			delete(w.all, key)
		}
	}
	w.mu.Unlock()
	for _, e := range ended {
		<-e.done
	}
}

// ready returns when the objects are listed, or why they are not current.
func (e *watched[T]) ready(ctx context.Context) error {
	select {
	case <-e.first:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := e.projection.Failure(); err != nil {
		return err
	}
	if !e.projection.HasSynced() {
		return errors.New("the first list is not complete")
	}
	return nil
}
