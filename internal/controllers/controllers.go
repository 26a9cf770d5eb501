// Package controllers holds what the setup of every controller needs: options,
// predicates, requests and priorities.
package controllers

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// The defaults of Retry.
const (
	defaultBaseDelay = 5 * time.Millisecond
	defaultMaxDelay  = 1000 * time.Second
)

// Retry bounds the delay before a failed request is reconciled again, which
// doubles with each failure.
type Retry struct {
	// BaseDelay is the delay after the first failure. Default: 5 ms.
	BaseDelay time.Duration
	// MaxDelay is the longest delay. Default: 1000 s.
	MaxDelay time.Duration
}

// RateLimiter returns a rate limiter for requests of any type.
func RateLimiter[K comparable](r Retry) workqueue.TypedRateLimiter[K] {
	base, longest := max(r.BaseDelay, 0), max(r.MaxDelay, 0)
	return workqueue.NewTypedItemExponentialFailureRateLimiter[K](cmp.Or(base, defaultBaseDelay), cmp.Or(longest, defaultMaxDelay))
}

// Workers returns a number of workers, or the default if none is set.
func Workers(n, byDefault int) int {
	if n > 0 {
		return n
	}
	return byDefault
}

// Options returns the options of a controller with a number of workers for each namespace of its requests: see OptionsOf.
func Options(workers, byDefault int, r Retry) controller.Options {
	return OptionsOf(workers, byDefault, r, func(r reconcile.Request) string { return r.Namespace })
}

// OptionsOf returns the options of a controller with a number of workers. If there are several, there are as many again: one
// tenant holds at most the number, and what others change does not wait for it. See QueueOptions.
func OptionsOf[T comparable](workers, byDefault int, r Retry, tenant func(T) string) controller.TypedOptions[T] {
	n := Workers(workers, byDefault)
	guests := n
	if n == 1 { // such controllers rely on it
		guests = 0
	}
	return controller.TypedOptions[T]{
		MaxConcurrentReconciles: n + guests, RateLimiter: RateLimiter[T](r),
		NewQueue: func(name string, limiter workqueue.TypedRateLimiter[T]) workqueue.TypedRateLimitingInterface[T] {
			return NewQueue(QueueOptions[T]{Name: name, Workers: n, Guests: guests, Tenant: tenant, RateLimiter: limiter})
		},
	}
}

// After returns the result of a reconciliation that is repeated after a time, never if 0. A failed one is repeated with a back-off
// instead: a controller takes only one of both.
func After(wait time.Duration, err error) (reconcile.Result, error) {
	if err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: wait}, nil
}

// Earliest returns the least of the durations that are not 0, or 0.
func Earliest(durations ...time.Duration) time.Duration {
	var out time.Duration
	for _, d := range durations {
		if d > 0 && (out == 0 || d < out) {
			out = d
		}
	}
	return out
}

// AddLowPriority adds keys to a queue with the priority that controller-runtime
// gives to its initial list, if it is a priority queue.
func AddLowPriority[K comparable](queue workqueue.TypedInterface[K], keys ...K) {
	if q, ok := queue.(priorityqueue.PriorityQueue[K]); ok {
		q.AddWithOpts(priorityqueue.AddOpts{Priority: new(handler.LowPriority)}, keys...)
		return
	}
	for _, key := range keys {
		queue.Add(key)
	}
}

// Requests returns one request per object.
func Requests[T client.Object](objs []T) []reconcile.Request {
	out := make([]reconcile.Request, 0, len(objs))
	for _, obj := range objs {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(obj)})
	}
	return out
}

// Created passes objects that are new, and every object at the start.
func Created() predicate.Predicate {
	return Filter[client.Object]{Updated: NoUpdate[client.Object], Deleted: Never[client.Object]}
}

// WasEdited reports whether the generation, the labels or the deletion of an object
// changed.
func WasEdited(before, after client.Object) bool {
	return before.GetGeneration() != after.GetGeneration() || !maps.Equal(before.GetLabels(), after.GetLabels()) ||
		before.GetDeletionTimestamp().IsZero() != after.GetDeletionTimestamp().IsZero()
}

// Edited passes objects that are new, deleted or edited.
func Edited() predicate.Predicate {
	return Filter[client.Object]{Updated: WasEdited}
}

// Deleted passes objects that are gone.
func Deleted() predicate.Predicate {
	return Filter[client.Object]{Created: Never[client.Object], Updated: NoUpdate[client.Object]}
}

// Changed passes objects that are new and updates that a function reports. It does not pass objects that are gone.
func Changed[T client.Object](changed func(before, after T) bool) predicate.Predicate {
	return Filter[T]{Updated: changed, Deleted: Never[T]}
}

// Add adds a controller of one kind of objects to a manager. It reconciles the objects of the changes that pass.
func Add(mgr manager.Manager, name string, kind client.Object, passes predicate.Predicate, o controller.Options, r reconcile.Reconciler) error {
	err := builder.ControllerManagedBy(mgr).Named(name).For(kind, builder.WithPredicates(passes)).WithOptions(o).Complete(r)
	if err != nil {
		return fmt.Errorf("adding %s: %w", name, err)
	}
	return nil
}

// Load reads an object from a cache, and reports whether it is there and not being deleted.
func Load(ctx context.Context, cache client.Reader, key client.ObjectKey, obj client.Object) (bool, error) {
	if err := cache.Get(ctx, key, obj); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return obj.GetDeletionTimestamp() == nil, nil
}

// Pointers returns pointers to the items of a list.
func Pointers[T any](items []T) []*T {
	out := make([]*T, len(items))
	for i := range items {
		out[i] = &items[i]
	}
	return out
}
