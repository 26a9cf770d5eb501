package interpreter

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Notifier notifies its subscribers of changed rules. It is safe for concurrent
// use.
type Notifier struct {
	mu          sync.Mutex
	subscribers []func(affects func(schema.GroupVersionKind) bool)
}

// Notifier returns the notifier of the rules.
func (i *Interpreter) Notifier() *Notifier { return &i.notifier }

// Subscribe has f called after every change, with a function that reports whether
// the rules of a kind may have changed. f must not block.
func (n *Notifier) Subscribe(f func(affects func(schema.GroupVersionKind) bool)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.subscribers = append(n.subscribers, f)
}

// Publish notifies the subscribers that the rules of the affected kinds changed.
func (n *Notifier) Publish(affects func(schema.GroupVersionKind) bool) {
	n.mu.Lock()
	subscribers := n.subscribers
	n.mu.Unlock()
	for _, f := range subscribers {
		f(affects)
	}
}
