package controllers

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

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
