// Package templates watches the objects that users want in member clusters: every
// type of the control plane that can be propagated, whatever its kind.
package templates

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
)

// The defaults of Config.
const (
	defaultPeriod   = 30 * time.Second
	defaultSyncWait = 15 * time.Second
)

// Event is a change of an object. Old is nil for an object that is new, New for
// one that is gone. Both are shared and read-only.
type Event struct {
	Old, New *unstructured.Unstructured
	// Initial says that the object was there before anybody looked.
	Initial bool
}

// Object returns the object as it is, or was last.
func (e Event) Object() *unstructured.Unstructured {
	if e.New != nil {
		return e.New
	}
	return e.Old
}

// Handler is told of changes. It must not block.
type Handler func(Event)

// Config is what a Store needs.
type Config struct {
	// Discovery tells which types there are.
	Discovery discovery.DiscoveryInterface
	// Dynamic reads objects of any type.
	Dynamic dynamic.Interface
	// Mapper resolves types that are not watched. Optional.
	Mapper meta.RESTMapper
	// SkippedAPIs are not watched.
	SkippedAPIs *APIs
	// SkippedNamespaces hold objects that nobody is told of.
	SkippedNamespaces *Namespaces
	// Period is the time between looks for new types when nothing hints at one.
	// Default 30 s.
	Period time.Duration
	// SyncWait is how long WaitForSync waits for types that cannot be listed.
	// Default 15 s.
	SyncWait time.Duration
}

// Store keeps the objects of every type that can be propagated. It starts to
// watch a type when the type appears and stops when it disappears.
type Store struct {
	cfg   Config
	hint  chan struct{}
	ready chan struct{}

	mu     sync.RWMutex
	ctx    context.Context //nolint:containedctx // the life of the informers, which start long after Start was called
	types  map[schema.GroupVersionResource]*watchedType
	byKind map[schema.GroupVersionKind]*watchedType
	subs   []subscription
}

type subscription struct {
	handler Handler
	kinds   map[schema.GroupKind]bool // empty: all
}

// New returns a Store; Start makes it work.
func New(cfg Config) *Store {
	if cfg.Period <= 0 {
		cfg.Period = defaultPeriod
	}
	if cfg.SyncWait <= 0 {
		cfg.SyncWait = defaultSyncWait
	}
	return &Store{
		cfg:    cfg,
		hint:   make(chan struct{}, 1),
		ready:  make(chan struct{}),
		types:  map[schema.GroupVersionResource]*watchedType{},
		byKind: map[schema.GroupVersionKind]*watchedType{},
	}
}

// Subscribe has the handler told of every change of the given kinds, or of all,
// and of every object that is there already. Changes of status alone are not
// told, nor objects in skipped namespaces.
func (s *Store) Subscribe(handler Handler, kinds ...schema.GroupKind) error {
	sub := subscription{handler: handler, kinds: map[schema.GroupKind]bool{}}
	for _, kind := range kinds {
		sub.kinds[kind] = true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.subs = append(s.subs, sub)
	for _, t := range s.types {
		if err := s.connect(sub, t); err != nil {
			return err
		}
	}
	return nil
}

// WaitForSync waits until the objects of every type have been listed once. Types
// that cannot be listed are waited for a limited time only; Get reads them live.
func (s *Store) WaitForSync(ctx context.Context) error {
	select {
	case <-s.ready:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for the templates to be listed: %w", context.Cause(ctx))
	}
}

// Get returns an object: from memory, or else from the API server. It is shared
// and read-only. An object of a type that does not exist is not found.
func (s *Store) Get(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) (*unstructured.Unstructured, error) {
	if obj := s.Cached(gvk, namespace, name); obj != nil {
		return obj, nil
	}
	return s.GetLive(ctx, gvk, namespace, name)
}

// GetLive returns an object from the API server.
func (s *Store) GetLive(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) (*unstructured.Unstructured, error) {
	gvr, err := s.resource(gvk)
	if err != nil {
		if meta.IsNoMatchError(err) {
			return nil, apierrors.NewNotFound(schema.GroupResource{Group: gvk.Group, Resource: gvk.Kind}, name)
		}
		return nil, err
	}
	obj, err := s.cfg.Dynamic.Resource(gvr).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("getting %s %s/%s: %w", gvk.Kind, namespace, name, err)
	}
	return obj, nil
}

// List returns the objects of a type in a namespace, or in all. They are shared
// and read-only.
func (s *Store) List(ctx context.Context, gvk schema.GroupVersionKind, namespace string, selector labels.Selector) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	if t := s.byGVK(gvk); t != nil && t.informer.HasSynced() {
		collect := func(obj any) { out = append(out, obj.(*unstructured.Unstructured)) }
		err := cache.ListAllByNamespace(t.informer.GetIndexer(), namespace, selector, collect)
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", gvk.Kind, err)
		}
		return out, nil
	}
	gvr, err := s.resource(gvk)
	if err != nil {
		if meta.IsNoMatchError(err) {
			return nil, nil
		}
		return nil, err
	}
	list, err := s.cfg.Dynamic.Resource(gvr).Namespace(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector.String()})
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", gvk.Kind, err)
	}
	for i := range list.Items {
		out = append(out, &list.Items[i])
	}
	return out, nil
}

// Claimed returns the objects of all types that are labelled with the permanent
// id of a propagation policy. They are shared and read-only.
func (s *Store) Claimed(id string) ([]*unstructured.Unstructured, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var out []*unstructured.Unstructured
	for _, t := range s.types {
		found, err := t.informer.GetIndexer().ByIndex(claimIndex, id)
		if err != nil {
			return nil, fmt.Errorf("looking up %s: %w", t.gvk.Kind, err)
		}
		for _, obj := range found {
			out = append(out, obj.(*unstructured.Unstructured))
		}
	}
	return out, nil
}

// Resource returns the resource of a kind and whether it is namespaced. Only
// watched kinds are known.
func (s *Store) Resource(gvk schema.GroupVersionKind) (gvr schema.GroupVersionResource, namespaced, ok bool) {
	t := s.byGVK(gvk)
	if t == nil {
		return schema.GroupVersionResource{}, false, false
	}
	return t.gvr, t.namespaced, true
}

// Skips says whether nobody is told of objects in the namespace.
func (s *Store) Skips(namespace string) bool { return s.cfg.SkippedNamespaces.Contains(namespace) }

// Dynamic returns the client that the Store reads with.
func (s *Store) Dynamic() dynamic.Interface { return s.cfg.Dynamic }

// ErrUnknownKind is returned for a kind that cannot be resolved.
var ErrUnknownKind = errors.New("the kind is not known")

// GVR returns the resource of a kind, watched or not.
func (s *Store) GVR(gvk schema.GroupVersionKind) (schema.GroupVersionResource, error) {
	return s.resource(gvk)
}

func (s *Store) resource(gvk schema.GroupVersionKind) (schema.GroupVersionResource, error) {
	if t := s.byGVK(gvk); t != nil {
		return t.gvr, nil
	}
	if s.cfg.Mapper == nil {
		return schema.GroupVersionResource{}, fmt.Errorf("resolving %s: %w", gvk, ErrUnknownKind)
	}
	mapping, err := s.cfg.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return schema.GroupVersionResource{}, fmt.Errorf("resolving %s: %w", gvk, err)
	}
	return mapping.Resource, nil
}

func (s *Store) byGVK(gvk schema.GroupVersionKind) *watchedType {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.byKind[gvk]
}

// Kinds returns the kinds that are watched.
func (s *Store) Kinds() []schema.GroupVersionKind {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Collect(maps.Keys(s.byKind))
}

// CachedAll returns the objects of a kind that memory holds, but for those in
// skipped namespaces. They are shared and read-only.
func (s *Store) CachedAll(gvk schema.GroupVersionKind) []*unstructured.Unstructured {
	t := s.byGVK(gvk)
	if t == nil {
		return nil
	}
	var out []*unstructured.Unstructured
	for _, obj := range t.informer.GetIndexer().List() {
		if u, ok := obj.(*unstructured.Unstructured); ok && !s.Skips(u.GetNamespace()) {
			out = append(out, u)
		}
	}
	return out
}

// Cached returns an object from memory, or nil. It is shared and read-only.
func (s *Store) Cached(gvk schema.GroupVersionKind, namespace, name string) *unstructured.Unstructured {
	t := s.byGVK(gvk)
	if t == nil {
		return nil
	}
	key := cache.ObjectName{Namespace: namespace, Name: name}.String()
	obj, ok, err := t.informer.GetIndexer().GetByKey(key)
	if err != nil || !ok {
		return nil
	}
	return obj.(*unstructured.Unstructured)
}
