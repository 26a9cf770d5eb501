package access_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/internal/pki"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
	"github.com/karmada-toolkit/karmada/pkg/member/access/accesstest"
)

func cluster(endpoint string) *clusterv1alpha1.Cluster {
	return &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "m1"},
		Spec: clusterv1alpha1.ClusterSpec{
			SyncMode: clusterv1alpha1.Push, APIEndpoint: endpoint,
			SecretRef: &clusterv1alpha1.LocalSecretReference{Namespace: "ns", Name: "m1"},
		},
	}
}

// vault is the Secret of a cluster.
type vault struct {
	mu    sync.Mutex
	data  map[string][]byte
	err   error
	reads int
}

func (v *vault) read(context.Context, string, string) (*corev1.Secret, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.reads++
	return &corev1.Secret{Data: v.data}, v.err
}

func (v *vault) set(token string, ca []byte) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.data = map[string][]byte{"token": []byte(token), "caBundle": ca}
}

func TestConfig_Errors(t *testing.T) {
	full := map[string][]byte{"token": []byte("t"), "caBundle": []byte("c")}
	for _, tc := range []struct {
		name   string
		change func(*clusterv1alpha1.Cluster)
		data   map[string][]byte
		err    error
		want   string
	}{
		{"no endpoint", func(c *clusterv1alpha1.Cluster) { c.Spec.APIEndpoint = "" }, full, nil, "the api endpoint of cluster m1 is empty"},
		{"no secret", func(c *clusterv1alpha1.Cluster) { c.Spec.SecretRef = nil }, full, nil, "cluster m1 does not have a secret"},
		{"no token", nil, map[string][]byte{"caBundle": []byte("c")}, nil, `the secret for cluster m1 is missing a non-empty value for "token"`},
		{"empty token", nil, map[string][]byte{"token": {}, "caBundle": []byte("c")}, nil, `the secret for cluster m1 is missing a non-empty value for "token"`},
		{"no CA", nil, map[string][]byte{"token": []byte("t")}, nil, `the secret for cluster m1 is missing the CA data key "caBundle"`},
		{"unreadable secret", nil, nil, errors.New("boom"), "reading the secret of cluster m1: boom"},
		{"bad proxy", func(c *clusterv1alpha1.Cluster) { c.Spec.ProxyURL = "http://%zz" }, full, nil, "parsing the proxy url of cluster m1"},
		{"no CA is required with insecureSkipTLSVerification", func(c *clusterv1alpha1.Cluster) { c.Spec.InsecureSkipTLSVerification = true }, map[string][]byte{"token": []byte("t")}, nil, ""},
		{"a CA that is no certificate", nil, full, nil, "opening cluster m1: reading the certificates"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := cluster("https://m1")
			if tc.change != nil {
				tc.change(c)
			}
			m, err := access.NewPool(access.Options{Secrets: (&vault{data: tc.data, err: tc.err}).read}).Member(t.Context(), c)
			if tc.want == "" {
				if err != nil || m.Config().Host != "https://m1" {
					t.Errorf("got %v, %v", m, err)
				}
				return
			}
			if err == nil || !strings.HasPrefix(err.Error(), tc.want) {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}

func get(t *testing.T, m *access.Member) error {
	t.Helper()
	_, err := m.Dynamic().Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).List(t.Context(), metav1.ListOptions{})
	return err
}

func TestPool(t *testing.T) {
	server := accesstest.New(t)
	server.Require("one")
	v := &vault{}
	v.set("one", server.CA())
	clk := clocktesting.NewFakeClock(time.Unix(1000, 0))
	pool := access.NewPool(access.Options{Secrets: v.read, Clock: clk})
	c := cluster(server.URL)
	first, err := pool.Member(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	member := func() *access.Member {
		t.Helper()
		m, err := pool.Member(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}

	t.Run("the token of the Secret opens the cluster", func(t *testing.T) {
		if err := get(t, first); err != nil {
			t.Fatal(err)
		}
		if member() != first || v.reads != 1 {
			t.Errorf("opened twice; %d reads", v.reads)
		}
	})
	t.Run("a refused token is read again, and the request sent again", func(t *testing.T) {
		server.Require("two")
		v.set("two", server.CA())
		clk.Step(time.Second)
		if err := get(t, first); err != nil {
			t.Fatal(err)
		}
		if member() != first {
			t.Error("a new token closed the connections")
		}
	})
	t.Run("a token that is wrong for good is not read for every request", func(t *testing.T) {
		server.Require("three")
		clk.Step(time.Second)
		before := v.reads
		for range 3 {
			if err := get(t, first); err == nil {
				t.Fatal("let in")
			}
		}
		if v.reads != before+1 {
			t.Errorf("%d reads", v.reads-before)
		}
	})
	t.Run("an old token is read again", func(t *testing.T) {
		v.set("three", server.CA())
		clk.Step(6 * time.Minute)
		if err := get(t, first); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("an unreadable Secret leaves the token", func(t *testing.T) {
		v.err = errors.New("boom")
		clk.Step(6 * time.Minute)
		if err := get(t, first); err != nil {
			t.Fatal(err)
		}
		v.err = nil
	})
	t.Run("another CA opens the cluster anew", func(t *testing.T) {
		v.set("three", append([]byte("\n"), server.CA()...))
		clk.Step(6 * time.Minute)
		if err := get(t, first); err != nil {
			t.Fatal(err)
		}
		second := member()
		if second == first {
			t.Fatal("the same")
		}
		select {
		case <-first.Context().Done():
		default:
			t.Error("the old one is not done")
		}
		first = second
	})
	t.Run("another endpoint opens the cluster anew", func(t *testing.T) {
		c.Spec.APIEndpoint = server.URL + "/"
		if member() == first {
			t.Error("the same")
		}
	})
	t.Run("a forgotten cluster is closed", func(t *testing.T) {
		last := member()
		pool.Close(c)
		pool.Close(c)
		<-last.Context().Done()
		if member() == last {
			t.Error("the same")
		}
	})
}

// TestPool_FollowsClusters shows that no connection of a cluster outlives it, whoever asks for it.
func TestPool_FollowsClusters(t *testing.T) {
	server, v := accesstest.New(t), &vault{}
	v.set("one", server.CA())
	c := cluster(server.URL)
	c.UID = "1"
	plane := fake.NewClientBuilder().WithScheme(kube.NewScheme()).WithObjects(c.DeepCopy()).Build()
	pool := access.NewPool(access.Options{Clusters: plane, Secrets: v.read})
	first, err := pool.Member(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if err := plane.Delete(t.Context(), c.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	pool.OnDelete(c)
	<-first.Context().Done()
	if _, err := pool.Member(t.Context(), c); err == nil || !strings.Contains(err.Error(), "deleted") {
		t.Errorf("a deleted cluster is opened: %v", err)
	}
	again := c.DeepCopy()
	again.UID = "2"
	if err := plane.Create(t.Context(), again.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	second, err := pool.Member(t.Context(), again)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Member(t.Context(), c); err == nil {
		t.Error("the earlier cluster of the name is opened")
	}
	pool.OnUpdate(c, again)
	if same, err := pool.Member(t.Context(), again); err != nil || same != second {
		t.Errorf("the cluster of another UID was opened again: %v", err)
	}
}

func TestPool_ReadsTheCAAfterARejectedCertificate(t *testing.T) {
	server := accesstest.New(t)
	v, clk := &vault{}, clocktesting.NewFakeClock(time.Unix(1000, 0))
	foreign, err := pki.NewCA(pki.CAConfig{CommonName: "foreign"}, nil, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	v.set("one", foreign.CertPEM())
	pool := access.NewPool(access.Options{Secrets: v.read, Clock: clk})
	first, err := pool.Member(t.Context(), cluster(server.URL))
	if err != nil {
		t.Fatal(err)
	}
	if err := get(t, first); err == nil {
		t.Fatal("the certificate was accepted")
	}
	v.set("one", server.CA())
	clk.Step(time.Second)
	if err := get(t, first); err == nil {
		t.Fatal("the old connections accept the certificate")
	}
	second, err := pool.Member(t.Context(), cluster(server.URL))
	if err != nil {
		t.Fatal(err)
	}
	if second == first {
		t.Error("the cluster was not opened anew")
	}
	if err := get(t, second); err != nil {
		t.Error(err)
	}
}

func TestPool_FailureIsNotCached(t *testing.T) {
	v := &vault{err: errors.New("boom")}
	pool := access.NewPool(access.Options{Secrets: v.read})
	if _, err := pool.Member(t.Context(), cluster("https://m1")); err == nil {
		t.Fatal("no error")
	}
	v.err = nil
	v.data = map[string][]byte{"token": []byte("t"), "caBundle": nil}
	if _, err := pool.Member(t.Context(), cluster("https://m1")); err != nil {
		t.Error(err)
	}
}

func TestPool_LimitsRequests(t *testing.T) {
	v := &vault{}
	v.set("t", nil)
	m, err := access.NewPool(access.Options{Secrets: v.read, QPS: 7, Burst: 9}).Member(t.Context(), cluster("https://m1"))
	if err != nil {
		t.Fatal(err)
	}
	if m.Config().RateLimiter == nil || m.Config().RateLimiter.QPS() != 7 {
		t.Error("no limit")
	}
	m, err = access.NewPool(access.Options{Secrets: v.read}).Member(t.Context(), cluster("https://m1"))
	if err != nil {
		t.Fatal(err)
	}
	if m.Config().RateLimiter != nil || m.Config().QPS >= 0 {
		t.Error("limited")
	}
}

func TestProxy_GetsTheHeader(t *testing.T) {
	got := make(chan http.Header, 1)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodConnect {
			got <- r.Header
		}
		w.WriteHeader(http.StatusBadGateway)
	}))
	t.Cleanup(proxy.Close)
	v := &vault{}
	v.set("t", nil)
	c := cluster("https://m1.example")
	c.Spec.ProxyURL = proxy.URL
	c.Spec.ProxyHeader = map[string]string{"x-team": "a,b"}
	m, err := access.NewPool(access.Options{Secrets: v.read}).Member(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	var urlErr *url.Error
	if err := get(t, m); !errors.As(err, &urlErr) {
		t.Errorf("got %v", err)
	}
	if header := <-got; !slices.Equal(header.Values("X-Team"), []string{"a", "b"}) {
		t.Errorf("got %v", header)
	}
}

func TestMember_Mapping(t *testing.T) {
	server := accesstest.New(t)
	plane := meta.NewDefaultRESTMapper(nil)
	known := schema.GroupVersionKind{Group: "g", Version: "v1", Kind: "Foo"}
	plane.Add(known, meta.RESTScopeNamespace)
	m, err := access.NewMember("m1", server.Config(), plane)
	if err != nil {
		t.Fatal(err)
	}
	if mapping, err := m.Mapping(known); err != nil || mapping.Resource.Resource != "foos" {
		t.Errorf("got %v, %v", mapping, err)
	}
	if _, err := m.Mapping(schema.GroupVersionKind{Group: "g", Version: "v1", Kind: "Bar"}); err == nil {
		t.Error("an unknown kind was found")
	}
	if m.Name() != "m1" || !strings.HasSuffix(m.URL("/readyz"), "/readyz") {
		t.Error(m.Name(), m.URL("/readyz"))
	}
}

func TestMember_StatusIsField(t *testing.T) {
	const path = "/apis/example.io/v1"
	server := accesstest.New(t)
	m, err := access.NewMember("m1", server.Config(), nil)
	if err != nil {
		t.Fatal(err)
	}
	resource := func(name string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: "example.io", Version: "v1", Resource: name}
	}
	check := func(when string, gvr schema.GroupVersionResource, want bool) {
		t.Helper()
		if got, err := m.StatusIsField(gvr); err != nil || got != want {
			t.Errorf("%s, %s: %v, %v", when, gvr.Resource, got, err)
		}
	}
	check("before it is served", resource("plain"), false)
	server.Put(path, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "APIResourceList", "groupVersion": "example.io/v1",
		"resources": []any{map[string]any{"name": "plain"}, map[string]any{"name": "plain/scale"}, map[string]any{"name": "apart"}, map[string]any{"name": "apart/status"}},
	}})
	check("served", resource("plain"), true)
	check("served", resource("apart"), false)
	server.Fail(func(*http.Request) int { return http.StatusInternalServerError })
	check("cached", resource("plain"), true)
	check("of Kubernetes", schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, false)
	if _, err := m.StatusIsField(resource("other")); err == nil {
		t.Error("a failure is taken for an answer")
	}
}

func TestNewMember_DoesNotChangeTheDefaultClient(t *testing.T) {
	m, err := access.NewMember("m", &rest.Config{Host: "http://127.0.0.1:1"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if m.HTTP() == http.DefaultClient {
		t.Error("a member without TLS changes the timeout of everybody's client")
	}
}
