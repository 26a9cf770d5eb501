package endpointslicedispatch

import (
	"context"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	networkingv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/networking/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/services"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/works"
)

// serviceIndex finds the collected Works of a MultiClusterService, sourceIndex the Works
// that carry the slice of a collected Work to consumers.
const (
	serviceIndex = "dispatch.service"
	sourceIndex  = "dispatch.source"
)

func serviceKeys(obj client.Object) []string {
	work, ok := obj.(*workv1alpha1.Work)
	if !ok || work.Labels[services.ManagedByLabel] == "" || !services.Collected(work) {
		return nil
	}
	if service := services.MCS.ServiceOf(work.Labels); service.Name != "" {
		return []string{service.String()}
	}
	return nil
}

func sourceKeys(obj client.Object) []string {
	work, ok := obj.(*workv1alpha1.Work)
	if !ok || work.Annotations[services.ProvisionClusterAnnotation] == "" {
		return nil
	}
	return []string{services.SourceWork(work).String()}
}

// dispatched returns the Works that carry the slice of a collected Work.
func (r *reconciler) dispatched(ctx context.Context, key types.NamespacedName) ([]*workv1alpha1.Work, error) {
	return r.list(ctx, sourceIndex, key)
}

// collected returns the collected Works of a MultiClusterService.
func (r *reconciler) collected(ctx context.Context, service types.NamespacedName) ([]*workv1alpha1.Work, error) {
	return r.list(ctx, serviceIndex, service)
}

func (r *reconciler) list(ctx context.Context, index string, key types.NamespacedName) ([]*workv1alpha1.Work, error) {
	list := &workv1alpha1.WorkList{}
	if err := r.client.List(ctx, list, client.MatchingFields{index: key.String()}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing works: %w", err)
	}
	out := make([]*workv1alpha1.Work, len(list.Items))
	for i := range list.Items {
		out[i] = &list.Items[i]
	}
	return out, nil
}

// workChanged passes Works that are new, are gone, or were changed by others: dispatched
// Works that this controller wrote itself are left out.
func workChanged(writer *works.Writer) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, now := e.ObjectOld, e.ObjectNew
		changed := before.GetGeneration() != now.GetGeneration() || before.GetDeletionTimestamp().IsZero() != now.GetDeletionTimestamp().IsZero() ||
			!maps.Equal(before.GetLabels(), now.GetLabels()) || !maps.Equal(before.GetAnnotations(), now.GetAnnotations())
		dispatched := now.GetAnnotations()[services.ProvisionClusterAnnotation] != "" && now.GetDeletionTimestamp().IsZero()
		return changed && (!dispatched || !writer.Wrote(now))
	}}
}

// ofWork returns the collected Works that a Work concerns: itself, its source, those that
// it marks the cluster for, or those that it replaces while their clusters are not Ready.
func (r *reconciler) ofWork(ctx context.Context, obj client.Object) []reconcile.Request {
	work, ok := obj.(*workv1alpha1.Work)
	if !ok {
		return nil
	}
	if work.Annotations[services.ProvisionClusterAnnotation] != "" {
		return []reconcile.Request{{NamespacedName: services.SourceWork(work)}}
	}
	service := services.MCS.ServiceOf(work.Labels)
	if service.Name == "" && work.Labels[services.ManagedByLabel] == "" {
		return nil
	}
	if services.Marks(work).Name != "" {
		return r.requests(ctx, service, func(w *workv1alpha1.Work) bool { return w.Namespace == work.Namespace })
	}
	if !services.Collected(work) {
		return nil
	}
	own := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(work)}
	if service.Name == "" || !r.enabled {
		return []reconcile.Request{own}
	}
	return append(r.requests(ctx, service, func(w *workv1alpha1.Work) bool {
		return w.Namespace != work.Namespace && !r.ready(ctx, w.Namespace)
	}), own)
}

func (r *reconciler) ready(ctx context.Context, namespace string) bool {
	name, err := names.ClusterOfExecutionNamespace(namespace)
	cluster := &clusterv1alpha1.Cluster{}
	return err == nil && r.client.Get(ctx, client.ObjectKey{Name: name}, cluster, client.UnsafeDisableDeepCopy) == nil &&
		services.Clusters{name: cluster}.Ready(name)
}

// requests returns the selected collected Works of a MultiClusterService.
func (r *reconciler) requests(ctx context.Context, service types.NamespacedName, selected func(*workv1alpha1.Work) bool) []reconcile.Request {
	all, err := r.collected(ctx, service)
	if err != nil {
		log.FromContext(ctx).Error(err, "Listing the slices of a MultiClusterService")
		return nil
	}
	var out []reconcile.Request
	for _, w := range all {
		if selected(w) {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(w)})
		}
	}
	return out
}

func (r *reconciler) ofService(ctx context.Context, mcs client.Object) []reconcile.Request {
	return r.requests(ctx, client.ObjectKeyFromObject(mcs), func(*workv1alpha1.Work) bool { return true })
}

// all returns the slices of all MultiClusterServices.
func (r *reconciler) all(ctx context.Context, _ client.Object) []reconcile.Request {
	list := &networkingv1alpha1.MultiClusterServiceList{}
	if err := r.client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "Listing MultiClusterServices")
		return nil
	}
	var out []reconcile.Request
	for i := range list.Items {
		out = append(out, r.ofService(ctx, &list.Items[i])...)
	}
	return out
}

// serviceChanged passes MultiClusterServices whose spec or labels changed, or which are
// being deleted.
func serviceChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectNew.GetGeneration() != e.ObjectOld.GetGeneration() || !maps.Equal(e.ObjectNew.GetLabels(), e.ObjectOld.GetLabels()) ||
			e.ObjectNew.GetDeletionTimestamp().IsZero() != e.ObjectOld.GetDeletionTimestamp().IsZero()
	}}
}

// clusterChanged passes clusters that are new, are gone, or can consume or provide slices
// since or no longer.
func clusterChanged() predicate.Predicate {
	return predicate.Or(controllers.Deleted(), controllers.Changed(func(before, after *clusterv1alpha1.Cluster) bool {
		usable := func(c *clusterv1alpha1.Cluster) [2]bool {
			return [2]bool{services.Clusters{c.Name: c}.Ready(c.Name), services.ServesSlices(c)}
		}
		return usable(before) != usable(after)
	}))
}
