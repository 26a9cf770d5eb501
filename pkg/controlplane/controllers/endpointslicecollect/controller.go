// Package endpointslicecollect collects the EndpointSlices of members for exported
// Services and for MultiClusterServices into Works that are not applied. It runs in the
// control plane for clusters in Push mode, and in agents.
//
// Which slices matter follows from Works of the control plane: those that mark a cluster
// as a provider, and those with ServiceExports. Only these slices are watched and stored.
package endpointslicecollect

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/env"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/works"
	"github.com/karmada-toolkit/karmada/pkg/domain/services"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
	"github.com/karmada-toolkit/karmada/pkg/member/lifetime"
)

// Component is the name of the controller.
const Component = "endpointslice-collect-controller"

const (
	// workers is the number of slices whose Works are written at the same time.
	workers = 10
	// clusterWorkers is the number of clusters whose watches are started at the same time.
	clusterWorkers = 5
	// batch is how long changes of what matters in a cluster are gathered, as each starts
	// its watch anew. restartInterval is the time from the end of its list to the next watch.
	batch           = 50 * time.Millisecond
	restartInterval = 250 * time.Millisecond
)

// sliceKey is a slice of a cluster.
type sliceKey struct {
	cluster string
	slice   types.NamespacedName
}

type reconciler struct {
	client  client.Client
	members access.Members
	works   *works.Writer
	// selected reports whether this process collects the slices of a cluster.
	selected func(*clusterv1alpha1.Cluster) bool
	// managers are the features for which slices are collected.
	managers []services.Manager
	slices   priorityqueue.PriorityQueue[sliceKey]
	// start starts the watch of a cluster, which ends with the manager.
	start func(c *cluster, member *access.Member, wanted sets.Set[types.NamespacedName]) bool

	clusters *lifetime.Registry[*cluster]

	mu    sync.Mutex
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// Setup adds the controller to the manager. It collects slices of the selected clusters, for some features.
func Setup(ctx context.Context, e *env.Env, selected func(*clusterv1alpha1.Cluster) bool, managers ...services.Manager) error {
	r := &reconciler{
		client: e.Client, members: e.Members, selected: selected, managers: managers, works: e.Works(), clusters: lifetime.New(nil, (*cluster).stop),
		slices: controllers.NewQueue(controllers.QueueOptions[sliceKey]{
			Name: Component, Workers: workers, Tenant: func(k sliceKey) string { return k.slice.Namespace },
			RateLimiter: controllers.RateLimiter[sliceKey](e.Retry),
		}),
	}
	r.start = func(c *cluster, member *access.Member, wanted sets.Set[types.NamespacedName]) bool {
		return c.start(ctx, member, wanted, r.synced)
	}
	if err := e.Index(ctx, &workv1alpha1.Work{}, deliveredIndex, controllers.IndexKey(services.Delivered)); err != nil {
		return err
	}
	slices, err := controller.NewTyped(Component, e.Manager, controller.TypedOptions[sliceKey]{
		MaxConcurrentReconciles: workers, Reconciler: reconcile.TypedFunc[sliceKey](r.collect),
		NewQueue: func(string, workqueue.TypedRateLimiter[sliceKey]) workqueue.TypedRateLimitingInterface[sliceKey] {
			return r.slices
		},
	})
	if err == nil {
		err = slices.Watch(r.collectedWorks(e.Manager.GetCache()))
	}
	if err != nil {
		return err
	}
	return e.Controller("endpointslice-collect-clusters", clusterWorkers, clusterWorkers).
		For(&clusterv1alpha1.Cluster{}, builder.WithPredicates(controllers.Filter[*clusterv1alpha1.Cluster]{Updated: lifetime.Changed})).
		Watches(&workv1alpha1.Work{}, permittingWorks()).
		WatchesRawSource(source.Func(r.setQueue)).
		Complete(r)
}

// Reconcile starts or stops the watch of a cluster.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	obj := &clusterv1alpha1.Cluster{}
	err := r.client.Get(ctx, req.NamespacedName, obj)
	notFound := apierrors.IsNotFound(err)
	if err != nil && !notFound {
		return reconcile.Result{}, fmt.Errorf("getting cluster %s: %w", req.Name, err)
	}
	if notFound || obj.DeletionTimestamp != nil || !r.selected(obj) {
		r.clusters.Keep(func(name string) bool { return name != req.Name }) // of whichever cluster of this name
		return reconcile.Result{}, nil
	}
	permitted, err := r.permitted(ctx, req.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	c, _ := r.clusters.Open(ctx, obj, nil, func() *cluster { return newCluster(r, req.Name, permitted) })
	c.permit(permitted)
	all := sets.New[types.NamespacedName]()
	for _, names := range permitted {
		all = all.Union(names)
	}
	if all.Len() == 0 {
		c.stop()
		return reconcile.Result{}, r.enqueueCollected(ctx, req.Name)
	}
	if !obj.Ready() {
		return reconcile.Result{}, r.enqueueCollected(ctx, req.Name)
	}
	member, err := r.members.Member(ctx, obj)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("opening cluster %s: %w", req.Name, err)
	}
	if !r.start(c, member, all) {
		return reconcile.Result{}, r.enqueueCollected(ctx, req.Name)
	}
	return reconcile.Result{}, nil
}

// permitted returns the Services whose slices matter, by manager.
func (r *reconciler) permitted(ctx context.Context, cluster string) (map[services.Manager]sets.Set[types.NamespacedName], error) {
	list := &workv1alpha1.WorkList{}
	if err := r.client.List(ctx, list, client.InNamespace(names.ExecutionNamespace(cluster)), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the works of cluster %s: %w", cluster, err)
	}
	out := map[services.Manager]sets.Set[types.NamespacedName]{}
	for _, m := range r.managers {
		out[m] = sets.New[types.NamespacedName]()
	}
	for i := range list.Items {
		if p := permits(&list.Items[i]); p.service.Name != "" && out[p.manager] != nil {
			out[p.manager].Insert(p.service)
		}
	}
	return out, nil
}

// permission is a Service whose slices a manager collects.
type permission struct {
	manager services.Manager
	service types.NamespacedName
}

// permits returns the Service whose slices matter because of a Work, if there is one.
func permits(work *workv1alpha1.Work) permission {
	if work.DeletionTimestamp != nil {
		return permission{}
	}
	if service := services.Marks(work); service.Name != "" {
		return permission{services.MCS, service}
	}
	if service := services.Exports(work); service.Name != "" && meta.IsStatusConditionTrue(work.Status.Conditions, workv1alpha1.WorkApplied) {
		return permission{services.Export, service}
	}
	return permission{}
}

// enqueueCollected enqueues the slices that are collected.
func (r *reconciler) enqueueCollected(ctx context.Context, cluster string) error {
	list := &workv1alpha1.WorkList{}
	err := r.client.List(ctx, list, client.InNamespace(names.ExecutionNamespace(cluster)), client.HasLabels{services.ManagedByLabel}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return fmt.Errorf("listing the works of cluster %s: %w", cluster, err)
	}
	for i := range list.Items {
		for _, key := range keysOf(&list.Items[i]) {
			r.slices.Add(key)
		}
	}
	return nil
}

// synced enqueues all slices of a cluster, and those that were collected and no longer exist.
func (r *reconciler) synced(ctx context.Context, c *cluster) {
	for _, slice := range c.keys() {
		r.slices.Add(sliceKey{c.name, slice})
	}
	if err := r.enqueueCollected(ctx, c.name); err != nil {
		log.FromContext(ctx).Error(err, "Listing the slices that were collected")
	}
}

// collect writes the Work of a slice.
func (r *reconciler) collect(ctx context.Context, key sliceKey) (reconcile.Result, error) {
	c, ok := r.clusters.Get(key.cluster)
	if !ok {
		return reconcile.Result{}, nil // its reconciliation enqueues the slice again
	}
	namespace := names.ExecutionNamespace(key.cluster)
	name, existing, err := r.workOf(ctx, namespace, key)
	if err != nil {
		return reconcile.Result{}, err
	}
	if existing != nil && existing.DeletionTimestamp != nil {
		return reconcile.Result{}, nil // its end enqueues the slice again
	}
	delivered, err := r.delivered(ctx, namespace, key.slice)
	if err != nil {
		return reconcile.Result{}, err
	}
	slice, known, permitted := c.get(key.slice)
	next, err := services.Resolve(services.SliceFacts{
		Key: types.NamespacedName{Namespace: namespace, Name: name}, Existing: existing, Slice: slice, Known: known, Delivered: delivered,
		Managers: r.managers, Permitted: permitted,
	})
	switch {
	case err != nil:
		return reconcile.Result{}, err
	case next != nil:
		_, err = r.works.Put(ctx, existing, next)
	case existing != nil:
		err = r.works.Delete(ctx, existing)
	}
	return reconcile.Result{}, err
}

// deliveredIndex finds the Works that write a slice into their cluster.
const deliveredIndex = "collect.delivered"

// delivered reports whether the control plane writes a slice into the cluster of an execution namespace. The Work is in the
// cache before the slice is in the cluster.
func (r *reconciler) delivered(ctx context.Context, namespace string, slice types.NamespacedName) (bool, error) {
	list := &workv1alpha1.WorkList{}
	err := r.client.List(ctx, list, client.InNamespace(namespace), client.MatchingFields{deliveredIndex: slice.String()}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return false, fmt.Errorf("listing the works of slice %s: %w", slice, err)
	}
	return len(list.Items) > 0, nil
}

// workOf returns the name and the Work of a slice. A name that belongs to a Work of
// another kind is not taken.
func (r *reconciler) workOf(ctx context.Context, namespace string, key sliceKey) (string, *workv1alpha1.Work, error) {
	free := ""
	for _, name := range services.WorkNames(key.cluster, key.slice) {
		work, err := r.works.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name})
		switch {
		case err != nil:
			return "", nil, err
		case work != nil && services.Collected(work):
			return name, work, nil
		case work == nil && free == "":
			free = name
		}
	}
	if free == "" {
		return "", nil, fmt.Errorf("the names of the work of slice %s belong to other works in %s", key.slice, namespace)
	}
	return free, nil, nil
}
