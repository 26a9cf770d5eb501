// Package unifiedauth grants the control plane the right to impersonate in member
// clusters exactly those subjects that may use the proxy to them.
package unifiedauth

import (
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/events"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/env"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/templates"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/works"
)

// Component is the name of the controller and the source of its events.
const Component = "unified-auth-controller"

type reconciler struct {
	client client.Client
	store  *templates.Store
	works  *works.Writer
	events *events.Recorder

	roles    decoded[rbacv1.ClusterRole]
	bindings decoded[rbacv1.ClusterRoleBinding]
}

// Setup adds the controller to the manager.
func Setup(_ context.Context, e *env.Env) error {
	r := &reconciler{client: e.Client, store: e.Store, works: e.Works(), events: e.Recorder(Component)}
	return e.Controller(Component, 0, 1).
		Watches(&clusterv1alpha1.Cluster{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(impersonatorChanged())).
		Watches(&workv1alpha1.Work{}, controllers.EnqueueKey(clusterOfWork), builder.WithPredicates(r.works.ChangedByOthers())).
		WatchesRawSource(templates.Source{Store: e.Store, Kinds: grantKinds(), Requests: r.granted}).
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
		r.events.Warning(cluster, ReasonSyncFailed, fmt.Sprintf("Failed to sync impersonation config: %v", err))
	case changed:
		r.events.Normal(cluster, ReasonSyncSucceed, "Sync impersonation config succeed.")
	}
	return reconcile.Result{}, err
}

func (r *reconciler) sync(ctx context.Context, cluster *clusterv1alpha1.Cluster) (bool, error) {
	roles, err := r.roles.list(ctx, r.store, "ClusterRole", func(role *rbacv1.ClusterRole) bool {
		return slices.ContainsFunc(role.Rules, func(rule rbacv1.PolicyRule) bool { return proxies(&rule) })
	})
	if err != nil {
		return false, err
	}
	bindings, err := r.bindings.list(ctx, r.store, "ClusterRoleBinding", func(*rbacv1.ClusterRoleBinding) bool { return true })
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

// decoded are the objects of a kind of RBAC as they were last decoded: the same for all clusters until one of them changes.
type decoded[T any] struct {
	mu      sync.Mutex
	version uint64
	objects []T
}

// list returns the objects of a kind that are relevant.
func (d *decoded[T]) list(ctx context.Context, store *templates.Store, kind string, relevant func(*T) bool) ([]T, error) {
	objs, err := store.List(ctx, rbacv1.SchemeGroupVersion.WithKind(kind), "", labels.Everything())
	if err != nil {
		return nil, err
	}
	version := versionOf(objs)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.objects != nil && d.version == version {
		return d.objects, nil
	}
	out := []T{}
	for _, obj := range objs {
		var t T
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &t); err != nil {
			return nil, fmt.Errorf("reading %s %q: %w", kind, obj.GetName(), err)
		}
		if relevant(&t) {
			out = append(out, t)
		}
	}
	d.objects, d.version = out, version
	return out, nil
}

// versionOf returns a hash that is another one when one of the objects is.
func versionOf(objs []*unstructured.Unstructured) uint64 {
	var version uint64
	for _, obj := range objs { // in any order
		h := fnv.New64a()
		_, _ = io.WriteString(h, string(obj.GetUID())+"/"+obj.GetName()+"/"+obj.GetResourceVersion())
		version += h.Sum64()
	}
	return version
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
