package controllers

import (
	"context"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Gate limits how many requests run at the same time. Those that wait take turns by tenant, see Turns, so that a tenant with many
// requests does not delay the few of others. It is safe for concurrent use.
type Gate struct {
	mu    sync.Mutex
	free  int
	turns *Turns[*waiter]
}

// waiter is a request that waits.
type waiter struct {
	admitted  chan struct{}
	abandoned bool
}

// NewGate returns a Gate for a number of requests.
func NewGate(requests int) *Gate { return &Gate{free: requests, turns: NewTurns[*waiter](requests, 0)} }

// Do runs a request of a tenant when its turn has come. The error is that of the request, or that ctx ended before.
func (g *Gate) Do(ctx context.Context, tenant string, request func() error) error {
	w := &waiter{admitted: make(chan struct{})}
	g.mu.Lock()
	g.turns.Push(w, tenant, 0)
	g.admit()
	g.mu.Unlock()
	select {
	case <-w.admitted:
		defer g.leave(tenant)
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

func (g *Gate) leave(tenant string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.release(tenant)
}

// release ends a request, under the lock.
func (g *Gate) release(tenant string) {
	g.free++
	g.turns.Release(tenant)
	g.admit()
}

// admit lets requests run whose turn has come, under the lock.
func (g *Gate) admit() {
	for g.free > 0 {
		w, tenant, _, ok := g.turns.Pop()
		switch {
		case !ok:
			return
		case w.abandoned:
			g.turns.Release(tenant)
		default:
			g.free--
			close(w.admitted)
		}
	}
}

// Client returns a client whose writes of some objects pass the Gate, those of which tenant returns one.
func (g *Gate) Client(c client.Client, tenant func(client.Object) string) client.Client {
	return &gated{Client: c, gate: g, tenant: tenant}
}

// gated is a client whose writes pass a Gate.
type gated struct {
	client.Client
	gate   *Gate
	tenant func(client.Object) string
}

func (g *gated) do(ctx context.Context, obj client.Object, request func() error) error {
	if tenant := g.tenant(obj); tenant != "" {
		return g.gate.Do(ctx, tenant, request)
	}
	return request()
}

// Create implements client.Client.
func (g *gated) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	return g.do(ctx, obj, func() error { return g.Client.Create(ctx, obj, opts...) })
}

// Update implements client.Client.
func (g *gated) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	return g.do(ctx, obj, func() error { return g.Client.Update(ctx, obj, opts...) })
}

// Patch implements client.Client.
func (g *gated) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	return g.do(ctx, obj, func() error { return g.Client.Patch(ctx, obj, patch, opts...) })
}

// Delete implements client.Client.
func (g *gated) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	return g.do(ctx, obj, func() error { return g.Client.Delete(ctx, obj, opts...) })
}

// Status implements client.Client.
func (g *gated) Status() client.SubResourceWriter { return gatedStatus{g.Client.Status(), g} }

// gatedStatus writes the status of objects through a Gate.
type gatedStatus struct {
	client.SubResourceWriter
	client *gated
}

// Update implements client.SubResourceWriter.
func (s gatedStatus) Update(ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption) error {
	return s.client.do(ctx, obj, func() error { return s.SubResourceWriter.Update(ctx, obj, opts...) })
}

// Patch implements client.SubResourceWriter.
func (s gatedStatus) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	return s.client.do(ctx, obj, func() error { return s.SubResourceWriter.Patch(ctx, obj, patch, opts...) })
}
