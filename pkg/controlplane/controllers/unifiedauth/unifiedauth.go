// Package unifiedauth grants the control plane the right to impersonate in member
// clusters exactly those subjects that may use the proxy to them.
package unifiedauth

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/events"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/templates"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/works"
)

// Component is the name of the controller and the source of its events.
const Component = "unified-auth-controller"

// Deps are the dependencies and options of the controller.
type Deps struct {
	Store *templates.Store
	// Events selects which successes are recorded. Default: events.Transitions.
	Events events.Mode
	// Retry bounds the delay after failures.
	Retry controllers.Retry
}

type reconciler struct {
	client client.Client
	store  *templates.Store
	works  *works.Writer
	events *events.Recorder
}

// Setup adds the controller to the manager.
func Setup(_ context.Context, mgr manager.Manager, d Deps) error {
	r := &reconciler{
		client: mgr.GetClient(), store: d.Store,
		works:  works.NewWriter(mgr.GetClient(), mgr.GetAPIReader()),
		events: events.ForManager(mgr, Component, d.Events),
	}
	return builder.ControllerManagedBy(mgr).Named(Component).
		Watches(&clusterv1alpha1.Cluster{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(impersonatorChanged())).
		WatchesRawSource(templates.Source{Store: d.Store, Kinds: grantKinds(), Requests: r.granted}).
		WithOptions(controllers.Options(0, 1, d.Retry)).
		Complete(r)
}

// Reconcile writes the rights in one cluster.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	cluster := &clusterv1alpha1.Cluster{}
	if err := r.client.Get(ctx, req.NamespacedName, cluster); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if cluster.DeletionTimestamp != nil || cluster.Spec.ImpersonatorSecretRef == nil {
		return reconcile.Result{}, nil
	}
	execution := names.ExecutionNamespace(cluster.Name)
	if r.store.Cached(corev1.SchemeGroupVersion.WithKind("Namespace"), "", execution) == nil {
		return reconcile.Result{}, nil // the creation of the namespace enqueues the cluster
	}
	changed, err := r.sync(ctx, cluster)
	switch {
	case err != nil:
		publishSyncFailed(r.events, cluster, err)
	case changed:
		publishSynced(r.events, cluster)
	}
	return reconcile.Result{}, err
}

func (r *reconciler) sync(ctx context.Context, cluster *clusterv1alpha1.Cluster) (bool, error) {
	roles, err := list[rbacv1.ClusterRole](ctx, r.store, "ClusterRole")
	if err != nil {
		return false, err
	}
	bindings, err := list[rbacv1.ClusterRoleBinding](ctx, r.store, "ClusterRoleBinding")
	if err != nil {
		return false, err
	}
	changed := false
	for _, obj := range []runtime.Object{role(rules(subjects(cluster.Name, roles, bindings))), roleBinding(cluster)} {
		wrote, err := r.write(ctx, cluster, obj)
		if err != nil {
			return changed, err
		}
		changed = changed || wrote
	}
	return changed, nil
}

func (r *reconciler) write(ctx context.Context, cluster *clusterv1alpha1.Cluster, obj runtime.Object) (bool, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return false, fmt.Errorf("converting %s: %w", impersonator, err)
	}
	u := &unstructured.Unstructured{Object: content}
	result, err := r.works.Write(ctx, &works.Want{
		Namespace: names.ExecutionNamespace(cluster.Name), Name: names.Work(u.GetKind(), u.GetName(), ""),
		Owner:  metav1.NewControllerRef(cluster, clusterv1alpha1.GroupVersion.WithKind("Cluster")),
		Object: u,
	})
	return result != works.Unchanged && err == nil, err
}

// list returns all objects of a kind of RBAC.
func list[T any](ctx context.Context, store *templates.Store, kind string) ([]T, error) {
	objs, err := store.List(ctx, rbacv1.SchemeGroupVersion.WithKind(kind), "", labels.Everything())
	if err != nil {
		return nil, err
	}
	out := make([]T, len(objs))
	for i, obj := range objs {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &out[i]); err != nil {
			return nil, fmt.Errorf("reading %s %q: %w", kind, obj.GetName(), err)
		}
	}
	return out, nil
}

// all returns every cluster.
func (r *reconciler) all(ctx context.Context) []reconcile.Request {
	return controllers.Requests(controllers.Pointers(controllers.Listed(ctx, r.client, &clusterv1alpha1.ClusterList{}).Items))
}

// Reasons of events on clusters.
const (
	ReasonSyncSucceed = "SyncImpersonationConfigSucceed"
	ReasonSyncFailed  = "SyncImpersonationConfigFailed"
)

func publishSynced(r *events.Recorder, cluster *clusterv1alpha1.Cluster) {
	r.Normal(cluster, ReasonSyncSucceed, "Sync impersonation config succeed.")
}

func publishSyncFailed(r *events.Recorder, cluster *clusterv1alpha1.Cluster, err error) {
	r.Warning(cluster, ReasonSyncFailed, fmt.Sprintf("Failed to sync impersonation config: %v", err))
}
