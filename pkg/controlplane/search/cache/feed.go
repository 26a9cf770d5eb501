package cache

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/resourceversion"
)

// feedLength is how many changes of one kind of one cluster are kept, and feedSize how much memory they take at most, in bytes. A watch
// that begins before them ends with ErrExpired.
const (
	feedLength = 512
	feedSize   = 1 << 20
)

// change is a change of an object: old is nil for a new one, now for one that was deleted.
type change struct {
	key      types.NamespacedName
	old, now *Object
	// version is the resource version of the change. It is empty for changes that are no event of the cluster: of its first
	// list, and of objects that are no longer selected.
	version string
}

// size returns about how much memory a change takes, in bytes.
func (c *change) size() int {
	n := overhead
	for _, o := range []*Object{c.old, c.now} {
		if o != nil {
			n += o.size()
		}
	}
	return n
}

// feed has the last changes of a store, and passes new ones on.
type feed struct {
	mu   sync.Mutex
	last []change
	// size is that of the last changes, in bytes.
	size int
	// floor is the version up to which changes are unknown: empty before the first list is complete.
	floor   string
	readers map[*queue]string
}

// add passes a change on. It does not block.
func (f *feed) add(c change) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c.old != nil && c.now != nil && c.old.Version == c.now.Version {
		return // listed again
	}
	if c.version != "" {
		f.last = append(f.last, c)
		f.size += c.size()
		for len(f.last) > feedLength || f.size > feedSize {
			dropped := f.last[0]
			if resourceversion.Older(f.floor, dropped.version) {
				f.floor = dropped.version
			}
			f.size -= dropped.size()
			f.last = slices.Delete(f.last, 0, 1)
		}
	}
	for q, cluster := range f.readers {
		q.put(queued{cluster: cluster, change: c})
	}
}

// begin is called when the objects of a namespace are complete at a version: changes of before are unknown.
func (f *feed) begin(version string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.floor == "" || resourceversion.Older(f.floor, version) {
		f.floor = version
	}
}

// restart ends all readers: the cluster was restored from an older copy, so that versions have no order.
func (f *feed) restart() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last, f.size, f.floor = nil, 0, ""
	for q := range f.readers {
		q.overflow()
	}
}

// read passes changes on to a queue from now on. With a version it returns those that are later, and false if some of them
// are unknown.
func (f *feed) read(q *queue, cluster, since string) (later []change, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if since != "" && (f.floor == "" || resourceversion.Older(since, f.floor)) {
		return nil, false
	}
	if f.readers == nil {
		f.readers = map[*queue]string{}
	}
	f.readers[q] = cluster
	if since == "" {
		return nil, true
	}
	for _, c := range f.last {
		if resourceversion.Older(since, c.version) {
			later = append(later, c)
		}
	}
	return later, true
}

// leave ends what read began.
func (f *feed) leave(q *queue) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.readers, q)
}

// queued is a change with its cluster.
type queued struct {
	cluster string
	change
}

// queueLength is how many changes wait for a watch, and queueSize how much memory they take at most, in bytes. A watch whose client
// reads more slowly ends.
const (
	queueLength = 10000
	queueSize   = 16 << 20
)

// queue has the changes that a watch has not read.
type queue struct {
	wake controllers.Trigger

	mu    sync.Mutex
	items []queued
	size  int
	full  bool
}

func newQueue() *queue { return &queue{wake: controllers.NewTrigger()} }

// put adds a change. It does not block.
func (q *queue) put(c queued) {
	q.mu.Lock()
	if q.size += c.size(); len(q.items) < queueLength && q.size <= queueSize && !q.full {
		q.items = append(q.items, c)
	} else {
		q.items, q.full = nil, true
	}
	q.mu.Unlock()
	q.wake.Fire()
}

// overflow ends the watch.
func (q *queue) overflow() {
	q.mu.Lock()
	q.full = true
	q.mu.Unlock()
	q.wake.Fire()
}

// take returns the changes that wait, and false if some are missing.
func (q *queue) take() ([]queued, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	out := q.items
	q.items, q.size = nil, 0
	return out, !q.full
}

// broadcast tells many that something changed. The zero value is ready for use.
type broadcast struct {
	mu      sync.Mutex
	waiting chan struct{}
}

// next returns a channel that is closed at the next change.
func (b *broadcast) next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting == nil {
		b.waiting = make(chan struct{})
	}
	return b.waiting
}

func (b *broadcast) notify() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting != nil {
		close(b.waiting)
		b.waiting = nil
	}
}
