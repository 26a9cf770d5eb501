package binding

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/scope"
)

// workIndex finds Works by the permanent id of their binding, kindIndex bindings
// by the kind of their template, clusterIndex bindings by their targets.
const (
	workIndex    = "binding.id"
	kindIndex    = "binding.kind"
	clusterIndex = "binding.cluster"
)

func workKeys(obj client.Object) []string {
	var out []string
	for _, s := range scope.Bindings() {
		if id := s.ID(obj); id != "" {
			out = append(out, id)
		}
	}
	return out
}

func kindKeys(obj client.Object) []string {
	b, ok := obj.(workv1alpha2.Binding)
	if !ok {
		return nil
	}
	ref := &b.GetSpec().Resource
	return []string{kindKey(ref.APIVersion, ref.Kind)}
}

func kindKey(apiVersion, kind string) string { return apiVersion + "," + kind }

func clusterKeys(obj client.Object) []string {
	b, ok := obj.(workv1alpha2.Binding)
	if !ok {
		return nil
	}
	return sets.List(scope.Names(scope.Targets(b.GetSpec())))
}

// reshaped passes on clusters that are new, and those that overrides may select
// otherwise than before.
func reshaped() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*clusterv1alpha1.Cluster)
			after, isCluster := e.ObjectNew.(*clusterv1alpha1.Cluster)
			return ok && isCluster && (!maps.Equal(before.Labels, after.Labels) ||
				before.Spec.Provider != after.Spec.Provider || before.Spec.Region != after.Spec.Region ||
				!slices.Equal(before.Spec.Zones, after.Spec.Zones))
		},
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// targeting returns the bindings with a cluster among their targets.
func (r *reconciler) targeting(ctx context.Context, cluster client.Object) []reconcile.Request {
	list := r.scope.NewList()
	err := r.client.List(ctx, list, client.MatchingFields{clusterIndex: cluster.GetName()}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil
	}
	return controllers.Requests(list.Bindings())
}

// tampered passes on Works that were deleted or whose spec somebody else changed.
func (r *reconciler) tampered() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return e.ObjectNew.GetDeletionTimestamp() == nil &&
				e.ObjectNew.GetGeneration() != e.ObjectOld.GetGeneration() && !r.works.Wrote(e.ObjectNew)
		},
		DeleteFunc:  func(event.DeleteEvent) bool { return true },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

func (r *reconciler) bindingOfWork(_ context.Context, work client.Object) []reconcile.Request {
	key := r.scope.KeyOf(work)
	if key.Name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: key}}
}

// overridden returns the bindings whose templates an override policy may select,
// judged by kind, namespace and name: other overrides may change the labels that
// it looks at.
func (r *reconciler) overridden(ctx context.Context, obj client.Object) []reconcile.Request {
	p, ok := obj.(policyv1alpha1.OverridePolicyObject)
	if !ok {
		return nil
	}
	selectors := p.OverrideSpec().ResourceSelectors
	if len(selectors) == 0 {
		return r.requests(ctx, p.GetNamespace(), "", nil)
	}
	var out []reconcile.Request
	for i := range selectors {
		rs := &selectors[i]
		out = append(out, r.requests(ctx, p.GetNamespace(), kindKey(rs.APIVersion, rs.Kind), rs)...)
	}
	return out
}

func (r *reconciler) requests(ctx context.Context, namespace, kind string, rs *policyv1alpha1.ResourceSelector) []reconcile.Request {
	opts := []client.ListOption{client.InNamespace(namespace), client.UnsafeDisableDeepCopy}
	if kind != "" {
		opts = append(opts, client.MatchingFields{kindIndex: kind})
	}
	list := r.scope.NewList()
	if err := r.client.List(ctx, list, opts...); err != nil {
		return nil
	}
	var out []reconcile.Request
	for _, b := range list.Bindings() {
		ref := &b.GetSpec().Resource
		if rs != nil && (rs.Namespace != "" && rs.Namespace != ref.Namespace || rs.Name != "" && rs.Name != ref.Name) {
			continue
		}
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(b)})
	}
	return out
}

// worksOf returns the Works of a binding. They are shared and read-only. Ids are
// labels that users can write: a Work that names another binding is not returned.
func (r *reconciler) worksOf(ctx context.Context, b workv1alpha2.Binding, id string) ([]workv1alpha1.Work, error) {
	list := &workv1alpha1.WorkList{}
	if err := r.client.List(ctx, list, client.MatchingFields{workIndex: id}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing works: %w", err)
	}
	own := r.scope.Annotations(client.ObjectKeyFromObject(b))
	return slices.DeleteFunc(list.Items, func(w workv1alpha1.Work) bool { return scope.ForeignAnnotation(&w, own) != "" }), nil
}
