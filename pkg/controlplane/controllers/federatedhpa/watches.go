package federatedhpa

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
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
	// limit is how many bytes the watches of one cluster keep together.
	limit int64
	mu    *sync.Mutex
	all   map[watchKey]*watched[T]
	// kept is what they keep, by cluster.
	kept map[string]*atomic.Int64
}

// watched is one watch.
type watched[T any] struct {
	projection *informer.Projection[T]
	member     *access.Member
	cancel     context.CancelFunc
	done       chan struct{}
	// size is a part of what is kept of the cluster.
	size atomic.Int64
	// first is closed after the first list, whether it succeeded or failed.
	first    chan struct{}
	lastRead time.Time
}

func newWatches[T any](config func(*access.Member, watchKey) informer.Config[T], clk clock.PassiveClock) watches[T] {
	return watches[T]{config: config, clock: clk, limit: maxKept, mu: &sync.Mutex{}, all: map[watchKey]*watched[T]{}, kept: map[string]*atomic.Int64{}}
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
	kept := w.share(&cfg, e, key.cluster)
	e.projection = informer.New(cfg)
	go func() {
		defer close(e.done)
		e.projection.Run(ctx)
		kept.Add(-e.size.Load())
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

// namespaceShare is the share of the limit of a cluster, as a divisor, that the watch of one namespace may keep.
const namespaceShare = 4

// share makes all watches of a cluster keep no more than the limit together, and none more than its share. It returns what
// they keep.
func (w *watches[T]) share(cfg *informer.Config[T], e *watched[T], cluster string) *atomic.Int64 {
	kept := w.kept[cluster]
	if kept == nil {
		kept = &atomic.Int64{}
		w.kept[cluster] = kept
	}
	size := func(value *T) int64 {
		const overhead = 200
		if value == nil {
			return 0
		}
		return overhead + int64(cfg.Size(*value))
	}
	cfg.Changed = func(_ types.NamespacedName, old, now *T) {
		difference := size(now) - size(old)
		e.size.Add(difference)
		kept.Add(difference)
	}
	cfg.MaxSize = func() int { return int(max(0, min(w.limit/namespaceShare, w.limit-kept.Load()+e.size.Load()))) }
	return kept
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
	maps.DeleteFunc(w.kept, func(cluster string, _ *atomic.Int64) bool {
		for key := range w.all {
			if key.cluster == cluster {
				return false
			}
		}
		return true
	})
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
