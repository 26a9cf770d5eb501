package controllers

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

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
