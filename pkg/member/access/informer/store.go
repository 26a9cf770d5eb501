package informer

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// store holds the projections. The reflector writes to it as a cache.ReflectorStore.
type store[T any] struct {
	cfg      Config[T]
	requests *requests
	synced   chan struct{}

	mu    sync.RWMutex
	items map[types.NamespacedName]*T
	size  int
	// version is the latest resource version of a list or an object.
	version string
}

func newStore[T any](cfg Config[T], r *requests) *store[T] {
	return &store[T]{cfg: cfg, requests: r, synced: make(chan struct{}), items: map[types.NamespacedName]*T{}}
}

func (s *store[T]) hasSynced() bool {
	select {
	case <-s.synced:
		return true
	default:
		return false
	}
}

func (s *store[T]) get(key types.NamespacedName) *T {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.items[key]
}

func (s *store[T]) len() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.items)
}

// snapshot calls fn for every object, and returns the resource version that they have together. It is empty before the first
// list is complete.
func (s *store[T]) snapshot(fn func(key types.NamespacedName, value *T)) string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for key, value := range s.items {
		fn(key, value)
	}
	if !s.hasSynced() {
		return ""
	}
	return s.version
}

func (s *store[T]) each(fn func(key types.NamespacedName, value *T)) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for key, value := range s.items {
		fn(key, value)
	}
}

// project returns the key and the projection of an object.
func (s *store[T]) project(in any) (types.NamespacedName, *T, error) {
	if p, ok := in.(*projected[T]); ok {
		return p.key(), p.value, nil
	}
	obj, ok := in.(runtime.Object)
	if !ok {
		return types.NamespacedName{}, nil, fmt.Errorf("projecting %s: unexpected %T", s.cfg.Name, in)
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return types.NamespacedName{}, nil, fmt.Errorf("projecting %s: %w", s.cfg.Name, err)
	}
	key := types.NamespacedName{Namespace: m.GetNamespace(), Name: m.GetName()}
	value, err := s.cfg.Project(obj, s.get(key))
	if err != nil {
		return key, nil, fmt.Errorf("projecting %s %s: %w", s.cfg.Name, key, err)
	}
	return key, &value, nil
}

// Add implements cache.ReflectorStore.
func (s *store[T]) Add(in any) error {
	key, value, err := s.project(in)
	if err != nil {
		return err
	}
	if !s.fits(key, value) {
		err := fmt.Errorf("watching %s: %w", s.cfg.Name, errTooMany)
		s.requests.ended(context.Background(), err)
		return err
	}
	s.put(key, value, versionOf(in))
	return nil
}

// fits reports whether an object is within the limits.
func (s *store[T]) fits(key types.NamespacedName, value *T) bool {
	size := s.cfg.sizeOf(key, value)
	most := s.cfg.MaxSize()
	s.mu.RLock()
	defer s.mu.RUnlock()
	old := s.items[key]
	if old != nil {
		size -= s.cfg.sizeOf(key, old)
	}
	return size <= 0 || s.size+size <= most && (old != nil || len(s.items) < maxObjects)
}

// Update implements cache.ReflectorStore.
func (s *store[T]) Update(in any) error { return s.Add(in) }

// Delete implements cache.ReflectorStore.
func (s *store[T]) Delete(in any) error {
	m, err := meta.Accessor(in)
	if err != nil {
		return fmt.Errorf("projecting %s: %w", s.cfg.Name, err)
	}
	s.put(types.NamespacedName{Namespace: m.GetNamespace(), Name: m.GetName()}, nil, m.GetResourceVersion())
	return nil
}

// versionOf returns the resource version of an object of a watch, empty if it has none.
func versionOf(in any) string {
	m, err := meta.Accessor(in)
	if err != nil {
		return ""
	}
	return m.GetResourceVersion()
}

// older reports whether resource version a is older than b. Versions that cannot be
// compared are not.
func older(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}

// Resync implements cache.ReflectorStore.
func (s *store[T]) Resync() error { return nil }

// Replace implements cache.ReflectorStore.
func (s *store[T]) Replace(list []any, version string) error {
	s.mu.RLock()
	from, to := s.version, version
	s.mu.RUnlock()
	back := older(to, from)
	present := make(map[types.NamespacedName]bool, len(list))
	for _, in := range list {
		key, value, err := s.project(in)
		if err != nil {
			return err
		}
		present[key] = true
		if old := s.get(key); old != nil && !back && older(s.cfg.Version(*value), s.cfg.Version(*old)) {
			from, to, back = s.cfg.Version(*old), s.cfg.Version(*value), true
		}
		s.put(key, value, "")
	}
	s.dropOthers(present, version)
	if back {
		s.cfg.WentBack(from, to)
	}
	if !s.hasSynced() {
		close(s.synced)
		s.cfg.Synced()
	}
	return nil
}

// dropOthers removes the objects that a list does not have. From then on the objects have the version of the list.
func (s *store[T]) dropOthers(present map[types.NamespacedName]bool, version string) {
	deleted := map[types.NamespacedName]*T{}
	s.mu.Lock()
	for key, value := range s.items {
		if !present[key] {
			deleted[key] = value
			s.size -= s.cfg.sizeOf(key, value)
			delete(s.items, key)
		}
	}
	s.version = version
	s.mu.Unlock()
	for key, value := range deleted {
		s.cfg.Changed(key, value, nil)
	}
}

// put stores a projection, or removes it when value is nil, with the version of the watch that it comes from: empty for one
// of a list that is not complete.
func (s *store[T]) put(key types.NamespacedName, value *T, version string) {
	s.mu.Lock()
	if version != "" && (s.version == "" || older(s.version, version)) {
		s.version = version
	}
	old := s.items[key]
	if old != nil {
		s.size -= s.cfg.sizeOf(key, old)
	}
	if value == nil {
		delete(s.items, key)
	} else {
		s.items[key] = value
		s.size += s.cfg.sizeOf(key, value)
	}
	s.mu.Unlock()
	if old != nil || value != nil {
		s.cfg.Changed(key, old, value)
	}
}

// requests records the result of the last list or watch.
type requests struct {
	failed    func(error)
	recovered func()

	mu     sync.Mutex
	err    error
	cancel context.CancelFunc // ends the current run of the reflector, backoff included
}

func (r *requests) begin(cancel context.CancelFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cancel = cancel
}

// ended records the result of a request, unless it was canceled.
func (r *requests) ended(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	r.mu.Lock()
	before := r.err
	r.err = err
	r.mu.Unlock()
	switch {
	case err != nil:
		r.failed(err)
	case before != nil:
		r.recovered()
	}
}

func (r *requests) failure() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

func (r *requests) retry() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil && r.cancel != nil {
		r.cancel()
	}
}
