package unifiedauth

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/karmada-toolkit/karmada/internal/events"
	"github.com/karmada-toolkit/karmada/internal/testenv/memory"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/templates/templatestest"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/works"
)

func TestGrants(t *testing.T) {
	rule := func(group, resource, verb string, names ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{verb}, ResourceNames: names}
	}
	for name, tc := range map[string]struct {
		rule rbacv1.PolicyRule
		want bool
	}{
		"the proxy of all clusters":    {rule("cluster.karmada.io", "clusters/proxy", "get"), true},
		"the proxy of this cluster":    {rule("cluster.karmada.io", "clusters/proxy", "*", "m0", "m1"), true},
		"the proxy of another cluster": {rule("cluster.karmada.io", "clusters/proxy", "*", "m0"), false},
		"everything":                   {rule("*", "*", "*"), true},
		"all resources of the group":   {rule("cluster.karmada.io", "*", "create"), true},
		"clusters alone":               {rule("cluster.karmada.io", "clusters", "*"), false},
		"another group":                {rule("apps", "clusters/proxy", "*"), false},
		"a verb that no request has":   {rule("cluster.karmada.io", "clusters/proxy", "impersonate"), false},
		"the search proxy":             {rule("search.karmada.io", "proxying/proxy", "get", "anything"), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := grants(&tc.rule, "m1"); got != tc.want {
				t.Errorf("got %v", got)
			}
			if tc.want && !proxies(&tc.rule) {
				t.Error("the rule enqueues no cluster")
			}
		})
	}
}

func TestRules_SortedAndUnique(t *testing.T) {
	got := rules([]rbacv1.Subject{
		{Kind: "Group", Name: "g"}, {Kind: "User", Name: "b"}, {Kind: "User", Name: "a"}, {Kind: "User", Name: "b"},
		{Kind: "ServiceAccount", Namespace: "x", Name: "s"}, {Kind: "ServiceAccount", Namespace: "y", Name: "s"},
	})
	want := []rbacv1.PolicyRule{
		{Verbs: []string{"impersonate"}, APIGroups: []string{""}, Resources: []string{"users"}, ResourceNames: []string{"a", "b"}},
		{Verbs: []string{"impersonate"}, APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, ResourceNames: []string{"s"}},
		{Verbs: []string{"impersonate"}, APIGroups: []string{""}, Resources: []string{"groups"}, ResourceNames: []string{"g"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := rules(nil); got != nil {
		t.Errorf("without subjects the rules are %v", got)
	}
}

func unstructuredOf(t *testing.T, obj runtime.Object) *unstructured.Unstructured {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: content}
}

func TestReconcile(t *testing.T) {
	role := &rbacv1.ClusterRole{
		TypeMeta: metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole"}, ObjectMeta: metav1.ObjectMeta{Name: "admin"},
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}},
	}
	binding := &rbacv1.ClusterRoleBinding{
		TypeMeta: metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRoleBinding"}, ObjectMeta: metav1.ObjectMeta{Name: "admin"},
		RoleRef:  rbacv1.RoleRef{Kind: "ClusterRole", Name: "admin"},
		Subjects: []rbacv1.Subject{{Kind: "Group", Name: "system:masters"}},
	}
	execution := &corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: "karmada-es-m1"}}
	cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1", UID: "uid-m1"}, Spec: clusterv1alpha1.ClusterSpec{
		ImpersonatorSecretRef: &clusterv1alpha1.LocalSecretReference{Namespace: "karmada-cluster", Name: "m1-impersonator"},
	}}
	m := memory.New(t, cluster)
	r := &reconciler{
		client: m.Client, works: works.NewWriter(m.Client, m.Client), events: events.New(m.Recorder),
		store: templatestest.New(t, []*unstructured.Unstructured{unstructuredOf(t, role), unstructuredOf(t, binding), unstructuredOf(t, execution)}).Store,
	}
	m.MustReconcile(r, memory.Key("", "m1"))
	if published := m.Events(); len(published) != 1 {
		t.Errorf("events %v", published)
	}
	m.Stable(func() { m.MustReconcile(r, memory.Key("", "m1")) })
	got := &rbacv1.ClusterRole{}
	read(m, "karmada-impersonator-7cbb6bd5c9", got)
	want := []rbacv1.PolicyRule{{Verbs: []string{"impersonate"}, APIGroups: []string{""}, Resources: []string{"groups"}, ResourceNames: []string{"system:masters"}}}
	if diff := cmp.Diff(want, got.Rules); diff != "" {
		t.Error(diff)
	}
	if got.Labels["karmada.io/system"] != "true" {
		t.Errorf("labels %v", got.Labels)
	}
	bound := &rbacv1.ClusterRoleBinding{}
	read(m, "karmada-impersonator-84f8c8f8c6", bound)
	if diff := cmp.Diff([]rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "karmada-cluster", Name: "karmada-impersonator"}}, bound.Subjects); diff != "" {
		t.Error(diff)
	}
}

// read decodes the object that a Work carries.
func read(m *memory.Env, name string, into any) {
	m.Helper()
	w := memory.Get[*workv1alpha1.Work](m, memory.Key("karmada-es-m1", name))
	if owner := metav1.GetControllerOf(w); owner == nil || owner.UID != "uid-m1" || owner.Kind != "Cluster" {
		m.Errorf("owner of %s: %+v", name, owner)
	}
	obj := &unstructured.Unstructured{}
	m.Must(obj.UnmarshalJSON(w.Spec.Workload.Manifests[0].Raw))
	m.Must(runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, into))
}

func TestVersionOf(t *testing.T) {
	object := func(uid, name, version string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{}}
		u.SetUID(types.UID(uid))
		u.SetName(name)
		u.SetResourceVersion(version)
		return u
	}
	a, b := object("1", "a", "1"), object("2", "b", "2")
	before := versionOf([]*unstructured.Unstructured{a, b})
	if versionOf([]*unstructured.Unstructured{b, a}) != before {
		t.Error("the order matters")
	}
	for name, objs := range map[string][]*unstructured.Unstructured{
		"one less": {a}, "one more": {a, b, object("3", "c", "3")}, "changed": {a, object("2", "b", "3")}, "created again": {a, object("4", "b", "2")},
	} {
		if versionOf(objs) == before {
			t.Errorf("%s: the same version", name)
		}
	}
}
