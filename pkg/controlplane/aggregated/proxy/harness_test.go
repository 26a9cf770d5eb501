package proxy

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"maps"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/user"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
	restclient "k8s.io/client-go/rest"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
)

// federation is a proxy over members that are test servers.
type federation struct {
	clusters []*clusterv1alpha1.Cluster
	secrets  map[string]*corev1.Secret
	proxy    *REST
	*httptest.Server
}

func (f *federation) Find(_ context.Context, name string) (*clusterv1alpha1.Cluster, error) {
	for _, c := range f.clusters {
		if c.Name == name {
			return c, nil
		}
	}
	return nil, apierrors.NewNotFound(clusterv1alpha1.Resource("clusters"), name)
}

func (f *federation) All(context.Context) ([]clusterv1alpha1.Cluster, error) {
	out := make([]clusterv1alpha1.Cluster, 0, len(f.clusters))
	for _, c := range f.clusters {
		out = append(out, *c)
	}
	return out, nil
}

func (f *federation) secret(_ context.Context, namespace, name string) (*corev1.Secret, error) {
	if s, ok := f.secrets[namespace+"/"+name]; ok {
		return s, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, name)
}

// add adds a member served by a handler.
func (f *federation) add(t *testing.T, name string, handler http.HandlerFunc) *clusterv1alpha1.Cluster {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	f.secrets["ns/"+name] = &corev1.Secret{Data: map[string][]byte{
		"caBundle": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
		"token":    []byte("token-" + name),
	}}
	ref := &clusterv1alpha1.LocalSecretReference{Namespace: "ns", Name: name}
	c := &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       clusterv1alpha1.ClusterSpec{APIEndpoint: server.URL, SecretRef: ref, ImpersonatorSecretRef: ref},
	}
	f.clusters = append(f.clusters, c)
	return c
}

// newFederation returns a proxy without members, whose control plane is home.
func newFederation(t *testing.T, home http.Handler) *federation {
	t.Helper()
	f := &federation{secrets: map[string]*corev1.Secret{}}
	server := httptest.NewServer(home)
	t.Cleanup(server.Close)
	var err error
	f.proxy, err = New(Options{
		Clusters: f, Secret: f.secret, MemberTimeout: time.Minute,
		ControlPlane: &restclient.Config{Host: server.URL, BearerToken: "own"},
	})
	if err != nil {
		t.Fatal(err)
	}
	f.Server = httptest.NewServer(asServer(KeepInner(http.HandlerFunc(f.connect))))
	t.Cleanup(f.Server.Close)
	return f
}

// asServer does what the server does before it calls handlers: it sets what a
// request is, and whose.
func asServer(next http.Handler) http.Handler {
	resolver := genericrequest.RequestInfoFactory{APIPrefixes: sets.NewString("apis")}
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		info, err := resolver.NewRequestInfo(req)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		ctx := genericrequest.WithRequestInfo(req.Context(), info)
		ctx = genericrequest.WithUser(ctx, &user.DefaultInfo{
			Name: "alice", UID: "1", Groups: []string{"dev", "system:authenticated", "ops"}, Extra: map[string][]string{"x": {"y"}},
		})
		next.ServeHTTP(w, req.WithContext(ctx))
	})
}

func (f *federation) connect(w http.ResponseWriter, req *http.Request) {
	info, _ := genericrequest.RequestInfoFrom(req.Context())
	r := &responder{w: w}
	handler, err := f.proxy.Connect(req.Context(), info.Name, &clusterv1alpha1.ClusterProxyOptions{}, r)
	if err != nil {
		r.Error(err)
		return
	}
	handler.ServeHTTP(w, req)
}

// responder answers errors as the server does.
type responder struct{ w http.ResponseWriter }

func (r *responder) Object(code int, obj runtime.Object) { reply200(r.w, code, obj) }

func (r *responder) Error(err error) {
	status := metav1.Status{Code: http.StatusInternalServerError, Message: err.Error()}
	if s, ok := err.(apierrors.APIStatus); ok {
		status = s.Status()
	}
	reply200(r.w, int(status.Code), status)
}

func reply200(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v)
}

const base = "/apis/cluster.karmada.io/v1alpha1/clusters/"

// do sends a request and returns the answer, its body decoded.
func (f *federation) do(t *testing.T, method, path string, header http.Header) (int, map[string]any, http.Header) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, f.URL+base+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(req.Header, header)
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	var body map[string]any
	if err := json.NewDecoder(answer.Body).Decode(&body); err != nil && method != http.MethodHead {
		t.Fatalf("%s: %v", answer.Status, err)
	}
	return answer.StatusCode, body, answer.Header
}
