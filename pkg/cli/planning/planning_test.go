package planning

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/karmada-toolkit/karmada/internal/gates"
	"github.com/karmada-toolkit/karmada/internal/kube"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/cli/env"
	"github.com/karmada-toolkit/karmada/pkg/insight/plan"
)

// TestFeatureGates_AreThoseOfTheControlPlane compares the gates that plan accepts with those that there are.
func TestFeatureGates_AreThoseOfTheControlPlane(t *testing.T) {
	var want []string
	for _, f := range gates.All() {
		want = append(want, string(f))
	}
	got := slices.DeleteFunc(slices.Concat(known, others), func(name string) bool { return name == "AllBeta" })
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestScope_OfDecoded decodes manifests, and gives them the namespace "ns".
func TestScope_OfDecoded(t *testing.T) {
	t.Setenv("KUBECONFIG", "/nowhere/config")
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "Node"}, meta.RESTScopeRoot)
	source := &Source{access: (&env.Env{}).NewAccess()}
	for name, tc := range map[string]struct {
		text     string
		enforced bool
		want     string
	}{
		"objects": {
			text: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\n" +
				`{"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "b", "namespace": "x"}}]}` +
				"\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: other}\n",
			want: "ns/a /b other/c",
		},
		"no objects":        {text: "# a comment\n---\n", want: "the request has no objects"},
		"no YAML":           {text: "a: : b", want: "error converting YAML to JSON: yaml: mapping values are not allowed in this context"},
		"no object":         {text: "text", want: "cannot unmarshal string"},
		"no kind":           {text: "a: b", want: "Object 'Kind' is missing"},
		"no name":           {text: "apiVersion: v1\nkind: ConfigMap\nmetadata: {generateName: a}", want: "ConfigMap without metadata.name"},
		"an unknown kind":   {text: "apiVersion: v1\nkind: Widget\nmetadata: {name: a}", want: `Widget "a": the control plane does not have its kind`},
		"another namespace": {text: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: other}", enforced: true, want: `is "other" and not "ns"`},
	} {
		t.Run(name, func(t *testing.T) {
			manifests, err := source.Decode(strings.NewReader(tc.text), "the request")
			if err == nil {
				err = Scope(manifests, mapper, "ns", tc.enforced)
			}
			var got []string
			for _, u := range manifests {
				got = append(got, u.GetNamespace()+"/"+u.GetName())
			}
			text := strings.Join(got, " ")
			if err != nil {
				text = err.Error()
			}
			if (err == nil) != (name == "objects") || !strings.Contains(text, tc.want) {
				t.Errorf("got %q, want %q", text, tc.want)
			}
		})
	}
}

// TestEffects plans a ConfigMap and its policy, with settings and changes.
func TestEffects(t *testing.T) {
	t.Setenv("KUBECONFIG", "/nowhere/config")
	cluster := &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "m1"},
		Status: clusterv1alpha1.ClusterStatus{
			Conditions:     []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue}},
			APIEnablements: []clusterv1alpha1.APIEnablement{{GroupVersion: "v1", Resources: []clusterv1alpha1.APIResource{{Name: "configmaps", Kind: "ConfigMap"}}}},
		},
	}
	c := fake.NewClientBuilder().WithScheme(kube.NewScheme()).WithObjects(cluster).Build()
	e := &env.Env{Now: time.Now}
	source := &Source{Client: c, Mapper: c.RESTMapper(), env: e, access: e.NewAccess()}
	const text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: ns}\n---\n" +
		"apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {name: p, namespace: ns}\n" +
		"spec: {resourceSelectors: [{apiVersion: v1, kind: ConfigMap}], placement: {clusterAffinity: {clusterNames: [m1]}}}"
	for name, tc := range map[string]struct {
		settings Settings
		changes  []plan.Change
		want     string
	}{
		"manifests":         {want: "1 created"},
		"skipped namespace": {settings: Settings{Skipped: []string{"ns"}}, want: "0 created"},
		"invalid pattern":   {settings: Settings{Skipped: []string{"("}}, want: "--skipped-propagating-namespaces: "},
		"deleted again":     {changes: []plan.Change{plan.Delete(schema.GroupKind{Kind: "ConfigMap"}, "ns", "a")}, want: "0 created"},
		"refused change":    {changes: []plan.Change{plan.Lose("m2")}, want: "cluster m2 does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			manifests, err := source.Decode(strings.NewReader(text), "the request")
			if err != nil {
				t.Fatal(err)
			}
			effects, err := source.Effects(t.Context(), tc.settings, manifests, func(text string) { t.Error(text) }, tc.changes...)
			got := fmt.Sprint(err)
			if err == nil {
				got = fmt.Sprintf("%d created", effects.Summary.Create)
			}
			if !strings.HasPrefix(got, tc.want) {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}
