package multiclusterservice

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	networkingv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/networking/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/services"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/works"
)

func serviceKind() schema.GroupVersionKind { return corev1.SchemeGroupVersion.WithKind("Service") }

// serviceIndex finds the Works of a MultiClusterService.
const serviceIndex = "multiclusterservice.works"

func serviceKeys(obj client.Object) []string {
	if service := services.MCS.ServiceOf(obj.GetLabels()); service.Name != "" {
		return []string{service.String()}
	}
	return nil
}

// changed passes MultiClusterServices whose spec, labels or deletion changed.
func changed() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, now := e.ObjectOld, e.ObjectNew
			return controllers.WasEdited(before, now) || !maps.Equal(before.GetAnnotations(), now.GetAnnotations())
		},
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

// ofCluster returns the MultiClusterServices with a cluster.
func (r *reconciler) ofCluster(ctx context.Context, cluster client.Object) []reconcile.Request {
	list := controllers.Listed(ctx, r.client, &networkingv1alpha1.MultiClusterServiceList{})
	one := services.Clusters{cluster.GetName(): nil}
	var out []reconcile.Request
	for i := range list.Items {
		mcs := &list.Items[i]
		if services.CrossCluster(mcs) && (services.Providers(mcs, one).Has(cluster.GetName()) || services.Consumers(mcs, one).Has(cluster.GetName())) {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(mcs)})
		}
	}
	return out
}

// ofMarker returns the MultiClusterService of a marker Work.
func ofMarker(_ context.Context, obj client.Object) []reconcile.Request {
	work, ok := obj.(*workv1alpha1.Work)
	if !ok {
		return nil
	}
	if service := services.Marks(work); service.Name != "" {
		return []reconcile.Request{{NamespacedName: service}}
	}
	return nil
}

// foreignChange passes marker Works that others changed or deleted.
func foreignChange(writer *works.Writer) predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return e.ObjectNew.GetGeneration() != e.ObjectOld.GetGeneration() && !writer.Wrote(e.ObjectNew)
		},
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// ofBinding returns the MultiClusterService of a binding.
func ofBinding(_ context.Context, obj client.Object) []reconcile.Request {
	binding, ok := obj.(*workv1alpha2.ResourceBinding)
	if !ok || binding.Labels[services.BindingManagedByLabel] == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{
		Namespace: binding.Annotations[services.MCSNamespaceLabel], Name: binding.Annotations[services.MCSNameLabel],
	}}}
}
