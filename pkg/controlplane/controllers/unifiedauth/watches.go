package unifiedauth

import (
	"context"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/templates"
)

// impersonatorChanged passes clusters that are new or whose impersonator changed.
func impersonatorChanged() predicate.Predicate {
	return controllers.Changed(func(before, after *clusterv1alpha1.Cluster) bool {
		return !equality.Semantic.DeepEqual(before.Spec.ImpersonatorSecretRef, after.Spec.ImpersonatorSecretRef)
	})
}

// clusterOfWork maps a Work with rights to its cluster.
func clusterOfWork(work *workv1alpha1.Work) types.NamespacedName {
	cluster, err := names.ClusterOfExecutionNamespace(work.Namespace)
	if err != nil || work.Name != names.Work("ClusterRole", impersonator, "") && work.Name != names.Work("ClusterRoleBinding", impersonator, "") {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Name: cluster}
}

// grantKinds are the kinds whose changes concern the rights in clusters.
func grantKinds() []schema.GroupKind {
	return []schema.GroupKind{{Kind: "Namespace"}, {Group: rbacv1.GroupName, Kind: "ClusterRole"}, {Group: rbacv1.GroupName, Kind: "ClusterRoleBinding"}}
}

// granted returns all clusters when a role or binding that grants the use of a proxy
// changes, and a cluster when its execution namespace is created.
func (r *reconciler) granted(ctx context.Context, e templates.Event) []reconcile.Request {
	switch {
	case e.Initial: // the watch of clusters enqueues all of them on start
		return nil
	case e.Object().GetKind() == "Namespace":
		if cluster, err := names.ClusterOfExecutionNamespace(e.Object().GetName()); err == nil && e.Old == nil {
			return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: cluster}}}
		}
		return nil
	case r.relevant(e.Old) || r.relevant(e.New):
		return r.all(ctx)
	}
	return nil
}

// relevant reports whether a role, or the role of a binding, grants the use of a proxy.
func (r *reconciler) relevant(obj *unstructured.Unstructured) bool {
	if obj == nil {
		return false
	}
	if obj.GetKind() == "ClusterRoleBinding" {
		name, _, _ := unstructured.NestedString(obj.Object, "roleRef", "name")
		obj = r.store.Cached(rbacv1.SchemeGroupVersion.WithKind("ClusterRole"), "", name)
		if obj == nil {
			return false // the role has an event of its own
		}
	}
	var role rbacv1.ClusterRole
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &role); err != nil {
		return false
	}
	return slices.ContainsFunc(role.Rules, func(rule rbacv1.PolicyRule) bool { return proxies(&rule) })
}
