// Package replicassync copies the replicas that HorizontalPodAutoscalers set in members into the Deployment of the
// control plane.
package replicassync

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/patch"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/env"
	"github.com/karmada-toolkit/karmada/pkg/domain/autoscaling"
)

// Component is the name of the controller.
const Component = "deployment-replicas-syncer"

type reconciler struct {
	client client.Client
	// marked reads the Deployments with the label.
	marked client.Reader
}

// Setup adds the controller to the manager.
func Setup(_ context.Context, e *env.Env) error {
	mgr := e.Manager
	marked, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), DefaultTransform: cache.TransformStripManagedFields(),
		DefaultLabelSelector: labels.SelectorFromSet(labels.Set{workv1alpha2.RetainReplicasLabel: "true"}),
	})
	if err == nil {
		err = mgr.Add(marked)
	}
	if err != nil {
		return err
	}
	r := &reconciler{client: e.Client, marked: marked}
	return e.Controller(Component, 1, 1).
		WatchesRawSource(source.Kind(marked, &appsv1.Deployment{}, &handler.TypedEnqueueRequestForObject[*appsv1.Deployment]{})).
		Watches(&workv1alpha2.ResourceBinding{}, controllers.EnqueueKey(deploymentOf)).
		Complete(r)
}

// deploymentOf returns the Deployment of a binding.
func deploymentOf(b *workv1alpha2.ResourceBinding) types.NamespacedName {
	if b.Spec.Resource.Kind != "Deployment" {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Namespace: b.Namespace, Name: b.Spec.Resource.Name}
}

// Reconcile writes the replicas of the status into a Deployment. If it is not time yet, a change of the Deployment or of
// its binding reconciles it again.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	deployment := &appsv1.Deployment{}
	if err := r.marked.Get(ctx, req.NamespacedName, deployment); err != nil || deployment.DeletionTimestamp != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	binding := &workv1alpha2.ResourceBinding{}
	key := types.NamespacedName{Namespace: req.Namespace, Name: names.Binding("Deployment", req.Name)}
	if err := r.client.Get(ctx, key, binding); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	replicas, ok := autoscaling.SyncReplicas(deployment, binding)
	if !ok {
		return reconcile.Result{}, nil
	}
	log.FromContext(ctx).Info("Writing replicas of members", "deployment", klog.KObj(deployment), "from", *deployment.Spec.Replicas, "to", replicas)
	deployment = deployment.DeepCopy()
	err := patch.ChangeLocked(ctx, r.client, deployment, func() { deployment.Spec.Replicas = &replicas })
	return reconcile.Result{}, client.IgnoreNotFound(err)
}
