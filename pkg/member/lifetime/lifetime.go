// Package lifetime keeps what a process has of a cluster, such as connections, watches and results, for as long as the
// cluster exists.
package lifetime

import (
	"context"
	"maps"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
)

// Registry has at most one value for each cluster. A value is stopped when it is closed, when one with another UID or other
// credentials replaces it, when the informer of Clusters notices that its cluster was deleted or created again, and with the
// registry, which is a handler of that informer. It is safe for concurrent use.
type Registry[T any] struct {
	clusters client.Reader
	stop     func(T)

	mu      sync.Mutex
	entries map[string]entry[T]
	ended   bool
	// stopping counts the values that are being stopped.
	stopping sync.WaitGroup
}

type entry[T any] struct {
	uid         types.UID
	credentials any
	value       T
	stopped     chan struct{}
}

// New returns an empty registry. clusters is the cache of the informer of Clusters: values of clusters that it does not have
// are not opened; nil opens those of any cluster. stop stops a value and is called once for each; it may be nil.
func New[T any](clusters client.Reader, stop func(T)) *Registry[T] {
	return &Registry[T]{clusters: clusters, stop: stop, entries: map[string]entry[T]{}}
}

// Open returns the value of a cluster. If there is none, or one with another UID or other credentials, it keeps what open
// returns. credentials are compared with ==, and are nil for values that do not depend on them. It reports false, without a
// value, if this cluster does not exist any more or the registry has ended. open must not use the registry.
func (r *Registry[T]) Open(ctx context.Context, cluster *clusterv1alpha1.Cluster, credentials any, open func() T) (value T, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	have, exists := r.entries[cluster.Name]
	if exists && have.uid == cluster.UID && have.credentials == credentials {
		return have.value, true
	}
	if r.ended || !r.exists(ctx, cluster.Name, cluster.UID) {
		return value, false
	}
	r.closeLocked(cluster.Name)
	value = open()
	r.entries[cluster.Name] = entry[T]{uid: cluster.UID, credentials: credentials, value: value, stopped: make(chan struct{})}
	return value, true
}

// Get returns the value of a cluster, and reports whether there is one.
func (r *Registry[T]) Get(cluster string) (T, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, ok := r.entries[cluster]
	return e.value, ok
}

// All returns the values, sorted by the names of their clusters.
func (r *Registry[T]) All() []T {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]T, 0, len(r.entries))
	for _, name := range slices.Sorted(maps.Keys(r.entries)) {
		out = append(out, r.entries[name].value)
	}
	return out
}

// Close removes the value of a cluster and returns when it has stopped. It reports whether there was one: that of a later
// cluster of the same name stays.
func (r *Registry[T]) Close(cluster *clusterv1alpha1.Cluster) bool {
	r.mu.Lock()
	var stopped <-chan struct{}
	if r.entries[cluster.Name].uid == cluster.UID {
		stopped = r.closeLocked(cluster.Name)
	}
	r.mu.Unlock()
	if stopped == nil {
		return false
	}
	<-stopped
	return true
}

// closeLocked removes the value of a cluster. It returns nil if there is none, else what is closed when it has stopped.
func (r *Registry[T]) closeLocked(cluster string) <-chan struct{} {
	e, ok := r.entries[cluster]
	if !ok {
		return nil
	}
	delete(r.entries, cluster)
	if r.stop == nil {
		close(e.stopped)
		return e.stopped
	}
	r.stopping.Go(func() {
		defer close(e.stopped)
		r.stop(e.value)
	})
	return e.stopped
}

// Keep closes the values of all clusters but those that keep selects.
func (r *Registry[T]) Keep(keep func(cluster string) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name := range r.entries {
		if !keep(name) {
			r.closeLocked(name)
		}
	}
}

// End removes all values, of which no more are opened, and returns when they have stopped.
func (r *Registry[T]) End() {
	r.mu.Lock()
	r.ended = true
	for name := range r.entries {
		r.closeLocked(name)
	}
	r.mu.Unlock()
	r.stopping.Wait()
}

// OnAdd implements toolscache.ResourceEventHandler. An earlier cluster of the name was deleted first.
func (*Registry[T]) OnAdd(any, bool) {}

// OnUpdate implements toolscache.ResourceEventHandler.
func (r *Registry[T]) OnUpdate(old, obj any) {
	before, ok1 := old.(*clusterv1alpha1.Cluster)
	if now, ok2 := obj.(*clusterv1alpha1.Cluster); ok1 && ok2 && before.UID != now.UID {
		r.check(now.Name)
	}
}

// OnDelete implements toolscache.ResourceEventHandler.
func (r *Registry[T]) OnDelete(obj any) {
	if name, err := toolscache.DeletionHandlingMetaNamespaceKeyFunc(obj); err == nil {
		r.check(name)
	}
}

// Sync closes the values of clusters that do not exist any more. It is called after the registry was added to the informer.
func (r *Registry[T]) Sync() {
	r.mu.Lock()
	names := slices.Collect(maps.Keys(r.entries))
	r.mu.Unlock()
	for _, name := range names {
		r.check(name)
	}
}

// check closes the value of a cluster that does not exist any more. The cache is at least as new as the event, so that a
// value of the cluster that exists stays, even if it was opened before the event of the earlier one.
func (r *Registry[T]) check(cluster string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e, ok := r.entries[cluster]; ok && !r.exists(context.Background(), cluster, e.uid) {
		r.closeLocked(cluster)
	}
}

// exists reports whether the cache has a cluster, or cannot be read.
func (r *Registry[T]) exists(ctx context.Context, name string, uid types.UID) bool {
	if r.clusters == nil {
		return true
	}
	cluster := &clusterv1alpha1.Cluster{}
	if err := r.clusters.Get(ctx, client.ObjectKey{Name: name}, cluster, client.UnsafeDisableDeepCopy); err != nil {
		return !apierrors.IsNotFound(err)
	}
	return cluster.UID == uid
}

// Changed reports whether an update concerns what is kept of a cluster: its UID or spec, or whether it is Ready or being deleted.
func Changed(before, after *clusterv1alpha1.Cluster) bool {
	return before.UID != after.UID || before.Generation != after.Generation || before.Ready() != after.Ready() ||
		before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero()
}
