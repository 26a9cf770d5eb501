package namespacesync

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/build"
	"github.com/karmada-toolkit/karmada/internal/events"
	"github.com/karmada-toolkit/karmada/internal/testenv/memory"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/templates"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/templates/templatestest"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/works"
	"github.com/karmada-toolkit/karmada/pkg/domain/propagation"
)

func namespace(name string, labels map[string]string) *unstructured.Unstructured {
	obj := build.Object("v1", "Namespace", "", name)
	obj.SetLabels(labels)
	return obj
}

// sync reconciles a namespace twice among two clusters, of which m2 has no
// execution namespace yet, and returns the Works.
func syncNamespace(t *testing.T, ns *unstructured.Unstructured, stored ...client.Object) []workv1alpha1.Work {
	t.Helper()
	m, r := newReconciler(t, ns, stored...)
	m.MustReconcile(r, memory.Key("", ns.GetName()))
	m.Stable(func() { m.MustReconcile(r, memory.Key("", ns.GetName())) })
	return memory.List[*workv1alpha1.WorkList](m).Items
}

func newReconciler(t *testing.T, ns *unstructured.Unstructured, stored ...client.Object) (*memory.Env, *reconciler) {
	t.Helper()
	m := memory.New(t, append(stored, build.Cluster("m1"), build.Cluster("m2"))...)
	skipped, err := propagation.ParseNamespaces([]string{"kube-.*"})
	if err != nil {
		t.Fatal(err)
	}
	return m, &reconciler{
		client: m.Client, skipped: skipped, works: works.NewWriter(m.Client, m.Client),
		store:     templatestest.New(t, []*unstructured.Unstructured{ns, namespace("karmada-es-m1", nil)}).Store,
		overrides: &works.Overrides{Events: events.New(m.Recorder)},
	}
}

func TestReconcile_PropagatedNamespaces(t *testing.T) {
	terminating := namespace("team", nil)
	now := metav1.Now()
	terminating.SetDeletionTimestamp(&now)
	terminating.SetFinalizers([]string{"x/y"})
	for name, tc := range map[string]struct {
		ns   *unstructured.Unstructured
		want int
	}{
		"an ordinary one":              {namespace("team", nil), 1},
		"default":                      {namespace("default", nil), 0},
		"a skipped one":                {namespace("kube-system", nil), 0},
		"a reserved one":               {namespace("karmada-system", nil), 0},
		"one that opts out":            {namespace("team", map[string]string{policyv1alpha1.NamespaceSkipAutoPropagationLabel: "True"}), 0},
		"one that does not opt out":    {namespace("team", map[string]string{policyv1alpha1.NamespaceSkipAutoPropagationLabel: "false"}), 1},
		"one that is being terminated": {terminating, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := len(syncNamespace(t, tc.ns)); got != tc.want {
				t.Errorf("got %d works, want %d", got, tc.want)
			}
		})
	}
}

func TestReconcile_Work(t *testing.T) {
	cop := &policyv1alpha1.ClusterOverridePolicy{ObjectMeta: metav1.ObjectMeta{Name: "cop"}, Spec: policyv1alpha1.OverrideSpec{
		OverrideRules: []policyv1alpha1.RuleWithCluster{{Overriders: policyv1alpha1.Overriders{
			LabelsOverrider: []policyv1alpha1.LabelAnnotationOverrider{{Operator: policyv1alpha1.OverriderOpAdd, Value: map[string]string{"where": "m1"}}},
		}}},
	}}
	list := syncNamespace(t, namespace("test", nil), cop)
	if len(list) != 1 {
		t.Fatalf("got %d works", len(list))
	}
	w := list[0]
	if w.Namespace != "karmada-es-m1" || w.Name != "test-69fd499b4c" {
		t.Errorf("got %s/%s", w.Namespace, w.Name)
	}
	if owner := metav1.GetControllerOf(&w); owner == nil || owner.Kind != "Namespace" || owner.Name != "test" {
		t.Errorf("owner %+v", owner)
	}
	if w.Spec.SuspendDispatching != nil || w.Spec.PreserveResourcesOnDeletion != nil {
		t.Errorf("spec %+v", w.Spec)
	}
	var keys []string
	for key := range w.Annotations {
		keys = append(keys, key)
	}
	if diff := cmp.Diff([]string{policyv1alpha1.AppliedClusterOverridesAnnotation}, keys); diff != "" {
		t.Error(diff)
	}
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON(w.Spec.Workload.Manifests[0].Raw); err != nil {
		t.Fatal(err)
	}
	if obj.GetLabels()["where"] != "m1" {
		t.Errorf("labels %v", obj.GetLabels())
	}
}

func TestReconcile_KeepsTheWorkOfABinding(t *testing.T) {
	bound := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace: "karmada-es-m1", Name: "test-69fd499b4c",
		Annotations: map[string]string{workv1alpha2.ClusterResourceBindingAnnotation: "test-namespace"},
	}}
	list := syncNamespace(t, namespace("test", nil), bound)
	if len(list) != 1 || len(list[0].Spec.Workload.Manifests) != 0 {
		t.Errorf("got %+v", list)
	}
}

func TestOverridden(t *testing.T) {
	_, r := newReconciler(t, namespace("team", nil))
	all := []reconcile.Request{request("team")}
	selectors := func(rs ...policyv1alpha1.ResourceSelector) []policyv1alpha1.ResourceSelector { return rs }
	for name, tc := range map[string]struct {
		selectors []policyv1alpha1.ResourceSelector
		want      []reconcile.Request
	}{
		"without selectors": {nil, all},
		"all namespaces":    {selectors(policyv1alpha1.ResourceSelector{APIVersion: "v1", Kind: "Namespace"}), all},
		"one namespace":     {selectors(policyv1alpha1.ResourceSelector{APIVersion: "v1", Kind: "Namespace", Name: "x"}), []reconcile.Request{request("x")}},
		"another kind":      {selectors(policyv1alpha1.ResourceSelector{APIVersion: "apps/v1", Kind: "Deployment"}), nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := r.overridden(t.Context(), &policyv1alpha1.ClusterOverridePolicy{Spec: policyv1alpha1.OverrideSpec{ResourceSelectors: tc.selectors}})
			if !slices.Equal(got, tc.want) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

// A new cluster, whose execution namespace is created, gets every namespace.
func TestChanged(t *testing.T) {
	_, r := newReconciler(t, namespace("team", nil))
	m2 := namespace("karmada-es-m2", nil)
	for name, tc := range map[string]struct {
		event templates.Event
		want  []reconcile.Request
	}{
		"a namespace":                {templates.Event{New: namespace("other", nil)}, []reconcile.Request{request("other")}},
		"a new cluster":              {templates.Event{New: m2}, []reconcile.Request{request("team")}},
		"a cluster that was there":   {templates.Event{New: m2, Initial: true}, nil},
		"a cluster that was changed": {templates.Event{Old: m2, New: m2}, nil},
		"a reserved namespace":       {templates.Event{New: namespace("karmada-system", nil)}, nil},
	} {
		if got := r.changed(t.Context(), tc.event); !slices.Equal(got, tc.want) {
			t.Errorf("%s: got %v, want %v", name, got, tc.want)
		}
	}
}
