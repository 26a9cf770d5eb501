package controllers

import (
	"cmp"
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// Gate limits how many requests run at the same time. Those that wait take turns by tenant, see Turns, so that a tenant with many
// requests does not delay the few of others. More run at a time while that does not make them slower, as when a server waits for others:
// the time of a request is compared with the least that one took, after TCP Vegas (Brakmo and Peterson, 1995). It is safe for concurrent
// use.
type Gate struct {
	clock       clock.PassiveClock
	least, most int

	mu sync.Mutex
	// limit is the number of requests that may run at a time, from least to most, and running how many do.
	limit, running int
	turns          *Turns[*waiter]
	// fastest is the least time of a request, or a moving average of those that run alone if the server has become slower; typical is one of
	// all. since counts the requests since limit was adjusted.
	fastest, typical time.Duration
	since            int
}

// waiter is a request that waits.
type waiter struct {
	admitted  chan struct{}
	abandoned bool
}

const (
	// fasterThan and slowerThan are how many times the fastest request a typical one takes when more, or fewer, may run.
	fasterThan, slowerThan = 2, 4
	// smoothing is the weight of a request in a moving average, as a divisor.
	smoothing = 16
)

// NewGate returns a Gate for at least and at most these numbers of requests.
func NewGate(c clock.PassiveClock, least, most int) *Gate {
	return &Gate{clock: c, least: least, most: most, limit: least, turns: NewTurns[*waiter](most, 0)}
}

// Do runs a request of a tenant when its turn has come. The error is that of the request, or that ctx ended before.
func (g *Gate) Do(ctx context.Context, tenant string, request func() error) error {
	w := &waiter{admitted: make(chan struct{})}
	g.mu.Lock()
	g.turns.Push(w, tenant, 0)
	g.admit()
	g.mu.Unlock()
	select {
	case <-w.admitted:
		defer g.leave(tenant, g.clock.Now())
		return request()
	case <-ctx.Done():
		g.mu.Lock()
		defer g.mu.Unlock()
		select {
		case <-w.admitted:
			g.release(tenant)
		default:
			w.abandoned = true
		}
		return ctx.Err()
	}
}

func (g *Gate) leave(tenant string, began time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.adjust(g.clock.Since(began))
	g.release(tenant)
}

// adjust takes the time of a request into account, under the lock.
func (g *Gate) adjust(took time.Duration) {
	switch {
	case g.fastest == 0 || took < g.fastest:
		g.fastest, g.typical = took, cmp.Or(g.typical, took)
	case g.running == 1:
		g.fastest += (took - g.fastest) / smoothing
	}
	g.typical += (took - g.typical) / smoothing
	if g.since++; g.since < g.limit || g.running < g.limit {
		return // too few requests since, or nothing waits
	}
	g.since = 0
	switch {
	case g.typical < fasterThan*g.fastest:
		g.limit = min(g.limit+1, g.most)
	case g.typical > slowerThan*g.fastest:
		g.limit = max(g.limit-1, g.least)
	}
}

// release ends a request, under the lock.
func (g *Gate) release(tenant string) {
	g.running--
	g.turns.Release(tenant)
	g.admit()
}

// admit lets requests run whose turn has come, under the lock.
func (g *Gate) admit() {
	for g.running < g.limit {
		w, tenant, _, ok := g.turns.Pop()
		switch {
		case !ok:
			return
		case w.abandoned:
			g.turns.Release(tenant)
		default:
			g.running++
			close(w.admitted)
		}
	}
}

// Client returns a client whose writes of some objects, and of their status, pass the Gate: those of which tenant returns one.
func (g *Gate) Client(c client.WithWatch, tenant func(client.Object) string) client.Client {
	pass := func(ctx context.Context, obj client.Object, request func() error) error {
		if of := tenant(obj); of != "" {
			return g.Do(ctx, of, request)
		}
		return request()
	}
	return interceptor.NewClient(c, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			return pass(ctx, obj, func() error { return c.Create(ctx, obj, opts...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			return pass(ctx, obj, func() error { return c.Update(ctx, obj, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			return pass(ctx, obj, func() error { return c.Patch(ctx, obj, patch, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			return pass(ctx, obj, func() error { return c.Delete(ctx, obj, opts...) })
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, name string, obj client.Object, opts ...client.SubResourceUpdateOption) error {
			return pass(ctx, obj, func() error { return c.SubResource(name).Update(ctx, obj, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, name string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			return pass(ctx, obj, func() error { return c.SubResource(name).Patch(ctx, obj, patch, opts...) })
		},
	})
}
