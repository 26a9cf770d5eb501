package controllers

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Filter is a predicate of one type of objects. A function that is not set passes all its events; events of other types and
// generic ones do not pass.
type Filter[T client.Object] struct {
	Created func(obj T) bool
	Updated func(before, after T) bool
	Deleted func(obj T) bool
}

var _ predicate.Predicate = Filter[client.Object]{}

// Create implements predicate.Predicate.
func (f Filter[T]) Create(e event.CreateEvent) bool { return passes(f.Created, e.Object) }

// Update implements predicate.Predicate.
func (f Filter[T]) Update(e event.UpdateEvent) bool {
	before, ok1 := e.ObjectOld.(T)
	after, ok2 := e.ObjectNew.(T)
	return ok1 && ok2 && (f.Updated == nil || f.Updated(before, after))
}

// Delete implements predicate.Predicate.
func (f Filter[T]) Delete(e event.DeleteEvent) bool { return passes(f.Deleted, e.Object) }

// Generic implements predicate.Predicate.
func (f Filter[T]) Generic(event.GenericEvent) bool { return false }

func passes[T client.Object](fn func(T) bool, obj client.Object) bool {
	typed, ok := obj.(T)
	return ok && (fn == nil || fn(typed))
}

// Never passes no object.
func Never[T client.Object](T) bool { return false }

// NoUpdate passes no update.
func NoUpdate[T client.Object](T, T) bool { return false }

// Enqueue returns a handler that enqueues the requests that a function returns for an object.
func Enqueue[T any](requests func(ctx context.Context, obj T) []reconcile.Request) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, obj client.Object) []reconcile.Request {
		if typed, ok := obj.(T); ok {
			return requests(ctx, typed)
		}
		return nil
	})
}

// EnqueueKey returns a handler that enqueues the object whose key a function returns, unless its name is empty.
func EnqueueKey[T any](key func(obj T) types.NamespacedName) handler.EventHandler {
	return Enqueue(func(_ context.Context, obj T) []reconcile.Request {
		if key := key(obj); key.Name != "" {
			return []reconcile.Request{{NamespacedName: key}}
		}
		return nil
	})
}

// Index returns an index by the values that a function returns.
func Index[T any](values func(obj T) []string) client.IndexerFunc {
	return func(obj client.Object) []string {
		if typed, ok := obj.(T); ok {
			return values(typed)
		}
		return nil
	}
}

// IndexKey returns an index by the key that a function returns. Objects with an empty name are not in it.
func IndexKey[T any](key func(obj T) types.NamespacedName) client.IndexerFunc {
	return Index(func(obj T) []string {
		if key := key(obj); key.Name != "" {
			return []string{key.String()}
		}
		return nil
	})
}

// Follower handles the events of an informer until it ends.
type Follower interface {
	toolscache.ResourceEventHandler
	// Sync is called when the follower was added to the informer, and End when the manager ends.
	Sync()
	End()
}

// Follow makes a manager run a follower of its informer of a kind, also while it is not the leader.
func Follow(mgr manager.Manager, kind client.Object, f Follower) error {
	return mgr.Add(Everywhere(func(ctx context.Context) error {
		defer f.End()
		forget, err := Handle(ctx, mgr.GetCache(), kind, f)
		if err != nil {
			return err
		}
		defer forget()
		f.Sync()
		<-ctx.Done()
		return nil
	}))
}

// Handle adds handlers to the informer of a kind when it has synced, and returns what removes them. While the API server does not serve the
// kind, it waits; when ctx ends meanwhile, it adds none.
func Handle(ctx context.Context, informers cache.Informers, kind client.Object, handlers ...toolscache.ResourceEventHandler) (forget func(), err error) {
	informer := informerOf(ctx, informers, kind)
	if informer == nil {
		return func() {}, nil
	}
	var added []toolscache.ResourceEventHandlerRegistration
	forget = func() {
		for _, handle := range added {
			_ = informer.RemoveEventHandler(handle)
		}
	}
	for _, h := range handlers {
		handle, err := informer.AddEventHandler(h)
		if err != nil {
			forget()
			return nil, fmt.Errorf("watching %T: %w", kind, err)
		}
		added = append(added, handle)
	}
	return forget, nil
}

// informerInterval is the time between two attempts to get an informer.
const informerInterval = time.Second

// informerOf returns the synced informer of a kind when the API server serves it, or nil when ctx ends before.
func informerOf(ctx context.Context, informers cache.Informers, kind client.Object) cache.Informer {
	for {
		informer, err := informers.GetInformer(ctx, kind)
		if err == nil {
			// Runnables that start before the manager get an informer that does not run yet.
			if !toolscache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
				return nil
			}
			return informer
		}
		log.FromContext(ctx).Info("Watching failed, trying again", "kind", fmt.Sprintf("%T", kind), "err", err.Error())
		select {
		case <-time.After(informerInterval):
		case <-ctx.Done():
			return nil
		}
	}
}

// Everywhere is a runnable of every replica, the leader and the others.
type Everywhere func(context.Context) error

// Start implements manager.Runnable.
func (e Everywhere) Start(ctx context.Context) error { return e(ctx) }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (Everywhere) NeedLeaderElection() bool { return false }

// Handler handles the events of an informer of one type of objects. Functions that are not set are not called.
type Handler[T any] struct {
	// Added is called with new objects; initial is true for those of the first list.
	Added func(obj T, initial bool)
	// Updated is called with the object before and after a change.
	Updated func(before, after T)
	// Deleted is called with the last known state of an object.
	Deleted func(obj T)
}

var _ toolscache.ResourceEventHandler = Handler[any]{}

// OnAdd implements toolscache.ResourceEventHandler.
func (h Handler[T]) OnAdd(obj any, initial bool) {
	if typed, ok := obj.(T); ok && h.Added != nil {
		h.Added(typed, initial)
	}
}

// OnUpdate implements toolscache.ResourceEventHandler.
func (h Handler[T]) OnUpdate(old, obj any) {
	before, ok1 := old.(T)
	after, ok2 := obj.(T)
	if ok1 && ok2 && h.Updated != nil {
		h.Updated(before, after)
	}
}

// OnDelete implements toolscache.ResourceEventHandler. What the informer missed the deletion of is in a tombstone.
func (h Handler[T]) OnDelete(obj any) {
	if last, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
		obj = last.Obj
	}
	if typed, ok := obj.(T); ok && h.Deleted != nil {
		h.Deleted(typed)
	}
}

// Listed fills a list from a cache, for the handlers of events. It does not copy the objects. A cache that is started fails
// only when its process ends, so an error is logged and not retried; the list has no objects then.
func Listed[L client.ObjectList](ctx context.Context, cache client.Reader, list L, opts ...client.ListOption) L {
	if err := cache.List(ctx, list, append(opts, client.UnsafeDisableDeepCopy)...); err != nil {
		log.FromContext(ctx).Error(err, "Listing the objects to enqueue")
	}
	return list
}

// EnqueueAll returns a handler that enqueues every object of the type of a list, whatever the event is about. It
// reads the objects from a cache and does not copy them.
func EnqueueAll(cache client.Reader, newList func() client.ObjectList) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, _ client.Object) []reconcile.Request {
		list := Listed(ctx, cache, newList())
		var requests []reconcile.Request
		_ = meta.EachListItem(list, func(obj runtime.Object) error { // returns only the errors of the function
			if o, ok := obj.(client.Object); ok {
				requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(o)})
			}
			return nil
		})
		return requests
	})
}
