// Package informer follows the objects of one kind in a cluster and keeps of each
// only what its user needs.
package informer

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/karmada-toolkit/karmada/pkg/member/access"
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
	// Project returns what is kept of an object. old is what was kept of it before,
	// or nil; parts of it may be shared.
	Project func(obj runtime.Object, old *T) (T, error)
	// Size returns how many bytes what is kept of an object takes, about. Optional.
	Size func(value T) int
	// MaxSize returns how many bytes all objects may take together. Default: no
	// limit; the number of objects has one.
	MaxSize func() int
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

// Projection is the set of what is kept.
type Projection[T any] struct {
	cfg    Config[T]
	listed chan struct{}

	mu      sync.RWMutex
	items   map[types.NamespacedName]*T
	size    int
	page    int64
	failure error
	retry   context.CancelFunc
}

const (
	// maxObjects is how many objects of one kind a cluster may have.
	maxObjects = 200_000
	// pageSize is how many objects are listed at a time. Where they are too large for
	// one answer, a page is an eighth.
	pageSize   = 500
	pageFactor = 8
	// shortPages is how many pages but the last may have fewer objects than asked for.
	shortPages = 20
	// listTimeout bounds a list with all its pages.
	listTimeout = 5 * time.Minute
)

// errTooMany is the error for a cluster with more objects than can be kept.
var errTooMany = errors.New("the cluster has more objects than can be kept")

// source makes the reflector read lists in pages and not as a stream, whose objects
// would not be counted.
type source struct{ *cache.ListWatch }

// IsWatchListSemanticsUnSupported is asked for by the reflector.
func (source) IsWatchListSemanticsUnSupported() bool { return true }

// New returns an empty mirror; Run fills it.
func New[T any](cfg Config[T]) *Projection[T] {
	return &Projection[T]{cfg: cfg, listed: make(chan struct{}), items: map[types.NamespacedName]*T{}, page: pageSize}
}

// Run follows the objects until ctx ends.
func (m *Projection[T]) Run(ctx context.Context) {
	from := source{&cache.ListWatch{ListWithContextFunc: m.list, WatchFuncWithContext: m.watch}}
	reflector := cache.NewReflectorWithOptions(from, m.cfg.Example, (*store[T])(m), cache.ReflectorOptions{
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
func (m *Projection[T]) Listed() bool {
	select {
	case <-m.listed:
		return true
	default:
		return false
	}
}

// WhenListed is closed when all objects have been seen once.
func (m *Projection[T]) WhenListed() <-chan struct{} { return m.listed }

// Failure returns why the last attempt to list or watch failed, or nil.
func (m *Projection[T]) Failure() error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.failure
}

// Get returns what is kept of an object, or nil. It is shared and read-only.
func (m *Projection[T]) Get(key types.NamespacedName) *T {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.items[key]
}

// Len returns the number of objects.
func (m *Projection[T]) Len() int {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return len(m.items)
}

// Retry tries again at once if the last attempt failed, instead of waiting.
func (m *Projection[T]) Retry() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.failure != nil && m.retry != nil {
		m.retry()
	}
}

func (m *Projection[T]) list(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	list, err := m.pages(ctx)
	m.outcome(ctx, err)
	if err != nil {
		return nil, err
	}
	return list, nil
}

// keptList is a list whose objects are converted.
type keptList struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []runtime.Object

	size int
}

// DeepCopyObject implements runtime.Object; nobody copies it.
func (l *keptList) DeepCopyObject() runtime.Object { return l }

// pages lists all objects page by page, and keeps of each page what is needed before
// it reads the next.
func (m *Projection[T]) pages(ctx context.Context) (*keptList, error) {
	out := &keptList{}
	options := metav1.ListOptions{Limit: m.limit(0)}
	for expired, short := 0, 0; ; {
		page, err := m.cfg.List(ctx, options)
		switch {
		case access.IsLimit(err) && options.Limit > 1:
			options.Limit = m.limit(max(1, options.Limit/pageFactor))
			continue
		case apierrors.IsResourceExpired(err) && options.Continue != "" && expired < 1:
			// It took too long; what is there now is read from the start.
			expired++
			out, options.Continue = &keptList{}, ""
			continue
		case err != nil:
			return nil, err
		}
		head, err := meta.ListAccessor(page)
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", m.cfg.Name, err)
		}
		before := len(out.Items)
		if err := meta.EachListItem(page, func(obj runtime.Object) error { return m.collect(out, obj) }); err != nil {
			return nil, err
		}
		out.ResourceVersion = head.GetResourceVersion()
		if options.Continue = head.GetContinue(); options.Continue == "" {
			m.limit(pageSize)
			return out, nil
		}
		if int64(len(out.Items)-before) < options.Limit {
			short++
		}
		if len(out.Items) == before || short > shortPages {
			return nil, fmt.Errorf("listing %s: the pages are shorter than asked for and have no end", m.cfg.Name)
		}
	}
}

// limit sets the size of pages, unless it is 0, and returns it. What was too large stays
// so until a list succeeds: a member whose every answer is too large is asked once.
func (m *Projection[T]) limit(set int64) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if set > 0 {
		m.page = set
	}
	return m.page
}

// collect adds an object to a list.
func (m *Projection[T]) collect(list *keptList, obj runtime.Object) error {
	key, value, err := (*store[T])(m).convert(obj)
	if err != nil {
		return err
	}
	list.size += m.sizeOf(key, value)
	if len(list.Items) >= maxObjects || list.size > m.maxSize() {
		return fmt.Errorf("listing %s: %w: %d, %d KiB of %d", m.cfg.Name, errTooMany, len(list.Items), list.size>>10, m.maxSize()>>10)
	}
	list.Items = append(list.Items, &kept[T]{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, value: value})
	return nil
}

func (m *Projection[T]) sizeOf(key types.NamespacedName, value *T) int {
	const overhead = 64
	size := overhead + len(key.Namespace) + len(key.Name)
	if m.cfg.Size != nil && value != nil {
		size += m.cfg.Size(*value)
	}
	return size
}

func (m *Projection[T]) maxSize() int {
	if m.cfg.MaxSize == nil {
		return math.MaxInt
	}
	return m.cfg.MaxSize()
}

func (m *Projection[T]) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	w, err := m.cfg.Watch(ctx, options)
	m.outcome(ctx, err)
	return w, err
}

func (m *Projection[T]) outcome(ctx context.Context, err error) {
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

// store is the side of a Projection that the reflector writes to.
type store[T any] Projection[T]

// kept is an object whose conversion is done; lists are collected in this form.
type kept[T any] struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	value *T
}

// DeepCopyObject implements runtime.Object; nobody copies it.
func (k *kept[T]) DeepCopyObject() runtime.Object { return k }

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
	value, err := s.cfg.Project(obj, (*Projection[T])(s).Get(key))
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
	if !s.fits(key, value) {
		err := fmt.Errorf("watching %s: %w", s.cfg.Name, errTooMany)
		(*Projection[T])(s).outcome(context.Background(), err)
		return err
	}
	s.put(key, value)
	return nil
}

// fits reports whether there is room for an object.
func (s *store[T]) fits(key types.NamespacedName, value *T) bool {
	m := (*Projection[T])(s)
	size := m.sizeOf(key, value)
	most := m.maxSize()
	s.mu.RLock()
	defer s.mu.RUnlock()
	old := s.items[key]
	if old != nil {
		size -= m.sizeOf(key, old)
	}
	return size <= 0 || s.size+size <= most && (old != nil || len(s.items) < maxObjects)
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
	if !(*Projection[T])(s).Listed() {
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
	if old != nil {
		s.size -= (*Projection[T])(s).sizeOf(key, old)
	}
	if value == nil {
		delete(s.items, key)
	} else {
		s.items[key] = value
		s.size += (*Projection[T])(s).sizeOf(key, value)
	}
	s.mu.Unlock()
	if s.cfg.Changed != nil && (old != nil || value != nil) {
		s.cfg.Changed(key, old, value)
	}
}

// Each calls fn for every object, in no order. fn must not call the mirror.
func (m *Projection[T]) Each(fn func(key types.NamespacedName, value *T)) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for key, value := range m.items {
		fn(key, value)
	}
}
