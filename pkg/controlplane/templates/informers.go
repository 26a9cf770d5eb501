package templates

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/pkg/domain/policy"
	"github.com/karmada-toolkit/karmada/pkg/domain/propagation"
)

// watchedType is a type with its objects.
type watchedType struct {
	apiType
	informer cache.SharedIndexInformer
	stop     context.CancelFunc
}

// informers run an informer for each watched type, and pass its events to the
// subscriptions.
type informers struct {
	client  dynamic.Interface
	skipped *propagation.Namespaces
	// onDefinition handles the events of the objects that define types.
	onDefinition cache.ResourceEventHandler

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

func (sub subscription) wants(gvk schema.GroupVersionKind) bool {
	return len(sub.kinds) == 0 || sub.kinds[gvk.GroupKind()]
}

// subscribe adds a subscription, also to the types that are watched already.
func (s *informers) subscribe(sub subscription) error {
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

// start sets the life of the informers.
func (s *informers) start(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ctx = ctx
}

// watch starts and stops informers, so that the types found are watched.
func (s *informers) watch(found discovered) error {
	s.mu.Lock()
	start, stop := found.diff(s.types)
	var gone []*watchedType
	for _, gvr := range stop {
		gone = append(gone, s.types[gvr])
		s.remove(gvr)
	}
	for _, t := range start {
		if err := s.add(t); err != nil {
			s.mu.Unlock()
			return err
		}
	}
	subs := s.subs
	s.mu.Unlock()
	for _, t := range gone {
		t.publishDeletions(subs)
	}
	return nil
}

// get returns a watched type, or nil.
func (s *informers) get(gvk schema.GroupVersionKind) *watchedType {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.byKind[gvk]
}

// selected returns the watched types of some kinds; nil selects all.
func (s *informers) selected(kinds func(schema.GroupVersionKind) bool) []*watchedType {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var out []*watchedType
	for _, t := range s.types {
		if kinds == nil || kinds(t.gvk) {
			out = append(out, t)
		}
	}
	return out
}

// claimIndex finds objects by the permanent ids of the policies that hold them.
const claimIndex = "claim"

func claims(obj any) ([]string, error) {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return nil, fmt.Errorf("indexing an object: %w", err)
	}
	return policy.IDs(accessor), nil
}

// add starts to watch a type; s.mu is held.
func (s *informers) add(t apiType) error {
	indexers := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc, claimIndex: claims}
	informer := dynamicinformer.NewFilteredDynamicInformer(s.client, t.gvr, metav1.NamespaceAll, 0, indexers, nil).Informer()
	if err := informer.SetTransform(StripManagedFields); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(s.ctx)
	w := &watchedType{apiType: t, informer: informer, stop: cancel}
	for _, sub := range s.subs {
		if err := s.connect(sub, w); err != nil {
			cancel()
			return err
		}
	}
	if definesTypes(t.gvk) {
		if _, err := informer.AddEventHandler(s.onDefinition); err != nil {
			cancel()
			return err
		}
	}
	s.types[t.gvr], s.byKind[t.gvk] = w, w
	go informer.RunWithContext(ctx)
	return nil
}

// remove stops watching a type; s.mu is held.
func (s *informers) remove(gvr schema.GroupVersionResource) {
	t := s.types[gvr]
	t.stop()
	delete(s.types, gvr)
	if s.byKind[t.gvk] == t {
		delete(s.byKind, t.gvk)
	}
}

// publishDeletions publishes the deletion of all objects of a type that is no
// longer watched.
func (t *watchedType) publishDeletions(subs []subscription) {
	for _, obj := range t.informer.GetStore().List() {
		for _, sub := range subs {
			if sub.wants(t.gvk) {
				sub.handler(Event{Old: obj.(*unstructured.Unstructured)})
			}
		}
	}
}

func (s *informers) connect(sub subscription, t *watchedType) error {
	if !sub.wants(t.gvk) {
		return nil
	}
	_, err := t.informer.AddEventHandler(cache.FilteringResourceEventHandler{
		FilterFunc: s.published,
		Handler: controllers.Handler[*unstructured.Unstructured]{
			Added: func(obj *unstructured.Unstructured, initial bool) { sub.handler(Event{New: obj, Initial: initial}) },
			Updated: func(before, after *unstructured.Unstructured) {
				if !SameContent(before, after) {
					sub.handler(Event{Old: before, New: after})
				}
			},
			Deleted: func(obj *unstructured.Unstructured) { sub.handler(Event{Old: obj}) },
		},
	})
	return err
}

// published reports whether the events of an object are published.
func (s *informers) published(obj any) bool {
	if last, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = last.Obj
	}
	u, ok := obj.(*unstructured.Unstructured)
	if !ok || s.skipped.Contains(u.GetNamespace()) {
		return false
	}
	return u.GetNamespace() != metav1.NamespaceSystem || u.GetKind() != "ConfigMap" ||
		u.GetName() != "extension-apiserver-authentication"
}

// Reader reads templates and publishes their changes. A Store is one.
type Reader interface {
	Get(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) (*unstructured.Unstructured, error)
	Subscribe(handler Handler, kinds ...schema.GroupKind) error
	WaitForSync(ctx context.Context) error
}

// Source is the source of requests that follow from changes of templates. It delays the
// start of its controller until the templates were listed once.
type Source struct {
	Store Reader
	// Kinds are those of the templates. Default: all.
	Kinds []schema.GroupKind
	// Requests returns the requests that follow from a change. Default: none.
	Requests func(context.Context, Event) []reconcile.Request
}

var _ source.SyncingSource = Source{}

// Start enqueues the requests of every change.
func (s Source) Start(ctx context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	if s.Requests == nil {
		return nil
	}
	return s.Store.Subscribe(func(e Event) {
		for _, req := range s.Requests(ctx, e) {
			q.Add(req)
		}
	}, s.Kinds...)
}

// WaitForSync waits for the first list of all templates.
func (s Source) WaitForSync(ctx context.Context) error { return s.Store.WaitForSync(ctx) }

// Same returns the request for namespace and name of the template itself.
func Same(_ context.Context, e Event) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(e.Object())}}
}
