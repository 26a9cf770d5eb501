//go:build integration

// Covers pkg/controlplane/search.

package servers_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/testenv"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	searchv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/search/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/member/access/accesstest"
)

// searchJoin adds a member to a control plane.
func searchJoin(t testing.TB, c client.Client, name string) *accesstest.Server {
	t.Helper()
	server := accesstest.New(t)
	server.Require("token")
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Data:       map[string][]byte{clusterv1alpha1.SecretTokenKey: []byte("token"), clusterv1alpha1.SecretCADataKey: server.CA()},
	}
	cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1alpha1.ClusterSpec{
		SyncMode: clusterv1alpha1.Push, APIEndpoint: server.URL, SecretRef: &clusterv1alpha1.LocalSecretReference{Namespace: "default", Name: name},
		ImpersonatorSecretRef: &clusterv1alpha1.LocalSecretReference{Namespace: "default", Name: name},
	}}
	if err := errors.Join(c.Create(t.Context(), secret), c.Create(t.Context(), cluster)); err != nil {
		t.Fatal(err)
	}
	cluster.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Reason: "R", LastTransitionTime: metav1.Now()}}
	if err := c.Status().Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	return server
}

func putConfigMap(server *accesstest.Server, namespace, name string) {
	server.Put("/api/v1/namespaces/"+namespace+"/configmaps/"+name, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": namespace, "name": name},
	}})
}

// grant gives a user the right to use the cache, and to read ConfigMaps in one namespace.
func grant(t *testing.T, c client.Client, user, namespace string) {
	t.Helper()
	subject := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}}
	if err := errors.Join(
		c.Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: []rbacv1.PolicyRule{
			{Verbs: []string{"get"}, APIGroups: []string{searchv1alpha1.GroupName}, Resources: []string{"search", "search/api"}},
			{Verbs: []string{"*"}, APIGroups: []string{searchv1alpha1.GroupName}, Resources: []string{"proxying/proxy"}},
		}}),
		c.Create(t.Context(), &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: user}, Subjects: subject, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
		}),
		c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}),
		c.Create(t.Context(), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: user}, Rules: []rbacv1.PolicyRule{
			{Verbs: []string{"get", "list", "watch"}, APIGroups: []string{""}, Resources: []string{"configmaps"}},
			{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"services", "pods", "pods/exec"}},
		}}),
		c.Create(t.Context(), &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: user}, Subjects: subject, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
		}),
	); err != nil {
		t.Fatal(err)
	}
}

// A user of the cache sees the objects of all members that this user may read in the control plane, and no others.
func TestServer_CachedObjects(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	home := f.replicas.home
	admin, alice := searchClient(t, home.Config, ""), searchClient(t, home.Config, "alice")
	testenv.Eventually(t, time.Minute, func(ctx context.Context) error { // one replica writes it
		got, err := admin.SearchV1alpha1().ResourceRegistries().Get(ctx, podRegistry().Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(got.Status.Conditions, searchv1alpha1.RegistryReady) || len(got.Status.Clusters) != 2 || got.Status.Clusters[1].Objects != 2 {
			return fmt.Errorf("status %+v", got.Status)
		}
		return nil
	})
	names := func(data string) []string {
		list := &unstructured.UnstructuredList{}
		if err := list.UnmarshalJSON([]byte(data)); err != nil {
			t.Fatalf("%v: %s", err, data)
		}
		out := make([]string, 0, len(list.Items))
		for _, item := range list.Items {
			out = append(out, item.GetAnnotations()[clusterv1alpha1.CacheSourceAnnotation]+" "+item.GetNamespace()+"/"+item.GetName())
		}
		return out
	}
	all := []string{"m1 other/only-in-m1", "m1 team/shared", "m2 other/only-in-m2", "m2 team/shared"}
	testenv.Eventually(t, time.Minute, func(context.Context) error {
		code, data := getRaw(t, admin, "search/cache/api/v1/configmaps", "application/json")
		if code != http.StatusOK || !slices.Equal(names(data), all) {
			return fmt.Errorf("%d %s", code, data)
		}
		return nil
	})
	testenv.Eventually(t, time.Minute, func(context.Context) error { // rights take effect with a delay
		code, data := getRaw(t, alice, "search/cache/api/v1/namespaces/team/configmaps/shared", "application/json")
		if code != http.StatusOK {
			return fmt.Errorf("%d %s", code, data)
		}
		return nil
	})
	for _, tc := range []struct {
		path string
		code int
		want []string
		text string
	}{
		{"configmaps", http.StatusForbidden, nil, `user \"alice\" cannot list them in the control plane in all namespaces`},
		{"namespaces/other/configmaps", http.StatusForbidden, nil, `cannot list them in the control plane in namespace \"other\"`},
		{"namespaces/other/configmaps/only-in-m1", http.StatusForbidden, nil, "cannot get them"},
		{"namespaces/team/secrets", http.StatusForbidden, nil, "cannot list them"},
		{"namespaces/team/configmaps", http.StatusOK, []string{"m1 team/shared", "m2 team/shared"}, ""},
		{"namespaces/team/configmaps/shared", http.StatusOK, []string{"m1 team/shared", "m2 team/shared"}, ""},
		{"namespaces/team/configmaps/none", http.StatusOK, []string{}, ""},
		{"namespaces/team/configmaps?limit=1", http.StatusOK, []string{"m1 team/shared"}, `"continue":"`},
		{"namespaces/team/configmaps?limit=1&continue=x", http.StatusGone, nil, "the continue token is not valid"},
		{"namespaces/team/configmaps?fieldSelector=metadata.name!=shared", http.StatusOK, []string{}, ""},
	} {
		code, data := getRaw(t, alice, "search/cache/api/v1/"+tc.path, "application/json")
		if code != tc.code || !strings.Contains(data, tc.text) || tc.want != nil && !slices.Equal(names(data), tc.want) {
			t.Errorf("%s: %d %s", tc.path, code, data)
		}
	}
}
