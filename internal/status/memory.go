package status

import (
	"sync"

	"k8s.io/utils/lru"
)

// Memory records what a controller wrote last, by key, for controllers that have to recognize their own writes or
// to read around a cache that is behind them. It is safe for concurrent use.
type Memory[K comparable, V any] struct {
	mu      sync.Mutex
	entries *lru.Cache
}

// NewMemory returns an empty Memory. With a limit above 0 it drops the least recently used entry beyond that number.
func NewMemory[K comparable, V any](limit int) *Memory[K, V] {
	return &Memory[K, V]{entries: lru.New(limit)}
}

// Get returns the entry of a key and whether there is one.
func (m *Memory[K, V]) Get(key K) (V, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.getLocked(key)
}

// Set replaces the entry of a key.
func (m *Memory[K, V]) Set(key K, value V) {
	m.Update(key, func(V, bool) (V, bool) { return value, true })
}

// Delete removes the entry of a key.
func (m *Memory[K, V]) Delete(key K) {
	m.Update(key, func(value V, _ bool) (V, bool) { return value, false })
}

// Update replaces the entry of a key by what change returns for it, or removes it if change returns false. No other
// call sees or changes the Memory meanwhile, so change must not call it.
func (m *Memory[K, V]) Update(key K, change func(value V, found bool) (V, bool)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	value, keep := change(m.getLocked(key))
	if keep {
		m.entries.Add(key, value)
	} else {
		m.entries.Remove(key)
	}
}

func (m *Memory[K, V]) getLocked(key K) (V, bool) {
	value, found := m.entries.Get(key)
	if !found {
		var none V
		return none, false
	}
	return value.(V), true
}
