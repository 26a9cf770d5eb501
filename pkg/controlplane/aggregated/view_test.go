package aggregated

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/karmada-toolkit/karmada/pkg/generated/clientset/versioned"
)

// TestServer_ProxyCredentials reads clusters whose proxies have credentials by every verb, with the rights of each kind of requester.
func TestServer_ProxyCredentials(t *testing.T) {
	etcd, _ := startEtcd(t, t.TempDir())
	plane := newControlPlane(t)
	s := startServer(t, etcd, plane, nil)
	admin := s.client(t, "admin").ClusterV1alpha1().Clusters()
	c := pushCluster("m1")
	c.Spec.SecretRef, c.Spec.ImpersonatorSecretRef = nil, nil
	c.Spec.ProxyURL, c.Spec.ProxyHeader = "http://user:hunter2@proxy:3128", map[string]string{"Authorization": "hunter2"}
	c.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": `{"spec":{"proxyHeader":{"Authorization":"hunter2"}}}`, "a": "b"}
	if _, err := admin.Create(t.Context(), c, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for i, tc := range []struct {
		name   string
		denied func(a *authorizationv1.ResourceAttributes) bool
		sees   bool
	}{
		{"may update", func(a *authorizationv1.ResourceAttributes) bool { return a.Resource == "secrets" }, true},
		{"reads Secrets of clusters", func(a *authorizationv1.ResourceAttributes) bool { return a.Verb == "update" }, true},
		{"reads one Secret", func(a *authorizationv1.ResourceAttributes) bool {
			return a.Verb == "update" && a.Subresource == "" || a.Resource == "secrets" && a.Name == ""
		}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			plane.mu.Lock()
			plane.allowed = func(r authorizationv1.SubjectAccessReviewSpec) bool {
				return r.ResourceAttributes == nil || !tc.denied(r.ResourceAttributes)
			}
			plane.mu.Unlock()
			// Reviews are cached by user: each case has its own.
			config := s.config([]string{"bob", "carol", "dave"}[i])
			client, err := versioned.NewForConfig(config)
			if err != nil {
				t.Fatal(err)
			}
			check := func(what string, object any, err error) {
				t.Helper()
				text, failed := json.Marshal(object)
				if err != nil || failed != nil || strings.Contains(string(text), "hunter2") != tc.sees || !strings.Contains(string(text), "proxy:3128") {
					t.Errorf("%s: %s, %v", what, text, err)
				}
			}
			clusters := client.ClusterV1alpha1().Clusters()
			got, err := clusters.Get(t.Context(), "m1", metav1.GetOptions{})
			check("get", got, err)
			cached, err := clusters.Get(t.Context(), "m1", metav1.GetOptions{ResourceVersion: "0"})
			check("get from the cache", cached, err)
			list, err := clusters.List(t.Context(), metav1.ListOptions{ResourceVersion: "0"})
			check("list", list, err)
			patched, err := clusters.Patch(t.Context(), "m1", types.MergePatchType, []byte(`{"metadata":{"labels":{"x":"v`+strconv.Itoa(i)+`"}}}`), metav1.PatchOptions{})
			check("patch", patched, err)
			status, err := clusters.Patch(t.Context(), "m1", types.MergePatchType, []byte(`{"status":{"kubernetesVersion":"v1"}}`), metav1.PatchOptions{}, "status")
			check("patch of the status", status, err)
			body, err := client.ClusterV1alpha1().RESTClient().Get().Resource("clusters").Name("m1").SubResource("status").DoRaw(t.Context())
			check("get of the status", string(body), err)
			check("table", s.table(t, config), nil)
			for range 4 { // the watch cache encodes an event once for several watches
				other, err := admin.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "0"})
				if err != nil {
					t.Fatal(err)
				}
				defer other.Stop()
			}
			watched, err := clusters.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "0"})
			if err != nil {
				t.Fatal(err)
			}
			defer watched.Stop()
			check("first event", (<-watched.ResultChan()).Object, nil)
			if _, err := admin.Patch(t.Context(), "m1", types.MergePatchType, []byte(`{"metadata":{"labels":{"y":"v`+strconv.Itoa(i)+`"}}}`), metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
			check("event", (<-watched.ResultChan()).Object, nil)
			// What was read and is written back keeps the credentials.
			region := strings.ReplaceAll(tc.name, " ", "-")
			if got, err = clusters.Get(t.Context(), "m1", metav1.GetOptions{}); err != nil {
				t.Fatal(err)
			}
			got.Spec.Region = region
			if _, err := admin.Update(t.Context(), got, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			stored, err := admin.Get(t.Context(), "m1", metav1.GetOptions{})
			if err != nil || stored.Spec.ProxyURL != c.Spec.ProxyURL || stored.Spec.ProxyHeader["Authorization"] != "hunter2" || stored.Spec.Region != region {
				t.Errorf("stored %+v, %v", stored.Spec, err)
			}
			stored.Annotations = c.Annotations
			if _, err := admin.Update(t.Context(), stored, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		})
	}
	if stored, err := admin.Get(t.Context(), "m1", metav1.GetOptions{}); err == nil {
		stored.Spec.ProxyURL, stored.Spec.ProxyHeader["Authorization"] = "http://other", "***"
		if updated, err := admin.Update(t.Context(), stored, metav1.UpdateOptions{}); err != nil || updated.Spec.ProxyHeader["Authorization"] != "***" {
			t.Errorf("a header was restored for another proxy: %v, %v", updated, err)
		}
	}
}

// table returns clusters as a table with their metadata.
func (r *runningServer) table(t *testing.T, config *rest.Config) string {
	t.Helper()
	client, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	body, err := client.ClusterV1alpha1().RESTClient().Get().Resource("clusters").SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}
