package get

import (
	"sync"
	"time"
)

// recountInterval is how long counts of bindings are shown before all bindings are listed again. It bounds the load of a
// watch, in which each change of an object shows the counts.
const recountInterval = 10 * time.Second

// bindingCounts are counts of bindings by two keys. They are safe for concurrent use.
type bindingCounts struct {
	now  func() time.Time
	mu   sync.Mutex
	last map[string]countsAt
}

type countsAt struct {
	at     time.Time
	counts map[string]map[string]int
	err    error
}

// read returns the counts of a name from the last interval, or those that list returns.
func (b *bindingCounts) read(name string, list func() (map[string]map[string]int, error)) (map[string]map[string]int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c, ok := b.last[name]
	if !ok || b.now().Sub(c.at) >= recountInterval {
		c.counts, c.err = list()
		c.at = b.now()
		if b.last == nil {
			b.last = map[string]countsAt{}
		}
		b.last[name] = c
	}
	return c.counts, c.err
}
