// Package templates watches the objects that users want in member clusters: every
// type of the control plane that can be propagated, whatever its kind.
package templates

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/pkg/domain/manifest"
	"github.com/karmada-toolkit/karmada/pkg/domain/propagation"
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
	// Initial is set for an object of the first list of its type.
	Initial bool
}

// Object returns the object as it is, or was last.
func (e Event) Object() *unstructured.Unstructured {
	if e.New != nil {
		return e.New
	}
	return e.Old
}

// Handler handles changes. It must not block.
type Handler func(Event)

// Config is what a Store needs.
type Config struct {
	// Discovery discovers the types.
	Discovery discovery.DiscoveryInterface
	// Dynamic reads objects of any type.
	Dynamic dynamic.Interface
	// Mapper resolves types that are not watched. Optional.
	Mapper meta.RESTMapper
	// SkippedAPIs are not watched.
	SkippedAPIs *APIs
	// SkippedNamespaces hold objects whose events are not published.
	SkippedNamespaces *propagation.Namespaces
	// Period is the time between discoveries without a trigger. Default 30 s.
	Period time.Duration
	// SyncWait is how long WaitForSync waits for types that cannot be listed.
	// Default 15 s.
	SyncWait time.Duration
}

// Store keeps the objects of every type that can be propagated. It starts to
// watch a type when the type appears and stops when it disappears.
type Store struct {
	mapper     meta.RESTMapper
	syncWait   time.Duration
	discoverer discoverer
	informers  informers
	ready      chan struct{}
}

// New returns a Store; Start makes it work.
func New(cfg Config) *Store {
	s := &Store{
		mapper: cfg.Mapper, syncWait: defaultSyncWait, ready: make(chan struct{}),
		discoverer: discoverer{
			client: cfg.Discovery, skipped: cfg.SkippedAPIs, period: defaultPeriod, triggered: controllers.NewTrigger(),
		},
		informers: informers{
			client: cfg.Dynamic, skipped: cfg.SkippedNamespaces,
			types: map[schema.GroupVersionResource]*watchedType{}, byKind: map[schema.GroupVersionKind]*watchedType{},
		},
	}
	if cfg.Period > 0 {
		s.discoverer.period = cfg.Period
	}
	if cfg.SyncWait > 0 {
		s.syncWait = cfg.SyncWait
	}
	s.informers.onDefinition, s.discoverer.found = s.discoverer.handler(), s.informers.watch
	return s
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (s *Store) NeedLeaderElection() bool { return true }

// Start watches until the context ends.
func (s *Store) Start(ctx context.Context) error {
	s.informers.start(ctx)
	err := wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		err := s.discoverer.refresh(ctx)
		if err != nil {
			log.FromContext(ctx).Error(err, "Failed to discover API types")
		}
		return err == nil, nil
	})
	if err != nil {
		return nil //nolint:nilerr // stopped before the first discovery
	}
	synced := make([]cache.InformerSynced, 0)
	for _, t := range s.informers.selected(nil) {
		synced = append(synced, t.informer.HasSynced)
	}
	first, cancel := context.WithTimeout(ctx, s.syncWait)
	if !cache.WaitForCacheSync(first.Done(), synced...) {
		log.FromContext(ctx).Info("Some API types cannot be listed and are read live")
	}
	cancel()
	close(s.ready)
	s.discoverer.run(ctx)
	return nil
}

// Subscribe has the handler called for every change of the given kinds, or of all,
// and for every object that exists already. Changes of status alone and objects in
// skipped namespaces are left out.
func (s *Store) Subscribe(handler Handler, kinds ...schema.GroupKind) error {
	sub := subscription{handler: handler, kinds: map[schema.GroupKind]bool{}}
	for _, kind := range kinds {
		sub.kinds[kind] = true
	}
	return s.informers.subscribe(sub)
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
	client, err := s.Live(gvk)
	if err != nil {
		if meta.IsNoMatchError(err) && notServed(s.discoverer.client, gvk, "") {
			return nil, apierrors.NewNotFound(schema.GroupResource{Group: gvk.Group, Resource: gvk.Kind}, name)
		}
		return nil, err
	}
	obj, err := client.Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("getting %s %s/%s: %w", gvk.Kind, namespace, name, err)
	}
	manifest.StripUnowned(obj)
	return obj, nil
}

// List returns the objects of a type in a namespace, or in all. They are shared
// and read-only.
func (s *Store) List(ctx context.Context, gvk schema.GroupVersionKind, namespace string, selector labels.Selector) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	if t := s.informers.get(gvk); t != nil && t.informer.HasSynced() {
		collect := func(obj any) { out = append(out, obj.(*unstructured.Unstructured)) }
		err := cache.ListAllByNamespace(t.informer.GetIndexer(), namespace, selector, collect)
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", gvk.Kind, err)
		}
		return out, nil
	}
	client, err := s.Live(gvk)
	if err != nil {
		if meta.IsNoMatchError(err) {
			return nil, nil
		}
		return nil, err
	}
	list, err := client.Namespace(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector.String()})
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", gvk.Kind, err)
	}
	for i := range list.Items {
		manifest.StripUnowned(&list.Items[i])
		out = append(out, &list.Items[i])
	}
	return out, nil
}

// Claimed returns the objects of all types that are labelled with the permanent
// id of a propagation policy. They are shared and read-only.
func (s *Store) Claimed(id string) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, t := range s.informers.selected(nil) {
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
	t := s.informers.get(gvk)
	if t == nil {
		return schema.GroupVersionResource{}, false, false
	}
	return t.gvr, t.namespaced, true
}

// ErrUnknownKind is returned for a kind that cannot be resolved.
var ErrUnknownKind = errors.New("the kind is not known")

// Live returns a client for the objects of a kind, watched or not.
func (s *Store) Live(gvk schema.GroupVersionKind) (dynamic.NamespaceableResourceInterface, error) {
	if t := s.informers.get(gvk); t != nil {
		return s.informers.client.Resource(t.gvr), nil
	}
	if s.mapper == nil {
		return nil, fmt.Errorf("resolving %s: %w", gvk, ErrUnknownKind)
	}
	mapping, err := s.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, fmt.Errorf("resolving %s: %w", gvk, err)
	}
	return s.informers.client.Resource(mapping.Resource), nil
}

// CachedAll returns the objects of some kinds that memory holds, but for those in
// skipped namespaces. They are shared and read-only.
func (s *Store) CachedAll(kinds func(schema.GroupVersionKind) bool) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, t := range s.informers.selected(kinds) {
		for _, obj := range t.informer.GetIndexer().List() {
			if u, ok := obj.(*unstructured.Unstructured); ok && !s.informers.skipped.Contains(u.GetNamespace()) {
				out = append(out, u)
			}
		}
	}
	return out
}

// Cached returns an object from memory, or nil. It is shared and read-only.
func (s *Store) Cached(gvk schema.GroupVersionKind, namespace, name string) *unstructured.Unstructured {
	t := s.informers.get(gvk)
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
