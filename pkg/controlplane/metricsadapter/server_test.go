package metricsadapter

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// controlPlane returns the address of an API server that allows everything but requests in the namespace "secret".
func controlPlane(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review authorizationv1.SubjectAccessReview
		_ = json.NewDecoder(r.Body).Decode(&review)
		attributes := review.Spec.ResourceAttributes
		review.Status.Allowed = attributes == nil || attributes.Namespace != "secret"
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(review)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// serve runs the server over a federation and returns a function that gets a path with an Accept header.
func serve(t *testing.T, f *federation) func(path, accept string) (*http.Response, string) {
	t.Helper()
	o := NewOptions()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o.SecureServing.Listener = listener
	o.Authentication.SkipInClusterLookup = true
	o.ShutdownTimeout, o.MemberTimeout = 100*time.Millisecond, f.timeout
	serving, err := o.Serving("metrics-adapter")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{options: o, controlPlane: &rest.Config{Host: controlPlane(t), ContentConfig: rest.ContentConfig{ContentType: "application/json"}}, serving: serving, members: f.members}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := s.Start(ctx); err != nil {
			t.Error(err)
			_ = listener.Close()
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	client := &http.Client{Timeout: 2 * time.Minute, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	get := func(path, accept string) (*http.Response, string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+listener.Addr().String()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept", accept)
		resp, err := client.Do(req)
		if err != nil {
			return nil, err.Error()
		}
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		return resp, string(body)
	}
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if resp, _ := get("/readyz", "*/*"); resp != nil && resp.StatusCode == http.StatusOK {
			return get
		}
		if time.Now().After(deadline) {
			t.Fatal("the server is not ready")
		}
	}
}

func TestServer(t *testing.T) {
	f := newFederation(t, "m1", "m2", "m3")
	f.pod("m1", "default", "web-1", "100m")
	f.pod("m2", "default", "web-1", "250m")
	f.pod("m3", "default", "web-3", "1m")
	f.metric("m1", "v1beta2", "namespaces/default/pods/*/rps", value("default", "a", "1"))
	f.metric("m2", "v1beta1", "namespaces/default/metrics/load", map[string]any{
		"describedObject": map[string]any{"kind": "Namespace", "name": "default"}, "metricName": "load", "timestamp": "2026-01-01T00:00:00Z", "value": "7",
	})
	f.open(t)
	f.fail["m3"] = 500
	get := serve(t, f)
	const pods = "/apis/metrics.k8s.io/v1beta1/namespaces/default/pods"

	t.Run("a partial list has a warning", func(t *testing.T) {
		resp, body := get(pods, "application/json")
		want := []string{`299 - "cluster(m3): its metrics are missing: the request to it failed"`}
		if diff := cmp.Diff(want, resp.Header.Values("Warning")); diff != "" {
			t.Error(diff)
		}
		if n := strings.Count(body, `"resource.karmada.io/query-from-cluster"`); n != 2 {
			t.Errorf("%d pods in %s", n, body)
		}
	})
	t.Run("a table", func(t *testing.T) {
		_, body := get(pods+"?labelSelector=app%3Dweb", "application/json;as=Table;v=v1;g=meta.k8s.io")
		table := metav1.Table{}
		if err := json.Unmarshal([]byte(body), &table); err != nil {
			t.Fatal(err)
		}
		var got [][]any
		for _, row := range table.Rows {
			got = append(got, row.Cells)
		}
		want := [][]any{{"web-1", "100m", "1Mi", "15s"}, {"web-1", "250m", "1Mi", "15s"}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff, body)
		}
	})
	for name, tc := range map[string]struct {
		path, want string
		code       int
	}{
		"a name in two members":  {pods + "/web-1", "the pod(web-1) found in more than one clusters", http.StatusConflict},
		"a name in none":         {pods + "/web-9", `pods \"web-9\" not found`, http.StatusNotFound},
		"a member that fails":    {pods + "/web-3", "cluster(m3): the request to it failed", http.StatusServiceUnavailable},
		"custom metrics":         {"/apis/custom.metrics.k8s.io/v1beta1/namespaces/default/pods/*/rps", `"metricName":"rps"`, http.StatusOK},
		"of a namespace":         {"/apis/custom.metrics.k8s.io/v1beta2/namespaces/default/metrics/load", `"value":"7"`, http.StatusOK},
		"unknown custom metrics": {"/apis/custom.metrics.k8s.io/v1beta2/namespaces/default/pods/*/x", "the server could not find the metric x for pods", http.StatusNotFound},
		"another path":           {"/apis/custom.metrics.k8s.io/v1beta2/namespaces/default/pods/%2e%2e/x", "", http.StatusBadRequest},
		"a forbidden namespace":  {"/apis/metrics.k8s.io/v1beta1/namespaces/secret/pods", "forbidden", http.StatusForbidden},
		"forbidden custom":       {"/apis/custom.metrics.k8s.io/v1beta2/namespaces/secret/pods/*/rps", "forbidden", http.StatusForbidden},
		"a forbidden metric":     {"/apis/custom.metrics.k8s.io/v1beta2/namespaces/secret/metrics/load", "forbidden", http.StatusForbidden},
		"external metrics":       {"/apis/external.metrics.k8s.io/v1beta1/namespaces/default/x", "karmada-metrics-adapter still not implement it", http.StatusInternalServerError},
		"custom discovery":       {"/apis/custom.metrics.k8s.io/v1beta2", `"name":"pods/rps"`, http.StatusOK},
		"external discovery":     {"/apis/external.metrics.k8s.io/v1beta1", `"resources":[]`, http.StatusOK},
		"discovery":              {"/apis/metrics.k8s.io/v1beta1", `"kind":"PodMetrics"`, http.StatusOK},
		"a field selector":       {pods + "?fieldSelector=metadata.name%3Dnone", `"items":[]`, http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			resp, body := get(tc.path, "application/json")
			if resp == nil || resp.StatusCode != tc.code || !strings.Contains(body, tc.want) {
				t.Errorf("got %v %s", resp, body)
			}
		})
	}
}

func TestOptions(t *testing.T) {
	o := NewOptions()
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	o.AddFlags(fs)
	for _, name := range []string{"cluster-api-qps", "cluster-api-burst", "secure-port", "client-ca-file", "authentication-kubeconfig", "authorization-kubeconfig", "audit-log-path", "tls-min-version"} {
		if fs.Lookup(name) == nil {
			t.Errorf("--%s is missing", name)
		}
	}
	if o.SecureServing.BindPort != 443 {
		t.Errorf("the port is %d", o.SecureServing.BindPort)
	}
	if err := o.Validate(); err != nil {
		t.Error(err)
	}
	o.MemberTimeout, o.ClusterAPIBurst = 0, -1
	if err := o.Validate(); err == nil || !strings.Contains(err.Error(), "--member-timeout must be positive") || !strings.Contains(err.Error(), "--cluster-api-burst must not be negative") {
		t.Errorf("got %v", err)
	}
}
