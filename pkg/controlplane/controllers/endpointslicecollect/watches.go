package endpointslicecollect

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/domain/services"
)

// setQueue stores the queue of clusters.
func (r *reconciler) setQueue(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queue = q
	return nil
}

// enqueueCluster enqueues a cluster whose watch has synced or ended.
func (r *reconciler) enqueueCluster(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queue.AddAfter(reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}, restartInterval)
}

// permittingWorks enqueues the cluster of a Work that changes which slices matter.
func permittingWorks() handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	enqueue := func(work *workv1alpha1.Work, q queue) {
		if cluster, err := names.ClusterOfExecutionNamespace(work.Namespace); err == nil {
			q.AddAfter(reconcile.Request{NamespacedName: types.NamespacedName{Name: cluster}}, batch)
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) {
			if work, ok := e.Object.(*workv1alpha1.Work); ok && permits(work) != (permission{}) {
				enqueue(work, q)
			}
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			before, ok1 := e.ObjectOld.(*workv1alpha1.Work)
			work, ok2 := e.ObjectNew.(*workv1alpha1.Work)
			if ok1 && ok2 && permits(before) != permits(work) {
				enqueue(work, q)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) {
			if work, ok := e.Object.(*workv1alpha1.Work); ok && permits(work) != (permission{}) {
				enqueue(work, q)
			}
		},
	}
}

// keysOf returns the slice of a collected Work.
func keysOf(work *workv1alpha1.Work) []sliceKey {
	cluster, err := names.ClusterOfExecutionNamespace(work.Namespace)
	if err != nil || work.Labels[services.ManagedByLabel] == "" || !services.Collected(work) {
		return nil
	}
	slice, err := services.SliceOf(work)
	if err != nil {
		return nil
	}
	return []sliceKey{{cluster, slice}}
}

// collectedWorks enqueues the slices of Works that others changed or deleted.
func (r *reconciler) collectedWorks(c cache.Cache) source.TypedSource[sliceKey] {
	mapped := handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, work *workv1alpha1.Work) []sliceKey { return keysOf(work) })
	foreign := predicate.TypedFuncs[*workv1alpha1.Work]{
		UpdateFunc: func(e event.TypedUpdateEvent[*workv1alpha1.Work]) bool {
			return (e.ObjectNew.Generation != e.ObjectOld.Generation || e.ObjectNew.Labels[services.ManagedByLabel] != e.ObjectOld.Labels[services.ManagedByLabel]) && !r.works.Wrote(e.ObjectNew)
		},
	}
	return source.TypedKind(c, &workv1alpha1.Work{}, mapped, foreign)
}
