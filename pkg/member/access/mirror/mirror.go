// Package mirror follows the objects of one kind in a cluster and keeps of each
// only what its user needs.
package mirror

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// Config says what is mirrored.
type Config[T any] struct {
	// Name is for logs.
	Name string
	// List and Watch read the objects.
	List  func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error)
	Watch func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
	// Example is an object of the type that List and Watch return.
	Example runtime.Object
	// Keep returns what is kept of an object. old is what was kept of it before,
	// or nil; parts of it may be shared.
	Keep func(obj runtime.Object, old *T) (T, error)
	// Changed is told of every change, one at a time: old is nil for a new object,
	// now for one that is gone. It must not block. Optional.
	Changed func(key types.NamespacedName, old, now *T)
	// Listed is told when all objects have been seen once. Optional.
	Listed func()
	// Failed is told when a list or a watch fails, and Recovered when one works
	// again after that. Both are optional and must not block.
	Failed    func(err error)
	Recovered func()
}

// Mirror is the set of what is kept.
type Mirror[T any] struct {
	cfg    Config[T]
	listed chan struct{}

	mu      sync.RWMutex
	items   map[types.NamespacedName]*T
	failure error
	retry   context.CancelFunc
}

// New returns an empty mirror; Run fills it.
func New[T any](cfg Config[T]) *Mirror[T] {
	return &Mirror[T]{cfg: cfg, listed: make(chan struct{}), items: map[types.NamespacedName]*T{}}
}

// Run follows the objects until ctx ends.
func (m *Mirror[T]) Run(ctx context.Context) {
	source := &cache.ListWatch{ListWithContextFunc: m.list, WatchFuncWithContext: m.watch}
	reflector := cache.NewReflectorWithOptions(source, m.cfg.Example, (*store[T])(m), cache.ReflectorOptions{
		Name:    m.cfg.Name,
		Backoff: &wait.Backoff{Duration: 300 * time.Millisecond, Factor: 2, Jitter: 0.3, Steps: 6, Cap: 8 * time.Second},
	})
	// A member that is away is reported by whoever probes it; the reflector would
	// write a line for each attempt.
	quiet := klog.NewContext(ctx, logr.Discard())
	for ctx.Err() == nil {
		attempt, cancel := context.WithCancel(quiet)
		m.mu.Lock()
		m.retry = cancel
		m.mu.Unlock()
		reflector.RunWithContext(attempt)
		cancel()
	}
}

// Listed says whether all objects have been seen once.
func (m *Mirror[T]) Listed() bool {
	select {
	case <-m.listed:
		return true
	default:
		return false
	}
}

// WhenListed is closed when all objects have been seen once.
func (m *Mirror[T]) WhenListed() <-chan struct{} { return m.listed }

// Failure returns why the last attempt to list or watch failed, or nil.
func (m *Mirror[T]) Failure() error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.failure
}

// Get returns what is kept of an object, or nil. It is shared and read-only.
func (m *Mirror[T]) Get(key types.NamespacedName) *T {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.items[key]
}

// Len returns the number of objects.
func (m *Mirror[T]) Len() int {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return len(m.items)
}

// Retry tries again at once if the last attempt failed, instead of waiting.
func (m *Mirror[T]) Retry() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.failure != nil && m.retry != nil {
		m.retry()
	}
}

func (m *Mirror[T]) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	list, err := m.cfg.List(ctx, options)
	m.outcome(ctx, err)
	return list, err
}

func (m *Mirror[T]) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	w, err := m.cfg.Watch(ctx, options)
	// A cluster that does not know how to stream the list is asked for a plain
	// one next; that is no failure.
	if err == nil || options.SendInitialEvents == nil {
		m.outcome(ctx, err)
	}
	return w, err
}

func (m *Mirror[T]) outcome(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	m.mu.Lock()
	before := m.failure
	m.failure = err
	m.mu.Unlock()
	switch {
	case err != nil && m.cfg.Failed != nil:
		m.cfg.Failed(err)
	case err == nil && before != nil && m.cfg.Recovered != nil:
		m.cfg.Recovered()
	}
}

// store is the side of a Mirror that the reflector writes to.
type store[T any] Mirror[T]

// kept is an object whose conversion is done; lists that are streamed are
// collected in this form.
type kept[T any] struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	value *T
}

// DeepCopyObject implements runtime.Object; nobody copies it.
func (k *kept[T]) DeepCopyObject() runtime.Object { return k }

// Transformer implements cache.TransformingStore.
func (s *store[T]) Transformer() cache.TransformFunc {
	return func(in any) (any, error) {
		if k, ok := in.(*kept[T]); ok {
			return k, nil
		}
		key, value, err := s.convert(in)
		if err != nil {
			return nil, err
		}
		return &kept[T]{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, value: value}, nil
	}
}

func (s *store[T]) convert(in any) (types.NamespacedName, *T, error) {
	if k, ok := in.(*kept[T]); ok {
		return types.NamespacedName{Namespace: k.Namespace, Name: k.Name}, k.value, nil
	}
	obj, ok := in.(runtime.Object)
	if !ok {
		return types.NamespacedName{}, nil, fmt.Errorf("mirroring %s: unexpected %T", s.cfg.Name, in)
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return types.NamespacedName{}, nil, fmt.Errorf("mirroring %s: %w", s.cfg.Name, err)
	}
	key := types.NamespacedName{Namespace: m.GetNamespace(), Name: m.GetName()}
	value, err := s.cfg.Keep(obj, (*Mirror[T])(s).Get(key))
	if err != nil {
		return key, nil, fmt.Errorf("mirroring %s %s: %w", s.cfg.Name, key, err)
	}
	return key, &value, nil
}

// Add implements cache.ReflectorStore.
func (s *store[T]) Add(in any) error {
	key, value, err := s.convert(in)
	if err != nil {
		return err
	}
	s.put(key, value)
	return nil
}

// Update implements cache.ReflectorStore.
func (s *store[T]) Update(in any) error { return s.Add(in) }

// Delete implements cache.ReflectorStore.
func (s *store[T]) Delete(in any) error {
	m, err := meta.Accessor(in)
	if err != nil {
		return fmt.Errorf("mirroring %s: %w", s.cfg.Name, err)
	}
	s.put(types.NamespacedName{Namespace: m.GetNamespace(), Name: m.GetName()}, nil)
	return nil
}

// Resync implements cache.ReflectorStore.
func (s *store[T]) Resync() error { return nil }

// Replace implements cache.ReflectorStore.
func (s *store[T]) Replace(list []any, _ string) error {
	seen := make(map[types.NamespacedName]bool, len(list))
	for _, in := range list {
		key, value, err := s.convert(in)
		if err != nil {
			return err
		}
		seen[key] = true
		s.put(key, value)
	}
	var gone []types.NamespacedName
	s.mu.RLock()
	for key := range s.items {
		if !seen[key] {
			gone = append(gone, key)
		}
	}
	s.mu.RUnlock()
	for _, key := range gone {
		s.put(key, nil)
	}
	if !(*Mirror[T])(s).Listed() {
		close(s.listed)
		if s.cfg.Listed != nil {
			s.cfg.Listed()
		}
	}
	return nil
}

// put stores a value, or removes it when it is nil.
func (s *store[T]) put(key types.NamespacedName, value *T) {
	s.mu.Lock()
	old := s.items[key]
	if value == nil {
		delete(s.items, key)
	} else {
		s.items[key] = value
	}
	s.mu.Unlock()
	if s.cfg.Changed != nil && (old != nil || value != nil) {
		s.cfg.Changed(key, old, value)
	}
}

// Each calls fn for every object, in no order. fn must not call the mirror.
func (m *Mirror[T]) Each(fn func(key types.NamespacedName, value *T)) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for key, value := range m.items {
		fn(key, value)
	}
}
