package namespacesync

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/templates"
)

// changed returns a namespace that changed, and all of them when the execution
// namespace of a cluster is created.
func (r *reconciler) changed(ctx context.Context, e templates.Event) []reconcile.Request {
	name := e.Object().GetName()
	if r.skipped.Syncs(e.Object()) {
		return []reconcile.Request{request(name)}
	}
	if _, err := names.ClusterOfExecutionNamespace(name); err == nil && e.Old == nil && !e.Initial {
		return r.all(ctx, nil)
	}
	return nil
}

func request(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
}

// all returns every namespace that is propagated.
func (r *reconciler) all(context.Context, client.Object) []reconcile.Request {
	var out []reconcile.Request
	// Those that are not in memory yet have an event of their own.
	for _, ns := range r.store.CachedAll(func(kind schema.GroupVersionKind) bool { return kind == namespaceKind() }) {
		if r.skipped.Syncs(ns) {
			out = append(out, request(ns.GetName()))
		}
	}
	return out
}

// overridden returns the namespaces that a policy may select.
func (r *reconciler) overridden(ctx context.Context, p policyv1alpha1.OverridePolicyObject) []reconcile.Request {
	selectors := p.OverrideSpec().ResourceSelectors
	if len(selectors) == 0 {
		return r.all(ctx, nil)
	}
	var out []reconcile.Request
	for _, rs := range selectors {
		if rs.APIVersion != "v1" || rs.Kind != namespaceKind().Kind {
			continue
		}
		if rs.Name == "" {
			return r.all(ctx, nil)
		}
		out = append(out, request(rs.Name))
	}
	return out
}

// namespaceOfWork returns the namespace that a Work carries, if it carries one.
func namespaceOfWork(work *workv1alpha1.Work) types.NamespacedName {
	var carried unstructured.Unstructured
	if len(work.Spec.Workload.Manifests) != 1 || carried.UnmarshalJSON(work.Spec.Workload.Manifests[0].Raw) != nil ||
		carried.GroupVersionKind() != namespaceKind() {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Name: carried.GetName()}
}
