package follow

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/karmada-toolkit/karmada/internal/resourceversion"
)

// store holds the projections.
type store[T any] struct {
	cfg Config[T]
	// synced is closed after the first complete list, first after the first list that is complete or failed.
	synced, first chan struct{}
	once          sync.Once

	mu    sync.RWMutex
	items map[types.NamespacedName]*T
	size  int
	// version is the latest resource version of a list or an event.
	version string
	// err is the result of the last request.
	err error
	// dropped reports that the budget has back what the objects took.
	dropped bool
}

func newStore[T any](cfg Config[T]) *store[T] {
	return &store[T]{cfg: cfg, synced: make(chan struct{}), first: make(chan struct{}), items: map[types.NamespacedName]*T{}}
}

// HasSynced reports whether the first list is complete.
func (s *store[T]) HasSynced() bool {
	select {
	case <-s.synced:
		return true
	default:
		return false
	}
}

// Get returns the projection of an object, or nil. It is shared and read-only.
func (s *store[T]) Get(key types.NamespacedName) *T {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.items[key]
}

// Len returns the number of objects.
func (s *store[T]) Len() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.items)
}

// Each calls fn for every object, in no order. fn must not call the projection.
func (s *store[T]) Each(fn func(key types.NamespacedName, value *T)) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for key, value := range s.items {
		fn(key, value)
	}
}

// project returns the key and the projection of an object.
func (s *store[T]) project(obj object) (types.NamespacedName, *T, error) {
	key := types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}
	value, err := s.cfg.Project(obj, s.Get(key))
	if err != nil {
		return key, nil, fmt.Errorf("projecting %s %s: %w", s.cfg.Name, key, err)
	}
	return key, &value, nil
}

// put stores an object.
func (s *store[T]) put(obj object) error {
	key, value, err := s.project(obj)
	if err != nil {
		return err
	}
	if !s.fits(key, value) {
		err := fmt.Errorf("watching %s: %w", s.cfg.Name, errTooMany)
		s.ended(err)
		return err
	}
	s.set(key, value, obj.GetResourceVersion())
	return nil
}

// fits reports whether an object is within the limits.
func (s *store[T]) fits(key types.NamespacedName, value *T) bool {
	size := s.cfg.sizeOf(key, value)
	s.mu.RLock()
	defer s.mu.RUnlock()
	old := s.items[key]
	if old != nil {
		size -= s.cfg.sizeOf(key, old)
	}
	return size <= 0 || s.size+size <= s.most(s.size) && (old != nil || len(s.items) < maxObjects)
}

// most returns how large the objects may be together that are as large as own now.
func (s *store[T]) most(own int) int {
	most := s.cfg.MaxSize()
	if s.cfg.Budget != nil {
		most = min(most, s.cfg.Budget.rest()+own)
	}
	return most
}

func (s *store[T]) remove(key types.NamespacedName, version string) { s.set(key, nil, version) }

func (s *store[T]) progress(version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.progressLocked(version)
}

func (s *store[T]) progressLocked(version string) {
	if version != "" && (s.version == "" || resourceversion.Older(s.version, version)) {
		s.version = version
	}
}

// Version returns the resource version of the last list or event.
func (s *store[T]) Version() string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.version
}

// page has the objects of a list.
type page[T any] struct {
	store *store[T]
	items []item[T]
	size  int
	// settled is how many objects are settled.
	settled int
}

type item[T any] struct {
	key   types.NamespacedName
	value *T
}

func (s *store[T]) list() listing { return &page[T]{store: s} }

func (l *page[T]) restart() { l.items, l.size, l.settled = nil, 0, 0 }

// add projects an object and adds it.
func (l *page[T]) add(obj object) error {
	key, value, err := l.store.project(obj)
	if err != nil {
		return err
	}
	cfg := &l.store.cfg
	l.size += cfg.sizeOf(key, value)
	if most := l.store.most(l.store.bytes()); len(l.items) >= maxObjects || l.size > most {
		return fmt.Errorf("%s: %w: %d, %d KiB of %d", cfg.Name, errTooMany, len(l.items), l.size>>10, most>>10)
	}
	l.items = append(l.items, item[T]{key, value})
	return nil
}

// settle copies the objects of a page.
func (l *page[T]) settle() {
	if settle := l.store.cfg.Settle; settle != nil {
		for i := range l.items[l.settled:] {
			at := &l.items[l.settled+i]
			key, value := settle(at.key, *at.value)
			at.key, at.value = key, &value
		}
	}
	l.settled = len(l.items)
}

// replace makes the objects those of the list.
func (l *page[T]) replace(version string) {
	s := l.store
	s.mu.RLock()
	from, to := s.version, version
	s.mu.RUnlock()
	back := resourceversion.Older(to, from)
	present := make(map[types.NamespacedName]bool, len(l.items))
	for _, in := range l.items {
		present[in.key] = true
		if old := s.Get(in.key); old != nil && !back && resourceversion.Older(s.cfg.Version(*in.value), s.cfg.Version(*old)) {
			from, to, back = s.cfg.Version(*old), s.cfg.Version(*in.value), true
		}
		s.set(in.key, in.value, "")
	}
	s.dropOthers(present, version)
	if member := s.cfg.member; back && member != nil {
		member.WentBack(from, to)
	}
	if !s.HasSynced() {
		close(s.synced)
		s.once.Do(func() { close(s.first) })
		s.cfg.Synced()
	}
}

// dropOthers removes the objects that a list does not have. From then on the objects have the version of the list.
func (s *store[T]) dropOthers(present map[types.NamespacedName]bool, version string) {
	deleted := map[types.NamespacedName]*T{}
	s.mu.Lock()
	for key, value := range s.items {
		if !present[key] {
			deleted[key] = value
			s.growLocked(-s.cfg.sizeOf(key, value))
			delete(s.items, key)
		}
	}
	s.version = version
	s.mu.Unlock()
	for key, value := range deleted {
		s.cfg.Changed(key, value, nil)
	}
}

// set stores a projection, or removes it when value is nil, with the version of the watch that it comes from: empty for one
// of a list that is not complete.
func (s *store[T]) set(key types.NamespacedName, value *T, version string) {
	s.mu.Lock()
	s.progressLocked(version)
	old := s.items[key]
	if old != nil {
		s.growLocked(-s.cfg.sizeOf(key, old))
	}
	if value == nil {
		delete(s.items, key)
	} else {
		s.items[key] = value
		s.growLocked(s.cfg.sizeOf(key, value))
	}
	s.mu.Unlock()
	if old != nil || value != nil {
		s.cfg.Changed(key, old, value)
	}
}

func (s *store[T]) bytes() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.size
}

func (s *store[T]) growLocked(by int) {
	s.size += by
	if b := s.cfg.Budget; b != nil && !s.dropped {
		b.used.Add(int64(by))
	}
}

// drop gives what the objects take of the budget back.
func (s *store[T]) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.cfg.Budget; b != nil && !s.dropped {
		b.used.Add(int64(-s.size))
	}
	s.dropped = true
}

// ended records the result of a request.
func (s *store[T]) ended(err error) {
	s.mu.Lock()
	s.err = err
	s.mu.Unlock()
	if err != nil {
		s.cfg.Failed(err)
		s.once.Do(func() { close(s.first) })
	}
}

// Failure returns the error of the last list or watch, or nil.
func (s *store[T]) Failure() error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.err
}
