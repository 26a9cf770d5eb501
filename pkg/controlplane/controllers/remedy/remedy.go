// Package remedy writes the actions that Remedies request into the status of clusters.
package remedy

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/patch"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	remedyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/remedy/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/env"
	"github.com/karmada-toolkit/karmada/pkg/domain/clustercondition"
)

// Component is the name of the controller.
const Component = "remedy-controller"

type reconciler struct{ client client.Client }

// Setup adds the controller to the manager.
func Setup(_ context.Context, e *env.Env) error {
	r := &reconciler{client: e.Client}
	return e.Controller(Component, 1, 1).
		For(&clusterv1alpha1.Cluster{}, builder.WithPredicates(statusChanged())).
		Watches(&remedyv1alpha1.Remedy{}, controllers.EnqueueAll(r.client, func() client.ObjectList { return &clusterv1alpha1.ClusterList{} }), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Complete(r)
}

// statusChanged passes new clusters and those whose conditions or actions changed.
func statusChanged() predicate.Predicate {
	return controllers.Changed(func(before, after *clusterv1alpha1.Cluster) bool {
		return !equality.Semantic.DeepEqual(before.Status.Conditions, after.Status.Conditions) ||
			!slices.Equal(before.Status.RemedyActions, after.Status.RemedyActions)
	})
}

// Reconcile writes the actions of one cluster.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	cluster := &clusterv1alpha1.Cluster{}
	if ok, err := controllers.Load(ctx, r.client, req.NamespacedName, cluster); !ok {
		return reconcile.Result{}, err
	}
	list := &remedyv1alpha1.RemedyList{}
	if err := r.client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return reconcile.Result{}, fmt.Errorf("listing Remedies: %w", err)
	}
	actions := clustercondition.RemedyActions(cluster, controllers.Pointers(list.Items))
	if slices.Equal(actions, cluster.Status.RemedyActions) {
		return reconcile.Result{}, nil
	}
	// No other controller writes the field, so the patch needs no resource version.
	change := patch.Merge(map[string]any{"status": map[string]any{"remedyActions": actions}})
	if err := r.client.Status().Patch(ctx, cluster, change); err != nil {
		return reconcile.Result{}, fmt.Errorf("writing the actions of cluster %q: %w", cluster.Name, err)
	}
	return reconcile.Result{}, nil
}
