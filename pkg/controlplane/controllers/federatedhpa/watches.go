package federatedhpa

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"github.com/karmada-toolkit/karmada/pkg/member/access"
	"github.com/karmada-toolkit/karmada/pkg/member/follow"
)

// watchKey identifies a watch of one type in a namespace of a cluster.
type watchKey struct {
	cluster, namespace string
	resource           schema.GroupVersionResource
}

// watches are watches of members that begin when they are read for the first time, and end when nothing reads them any
// longer or when the member is closed.
type watches[T any] struct {
	config func(*access.Member, watchKey) follow.Config[T]
	clock  clock.PassiveClock
	// limit is how many bytes the watches of one cluster keep together.
	limit int
	mu    *sync.Mutex
	all   map[watchKey]*watched[T]
}

// watched is one watch.
type watched[T any] struct {
	*follow.Projection[T]
	member   *access.Member
	budget   *follow.Budget
	lastRead time.Time
}

func newWatches[T any](config func(*access.Member, watchKey) follow.Config[T], clk clock.PassiveClock) watches[T] {
	return watches[T]{config: config, clock: clk, limit: maxKept, mu: &sync.Mutex{}, all: map[watchKey]*watched[T]{}}
}

// namespaceShare is the share of the limit of a cluster, as a divisor, that the watch of one namespace may keep.
const namespaceShare = 4

// of returns the watch of a key, which runs until ctx ends.
func (w *watches[T]) of(ctx context.Context, member *access.Member, key watchKey) *watched[T] {
	w.mu.Lock()
	defer w.mu.Unlock()
	e := w.all[key]
	if e == nil || e.member != member {
		if e != nil {
			e.Drop()
		}
		cfg := w.config(member, key)
		cfg.Name = fmt.Sprintf("%s %s in namespace %s", key.cluster, key.resource.Resource, key.namespace)
		cfg.MaxSize, cfg.Budget = func() int { return w.limit / namespaceShare }, w.budget(key.cluster)
		e = &watched[T]{Projection: follow.Start(ctx, cfg), member: member, budget: cfg.Budget}
		w.all[key] = e
	}
	e.lastRead = w.clock.Now()
	return e
}

// budget returns what the watches of a cluster share.
func (w *watches[T]) budget(cluster string) *follow.Budget {
	for key, e := range w.all {
		if key.cluster == cluster {
			return e.budget
		}
	}
	return follow.NewBudget(w.limit)
}

// stop ends the watches that were read before now plus offset.
func (w *watches[T]) stop(offset time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	limit := w.clock.Now().Add(offset)
	for key, e := range w.all {
		if e.lastRead.Before(limit) {
			e.Drop()
			delete(w.all, key)
		}
	}
}
