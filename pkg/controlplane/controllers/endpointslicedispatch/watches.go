package endpointslicedispatch

import (
	"context"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	networkingv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/networking/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/services"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/works"
)

// workChanged passes Works that are new, are deleted, or were changed by others: dispatched
// Works that this controller wrote itself are left out.
func workChanged(writer *works.Writer) predicate.Predicate {
	return controllers.Filter[client.Object]{Updated: func(before, now client.Object) bool {
		changed := controllers.WasEdited(before, now) || !maps.Equal(before.GetAnnotations(), now.GetAnnotations())
		dispatched := now.GetAnnotations()[services.ProvisionClusterAnnotation] != "" && now.GetDeletionTimestamp().IsZero()
		return changed && (!dispatched || !writer.Wrote(now))
	}}
}

// mapper returns the collected Works that a change of another object concerns.
type mapper struct {
	client client.Client
	lookup lookup
	// enabled is that of Deps.
	enabled bool
}

// ofWork returns the collected Works that a Work concerns: itself, its source, those that
// it marks the cluster for, or those that it replaces while their clusters are not Ready.
func (m mapper) ofWork(ctx context.Context, work *workv1alpha1.Work) []reconcile.Request {
	if work.Annotations[services.ProvisionClusterAnnotation] != "" {
		return []reconcile.Request{{NamespacedName: services.SourceWork(work)}}
	}
	service := services.MCS.ServiceOf(work.Labels)
	if service.Name == "" && work.Labels[services.ManagedByLabel] == "" {
		return nil
	}
	if services.Marks(work).Name != "" {
		return m.requests(ctx, service, func(w *workv1alpha1.Work) bool { return w.Namespace == work.Namespace })
	}
	if !services.Collected(work) {
		return nil
	}
	own := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(work)}
	if service.Name == "" || !m.enabled {
		return []reconcile.Request{own}
	}
	return append(m.requests(ctx, service, func(w *workv1alpha1.Work) bool {
		return w.Namespace != work.Namespace && !m.lookup.ready(ctx, w.Namespace)
	}), own)
}

// requests returns the selected collected Works of a MultiClusterService.
func (m mapper) requests(ctx context.Context, service types.NamespacedName, selected func(*workv1alpha1.Work) bool) []reconcile.Request {
	all, err := m.lookup.collected(ctx, service)
	if err != nil {
		log.FromContext(ctx).Error(err, "Listing the slices of a MultiClusterService")
		return nil
	}
	return controllers.Requests(slices.DeleteFunc(all, func(w *workv1alpha1.Work) bool { return !selected(w) }))
}

func (m mapper) ofService(ctx context.Context, mcs client.Object) []reconcile.Request {
	return m.requests(ctx, client.ObjectKeyFromObject(mcs), func(*workv1alpha1.Work) bool { return true })
}

// all returns the slices of all MultiClusterServices.
func (m mapper) all(ctx context.Context, _ client.Object) []reconcile.Request {
	list := controllers.Listed(ctx, m.client, &networkingv1alpha1.MultiClusterServiceList{})
	var out []reconcile.Request
	for i := range list.Items {
		out = append(out, m.ofService(ctx, &list.Items[i])...)
	}
	return out
}
