package aggregated

import (
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
)

// memberOf makes the cluster and the Secrets of a member.
func memberOf(name string, server *httptest.Server) (*clusterv1alpha1.Cluster, map[string]*corev1.Secret) {
	c := pushCluster(name)
	c.Spec.APIEndpoint = server.URL
	c.Spec.SecretRef = &clusterv1alpha1.LocalSecretReference{Namespace: "karmada-cluster", Name: name}
	c.Spec.ImpersonatorSecretRef = &clusterv1alpha1.LocalSecretReference{Namespace: "karmada-cluster", Name: name + "-impersonator"}
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return c, map[string]*corev1.Secret{
		"karmada-cluster/" + name:                   {Data: map[string][]byte{"caBundle": ca}},
		"karmada-cluster/" + name + "-impersonator": {Data: map[string][]byte{"token": []byte("sesame")}},
	}
}

func TestServer_ProxiesToMembers(t *testing.T) {
	type seen struct {
		Method, Path, Query, Authorization, User string
		Groups                                   []string
	}
	member := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(seen{
			Method: req.Method, Path: req.URL.EscapedPath(), Query: req.URL.RawQuery, Authorization: req.Header.Get("Authorization"),
			User: req.Header.Get("Impersonate-User"), Groups: req.Header.Values("Impersonate-Group"),
		})
	}))
	defer member.Close()
	cluster, secrets := memberOf("m1", member)
	etcd, _ := startEtcd(t, t.TempDir())
	home := newControlPlane(t)
	home.allowed = func(r authorizationv1.SubjectAccessReviewSpec) bool {
		a := r.ResourceAttributes
		return r.User == "alice" && a != nil && a.Verb == "get" && a.Resource == "clusters" && a.Subresource == "proxy" && a.Name == "m1"
	}
	s := startServer(t, etcd, home, secrets)
	if _, err := s.client(t, "admin").ClusterV1alpha1().Clusters().Create(t.Context(), cluster, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	const base = "/apis/cluster.karmada.io/v1alpha1/clusters/"

	t.Run("the user's name and groups arrive", func(t *testing.T) {
		var got seen
		s.raw(t, "alice", base+"m1/proxy/api/v1/namespaces/a%2Fb/pods/?dryRun=All&limit=5", nil, &got)
		want := seen{
			Method: "GET", Path: "/api/v1/namespaces/a%2Fb/pods/", Query: "dryRun=All&limit=5",
			Authorization: "bearer sesame", User: "alice", Groups: []string{"dev", "ops"},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("who may not is refused", func(t *testing.T) {
		var got metav1.Status
		if answer := s.raw(t, "alice", base+"m2/proxy/api", nil, &got); answer.StatusCode != http.StatusForbidden {
			t.Errorf("got %s %s", answer.Status, got.Message)
		}
		if answer := s.raw(t, "nobody", base+"m1/proxy/api", nil, &got); answer.StatusCode != http.StatusUnauthorized {
			t.Errorf("got %s %s", answer.Status, got.Message)
		}
	})
	t.Run("answers about rights are kept", func(t *testing.T) {
		for range 5 {
			s.raw(t, "alice", base+"m1/proxy/version", nil, &seen{})
		}
		home.mu.Lock()
		defer home.mu.Unlock()
		if n := len(home.reviews); n > 3 {
			t.Errorf("%d reviews", n)
		}
	})
	t.Run("an unknown cluster is not found", func(t *testing.T) {
		var got metav1.Status
		s.raw(t, "admin", base+"m9/proxy/api", nil, &got)
		if got.Code != http.StatusNotFound || got.Message != `clusters.cluster.karmada.io "m9" not found` {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("the table has all columns", func(t *testing.T) {
		var got metav1.Table
		s.raw(t, "admin", base, http.Header{"Accept": {"application/json;as=Table;v=v1;g=meta.k8s.io"}}, &got)
		var names []string
		for _, c := range got.ColumnDefinitions {
			names = append(names, c.Name)
		}
		want := "Name Version Mode Ready Age Zones Region Provider API-Endpoint Proxy-URL"
		if strings.Join(names, " ") != want || len(got.Rows) != 1 || !slices.Contains(got.Rows[0].Cells, any("m1")) {
			t.Errorf("got %v %v", names, got.Rows)
		}
	})
	t.Run("a path that is no resource is asked in the user's name", func(t *testing.T) {
		var got map[string]string
		s.raw(t, "admin", base+"*/proxy/healthz", nil, &got)
		home.mu.Lock()
		defer home.mu.Unlock()
		last := home.other[len(home.other)-1]
		if last.URL.Path != "/healthz" || last.Header.Get("Impersonate-User") != "system:admin" {
			t.Errorf("got %s as %q", last.URL.Path, last.Header.Get("Impersonate-User"))
		}
	})
}
