// Package endpointslice imports the slices of exported Services into the control plane,
// where policies propagate them to the clusters that import the Service.
package endpointslice

import (
	"context"
	"errors"
	"fmt"
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/patch"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/env"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/works"
	"github.com/karmada-toolkit/karmada/pkg/domain/services"
)

// Component is the name of the controller.
const Component = "endpointslice-controller"

// workers is the number of slices that are imported at the same time.
const workers = 10

// The indexes find the imported slices of a Work, and the collected Works of a Service.
const (
	workIndex    = "import.work"
	serviceIndex = "import.service"
)

type reconciler struct {
	client client.Client
	works  *works.Writer
}

// Setup adds the controller to the manager.
func Setup(ctx context.Context, e *env.Env) error {
	r := &reconciler{client: e.Client, works: e.Works()}
	return errors.Join(
		e.Index(ctx, &discoveryv1.EndpointSlice{}, workIndex, controllers.IndexKey(workOf)),
		e.Index(ctx, &workv1alpha1.Work{}, serviceIndex, controllers.IndexKey(serviceOf)),
		builder.ControllerManagedBy(e.Manager).Named(Component).
			Watches(&workv1alpha1.Work{}, controllers.Enqueue(r.ofWork), builder.WithPredicates(controllers.Edited())).
			Watches(&discoveryv1.EndpointSlice{}, controllers.EnqueueKey(workOf)).
			Watches(&clusterv1alpha1.Cluster{}, controllers.Enqueue(r.ofCluster), builder.WithPredicates(controllers.Changed(services.ReachableChanged))).
			WithOptions(controllers.OptionsOf(workers, workers, e.Retry, works.Tenant(ctx, e.Client, services.ServiceNamespaceLabel, services.MCSNamespaceLabel))).
			Complete(r),
	)
}

func serviceOf(work *workv1alpha1.Work) types.NamespacedName {
	if !services.Collected(work) {
		return types.NamespacedName{}
	}
	return services.Export.ServiceOf(work.Labels)
}

// workOf returns the name of the collected Work of an imported slice. It is empty for
// slices of others.
func workOf(slice *discoveryv1.EndpointSlice) types.NamespacedName {
	if slice.GetLabels()[discoveryv1.LabelManagedBy] != services.ImportedSlice {
		return types.NamespacedName{}
	}
	annotations := slice.GetAnnotations()
	return types.NamespacedName{Namespace: annotations[workv1alpha2.WorkNamespaceAnnotation], Name: annotations[workv1alpha2.WorkNameAnnotation]}
}

// ofWork returns the collected Works that a Work concerns: itself, those of the Service
// that it exports, or those that it replaces while their clusters are not Ready.
func (r *reconciler) ofWork(ctx context.Context, work *workv1alpha1.Work) []reconcile.Request {
	if exported := services.Exports(work); exported.Name != "" {
		return r.requests(ctx, exported, func(w *workv1alpha1.Work) bool { return w.Namespace == work.Namespace })
	}
	service := services.Export.ServiceOf(work.Labels)
	if service.Name == "" && work.Labels[services.ManagedByLabel] == "" || !services.Collected(work) {
		return nil
	}
	own := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(work)}
	return append(r.requests(ctx, service, func(w *workv1alpha1.Work) bool { return w.Namespace != work.Namespace && !r.ready(ctx, w) }), own)
}

func (r *reconciler) ready(ctx context.Context, work *workv1alpha1.Work) bool {
	name, err := names.ClusterOfExecutionNamespace(work.Namespace)
	cluster := &clusterv1alpha1.Cluster{}
	return err == nil && r.client.Get(ctx, client.ObjectKey{Name: name}, cluster, client.UnsafeDisableDeepCopy) == nil &&
		services.Clusters{name: cluster}.Ready(name)
}

// ofCluster returns the collected Works of all exported Services of a cluster.
func (r *reconciler) ofCluster(ctx context.Context, cluster client.Object) []reconcile.Request {
	list := controllers.Listed(ctx, r.client, &workv1alpha1.WorkList{},
		client.InNamespace(names.ExecutionNamespace(cluster.GetName())), client.HasLabels{services.ServiceNameLabel})
	return controllers.Requests(controllers.Pointers(list.Items))
}

func (r *reconciler) collected(ctx context.Context, service types.NamespacedName) ([]*workv1alpha1.Work, error) {
	list := &workv1alpha1.WorkList{}
	if err := r.client.List(ctx, list, client.MatchingFields{serviceIndex: service.String()}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing works: %w", err)
	}
	return controllers.Pointers(list.Items), nil
}

func (r *reconciler) requests(ctx context.Context, service types.NamespacedName, selected func(*workv1alpha1.Work) bool) []reconcile.Request {
	if service.Name == "" {
		return nil
	}
	all, err := r.collected(ctx, service)
	if err != nil {
		log.FromContext(ctx).Error(err, "Listing the slices of an exported Service")
		return nil
	}
	return controllers.Requests(slices.DeleteFunc(all, func(w *workv1alpha1.Work) bool { return !selected(w) }))
}

// Reconcile imports the slice of one collected Work.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	cluster, err := names.ClusterOfExecutionNamespace(req.Namespace)
	if err != nil {
		return reconcile.Result{}, nil //nolint:nilerr // Works elsewhere are none of ours
	}
	work, err := r.works.Get(ctx, req.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	if work == nil || !services.Imports(work) {
		if err := r.remove(ctx, req.NamespacedName, ""); err != nil || work == nil {
			return reconcile.Result{}, err
		}
		return reconcile.Result{}, patch.RemoveFinalizer(ctx, r.client, work, services.ImportFinalizer)
	}
	clusters := &clusterv1alpha1.ClusterList{}
	if err := r.client.List(ctx, clusters, client.UnsafeDisableDeepCopy); err != nil {
		return reconcile.Result{}, fmt.Errorf("listing clusters: %w", err)
	}
	all := services.ClustersOf(clusters)
	counts, err := r.counts(ctx, work, cluster, all)
	if err != nil {
		return reconcile.Result{}, err
	}
	if !counts {
		return reconcile.Result{}, r.remove(ctx, req.NamespacedName, "")
	}
	next, existing, err := r.slice(ctx, work, cluster, all)
	if err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, errors.Join(r.write(ctx, existing, next), r.remove(ctx, req.NamespacedName, next.Name))
}

// counts reports whether a slice is imported: the control plane exports the Service from
// that very cluster, and no other provider replaces the cluster.
func (r *reconciler) counts(ctx context.Context, work *workv1alpha1.Work, cluster string, clusters services.Clusters) (bool, error) {
	service := services.Export.ServiceOf(work.Labels)
	export, err := r.works.Get(ctx, types.NamespacedName{Namespace: work.Namespace, Name: services.ExportWorkName(service)})
	if err != nil {
		return false, err
	}
	err = services.Authorize(work, cluster, services.Export, func(types.NamespacedName) bool {
		return export != nil && export.DeletionTimestamp == nil && services.Exports(export) == service
	})
	if err != nil {
		log.FromContext(ctx).V(2).Info("A collected slice does not count", "Work", work.Namespace+"/"+work.Name, "reason", err.Error())
		return false, nil
	}
	siblings, err := r.collected(ctx, service)
	return !services.Replaced(cluster, siblings, clusters), err
}

// slice returns the imported slice of a Work as it should be and as it is, or nil.
func (r *reconciler) slice(ctx context.Context, work *workv1alpha1.Work, cluster string, clusters services.Clusters) (next, existing *discoveryv1.EndpointSlice, err error) {
	var failed error
	next, err = services.Import(work, cluster, clusters, func(namespace, name string) *discoveryv1.EndpointSlice {
		found := &discoveryv1.EndpointSlice{}
		if err := r.client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, found); err != nil {
			failed = client.IgnoreNotFound(err)
			return nil
		}
		existing = found
		return found
	})
	if err = errors.Join(err, failed); err != nil {
		return nil, nil, err
	}
	if own := client.ObjectKeyFromObject(work); existing != nil && workOf(existing) != own {
		return nil, nil, fmt.Errorf("endpointslice %s/%s exists and does not come from work %s: delete or rename it", existing.Namespace, existing.Name, own)
	}
	return next, existing, nil
}

func (r *reconciler) write(ctx context.Context, existing, next *discoveryv1.EndpointSlice) error {
	if existing == nil {
		if err := r.client.Create(ctx, next); err != nil {
			return fmt.Errorf("creating endpointslice %s/%s: %w", next.Namespace, next.Name, err)
		}
		return nil
	}
	equal := func(a, b any) bool { return equality.Semantic.DeepEqual(a, b) }
	if services.SameSlice(existing, next, equal) {
		return nil
	}
	_, _, err := patch.Write(ctx, r.client, existing, next)
	return err
}

// remove deletes the imported slices of a Work but one.
func (r *reconciler) remove(ctx context.Context, work types.NamespacedName, except string) error {
	list := &discoveryv1.EndpointSliceList{}
	if err := r.client.List(ctx, list, client.MatchingFields{workIndex: work.String()}, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing endpointslices: %w", err)
	}
	var errs []error
	for i := range list.Items {
		if list.Items[i].Name == except {
			continue
		}
		target := &discoveryv1.EndpointSlice{}
		target.Namespace, target.Name = list.Items[i].Namespace, list.Items[i].Name
		if err := r.client.Delete(ctx, target); client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("deleting endpointslice %s/%s: %w", target.Namespace, target.Name, err))
		}
	}
	return errors.Join(errs...)
}
