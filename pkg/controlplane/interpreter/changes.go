package interpreter

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// changes are those who want to know of new rules.
type changes struct {
	mu        sync.Mutex
	listeners []func(affects func(schema.GroupVersionKind) bool)
}

// OnChange has f called whenever rules change, with a function that says whether
// those of a kind may have: objects of other kinds mean what they meant. f must
// not block.
func (i *Interpreter) OnChange(f func(affects func(schema.GroupVersionKind) bool)) {
	i.changes.mu.Lock()
	defer i.changes.mu.Unlock()
	i.changes.listeners = append(i.changes.listeners, f)
}

// Changed tells those who wait for changes that the rules of some kinds changed.
func (i *Interpreter) Changed(affects func(schema.GroupVersionKind) bool) {
	i.changes.mu.Lock()
	listeners := i.changes.listeners
	i.changes.mu.Unlock()
	for _, f := range listeners {
		f(affects)
	}
}
