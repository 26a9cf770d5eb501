package execution

import (
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
)

// editions count, by kind, how often the interpreter got other rules. What was
// found out about an object by an earlier edition is found out again.
type editions struct {
	byKind sync.Map // of *atomic.Uint64 by schema.GroupVersionKind
}

// of returns the edition of the rules of a kind.
func (e *editions) of(gvk schema.GroupVersionKind) uint64 {
	n, ok := e.byKind.Load(gvk)
	if !ok {
		n, _ = e.byKind.LoadOrStore(gvk, new(atomic.Uint64))
	}
	count, _ := n.(*atomic.Uint64)
	return count.Load()
}

// advance begins a new edition for the kinds that are affected.
func (e *editions) advance(affects func(schema.GroupVersionKind) bool) {
	e.byKind.Range(func(key, n any) bool {
		gvk, ok1 := key.(schema.GroupVersionKind)
		count, ok2 := n.(*atomic.Uint64)
		if ok1 && ok2 && affects(gvk) {
			count.Add(1)
		}
		return true
	})
}

// relearn has the Works looked at that hold objects of kinds with other rules.
func (c *Controller) relearn(affects func(schema.GroupVersionKind) bool) {
	c.editions.advance(affects)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.runners {
		r.relearn(affects)
	}
}

func (r *runner) relearn(affects func(schema.GroupVersionKind) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range r.kinds {
		if !affects(k.gvk) {
			continue
		}
		for work := range k.works {
			r.queue.AddWithOpts(priorityqueue.AddOpts{Priority: new(background)}, work)
		}
	}
}
