// Package servicestatus writes the status of ServiceExports and ServiceImports, which the control plane computes, to the
// members that have them. It runs in the control plane for clusters in Push mode, and in agents.
package servicestatus

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/env"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/works"
	"github.com/karmada-toolkit/karmada/pkg/domain/services"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
)

// Component is the name of the controller.
const Component = "service-status-controller"

// workers is the number of objects whose status is written at the same time.
const workers = 3

type reconciler struct {
	client  client.Client
	members access.Members
	// selects reports whether this process writes to a cluster.
	selects func(*clusterv1alpha1.Cluster) bool
}

// Setup adds the controller to the manager. It writes to the clusters that a function selects.
func Setup(ctx context.Context, e *env.Env, selects func(*clusterv1alpha1.Cluster) bool) error {
	r := &reconciler{client: e.Client, members: e.Members, selects: selects}
	err := builder.ControllerManagedBy(e.Manager).Named(Component).
		For(&workv1alpha1.Work{}, builder.WithPredicates(predicate.NewPredicateFuncs(reported))).
		Watches(&clusterv1alpha1.Cluster{}, controllers.Enqueue(r.ofCluster), builder.WithPredicates(controllers.Changed(services.ReachableChanged))).
		WithOptions(controllers.OptionsOf(workers, workers, e.Retry, works.Tenant(ctx, e.Client, services.ServiceNamespaceLabel, services.MCSNamespaceLabel))).
		Complete(r)
	if err != nil {
		return fmt.Errorf("adding %s: %w", Component, err)
	}
	return nil
}

// reported reports whether a Work has a status that its member lacks.
func reported(obj client.Object) bool {
	work, ok := obj.(*workv1alpha1.Work)
	return ok && services.Report(work) != nil
}

// ofCluster returns the Works whose status a cluster lacks.
func (r *reconciler) ofCluster(ctx context.Context, cluster client.Object) []reconcile.Request {
	list := controllers.Listed(ctx, r.client, &workv1alpha1.WorkList{}, client.InNamespace(names.ExecutionNamespace(cluster.GetName())))
	var out []reconcile.Request
	for i := range list.Items {
		if reported(&list.Items[i]) {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return out
}

// Reconcile writes the status of the object of one Work.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	name, err := names.ClusterOfExecutionNamespace(req.Namespace)
	if err != nil {
		return reconcile.Result{}, nil //nolint:nilerr // Works elsewhere are none of ours
	}
	work, cluster := &workv1alpha1.Work{}, &clusterv1alpha1.Cluster{}
	if err := r.client.Get(ctx, req.NamespacedName, work, client.UnsafeDisableDeepCopy); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if err := r.client.Get(ctx, types.NamespacedName{Name: name}, cluster); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	obj := services.Report(work)
	if obj == nil || !r.selects(cluster) || !services.Reachable(cluster) {
		return reconcile.Result{}, nil
	}
	member, err := r.members.Member(ctx, cluster)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("opening cluster %s: %w", name, err)
	}
	mapping, err := member.Mapping(obj.GroupVersionKind())
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("finding the type of work %s: %w", req, err)
	}
	change, err := json.Marshal(map[string]any{"status": obj.Object["status"]})
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("encoding the status of work %s: %w", req, err)
	}
	_, err = member.Dynamic().Resource(mapping.Resource).Namespace(obj.GetNamespace()).
		Patch(ctx, obj.GetName(), types.MergePatchType, change, metav1.PatchOptions{}, "status")
	if err != nil && !apierrors.IsNotFound(err) {
		return reconcile.Result{}, fmt.Errorf("writing the status of %s %s/%s in cluster %s: %w", obj.GetKind(), obj.GetNamespace(), obj.GetName(), name, err)
	}
	return reconcile.Result{}, nil
}
