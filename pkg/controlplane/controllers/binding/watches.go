package binding

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/templates"
	"github.com/karmada-toolkit/karmada/pkg/domain/override"
	"github.com/karmada-toolkit/karmada/pkg/domain/policy"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

// workIndex finds Works by the permanent id of their binding, nameIndex by its name,
// kindIndex bindings by the kind of their template, clusterIndex bindings by their targets.
const (
	workIndex    = "binding.id"
	nameIndex    = "binding.name"
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

func nameKeys(work client.Object) []string {
	if s, key := scope.BindingOf(work); s != nil {
		return []string{nameKey(s, key)}
	}
	return nil
}

func nameKey(s *scope.Binding, key types.NamespacedName) string { return s.Kind + "/" + key.String() }

func kindKeys(b workv1alpha2.Binding) []string {
	ref := &b.GetSpec().Resource
	return []string{kindKey(ref.APIVersion, ref.Kind)}
}

func kindKey(apiVersion, kind string) string { return apiVersion + "," + kind }

func clusterKeys(b workv1alpha2.Binding) []string {
	return sets.List(scope.Names(scope.Targets(b.GetSpec())))
}

// selectorsChanged passes clusters that are new, and those with changed fields that
// overrides select by.
func selectorsChanged() predicate.Predicate {
	return controllers.Changed(override.SelectsOtherwise)
}

// mapper maps objects to the bindings of one scope that depend on them.
type mapper struct {
	scope  *scope.Binding
	client client.Reader
}

// ended returns the binding of a template that is gone, perhaps with its type, or that is
// claimed again: the binding of the one before it may be kept.
func (m *mapper) ended(_ context.Context, e templates.Event) []reconcile.Request {
	obj := e.Object()
	if e.New != nil && !newlyClaimed(e) || m.scope.Namespaced != (obj.GetNamespace() != "") {
		return nil
	}
	var out []reconcile.Request
	for _, name := range []string{
		names.Binding(obj.GetKind(), obj.GetName()),
		names.SuffixedBinding(obj.GroupVersionKind().Group, obj.GetKind(), obj.GetName()),
	} {
		out = append(out, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: obj.GetNamespace(), Name: name}})
	}
	return out
}

// newlyClaimed reports whether a policy claims a template that none claimed before.
func newlyClaimed(e templates.Event) bool {
	if _, claimed := policy.Of(e.New); !claimed || e.Initial {
		return false
	}
	if e.Old == nil {
		return true
	}
	_, before := policy.Of(e.Old)
	return !before
}

// targeting returns the bindings with a cluster among their targets.
func (m *mapper) targeting(ctx context.Context, cluster client.Object) []reconcile.Request {
	targets := client.MatchingFields{clusterIndex: cluster.GetName()}
	return controllers.Requests(controllers.Listed(ctx, m.client, m.scope.NewList(), targets).Bindings())
}

// releaseTime is how long the deletion of an override policy waits before it takes effect: it is often deleted together with the
// propagation policy, which leaves what was delivered as it is.
const releaseTime = 2 * time.Second

// overrides enqueues the bindings whose templates an override policy may select.
func (m *mapper) overrides() handler.EventHandler {
	now := controllers.Enqueue(m.overridden)
	return handler.Funcs{
		CreateFunc: now.Create, UpdateFunc: now.Update,
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			if p, ok := e.Object.(policyv1alpha1.OverridePolicyObject); ok {
				for _, request := range m.overridden(ctx, p) {
					q.AddAfter(request, releaseTime)
				}
			}
		},
	}
}

// overridden returns the bindings whose templates an override policy may select by
// kind, namespace and name. Labels are not compared: other overrides may change them.
func (m *mapper) overridden(ctx context.Context, p policyv1alpha1.OverridePolicyObject) []reconcile.Request {
	selectors := p.OverrideSpec().ResourceSelectors
	if len(selectors) == 0 {
		return m.requests(ctx, p.GetNamespace(), "", nil)
	}
	var out []reconcile.Request
	for i := range selectors {
		rs := &selectors[i]
		out = append(out, m.requests(ctx, p.GetNamespace(), kindKey(rs.APIVersion, rs.Kind), rs)...)
	}
	return out
}

func (m *mapper) requests(ctx context.Context, namespace, kind string, rs *policyv1alpha1.ResourceSelector) []reconcile.Request {
	opts := []client.ListOption{client.InNamespace(namespace)}
	if kind != "" {
		opts = append(opts, client.MatchingFields{kindIndex: kind})
	}
	var out []reconcile.Request
	for _, b := range controllers.Listed(ctx, m.client, m.scope.NewList(), opts...).Bindings() {
		ref := &b.GetSpec().Resource
		if rs != nil && (rs.Namespace != "" && rs.Namespace != ref.Namespace || rs.Name != "" && rs.Name != ref.Name) {
			continue
		}
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(b)})
	}
	return out
}
