package multiclusterservice

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	networkingv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/networking/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/services"
)

func serviceKind() schema.GroupVersionKind { return corev1.SchemeGroupVersion.WithKind("Service") }

// serviceIndex finds the Works of a MultiClusterService.
const serviceIndex = "multiclusterservice.works"

func serviceOf(work *workv1alpha1.Work) types.NamespacedName {
	return services.MCS.ServiceOf(work.Labels)
}

// changed passes MultiClusterServices whose spec, labels or deletion changed.
func changed() predicate.Predicate {
	return controllers.Changed(func(before, now client.Object) bool {
		return controllers.WasEdited(before, now) || !maps.Equal(before.GetAnnotations(), now.GetAnnotations())
	})
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

// ofBinding returns the MultiClusterService of a binding.
func ofBinding(binding *workv1alpha2.ResourceBinding) types.NamespacedName {
	if binding.Labels[services.BindingManagedByLabel] == "" {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Namespace: binding.Annotations[services.MCSNamespaceLabel], Name: binding.Annotations[services.MCSNameLabel]}
}
