package execution

import (
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ruleRevisions count, by kind, the changes of the rules of the interpreter. An object
// that was applied or observed with another revision is so again.
type ruleRevisions struct {
	byKind sync.Map // of *atomic.Uint64 by schema.GroupVersionKind
}

// of returns the revision of the rules of a kind.
func (r *ruleRevisions) of(gvk schema.GroupVersionKind) uint64 {
	n, ok := r.byKind.Load(gvk)
	if !ok {
		n, _ = r.byKind.LoadOrStore(gvk, new(atomic.Uint64))
	}
	count, _ := n.(*atomic.Uint64)
	return count.Load()
}

// advance begins a new revision for the affected kinds.
func (r *ruleRevisions) advance(affects func(schema.GroupVersionKind) bool) {
	r.byKind.Range(func(key, n any) bool {
		gvk, ok1 := key.(schema.GroupVersionKind)
		count, ok2 := n.(*atomic.Uint64)
		if ok1 && ok2 && affects(gvk) {
			count.Add(1)
		}
		return true
	})
}
