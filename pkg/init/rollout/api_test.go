package rollout

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
)

// replica returns what an API server of several answers: it does not serve the API if unready.
func replica(unready bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case unready:
			http.NotFound(w, r)
		case r.URL.Path == "/apis":
			_, _ = w.Write([]byte(`{"items":[{"metadata":{"name":"cluster.karmada.io"},"versions":[{"version":"v1alpha1"}]}]}`))
		default:
			_, _ = w.Write([]byte(`{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"cluster.karmada.io/v1alpha1"}`))
		}
	}
}

// One of three API servers behind an address does not serve the API. Connections go to them in turn.
func TestCheckServed_ReachesEveryReplica(t *testing.T) {
	for name, unready := range map[string]bool{"all serve it": false, "one does not": true} {
		t.Run(name, func(t *testing.T) {
			type number struct{}
			var connections atomic.Int32
			replicas := []http.HandlerFunc{replica(false), replica(false), replica(unready)}
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				replicas[r.Context().Value(number{}).(int)](w, r)
			}))
			server.Config.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
				return context.WithValue(ctx, number{}, int(connections.Add(1)-1)%len(replicas))
			}
			server.EnableHTTP2 = true
			server.StartTLS()
			defer server.Close()
			cfg := &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
			err := CheckServed(t.Context(), cfg, clusterv1alpha1.GroupVersion, int32(len(replicas)))
			if unready != (err != nil) {
				t.Errorf("got %v", err)
			}
			if n := connections.Load(); n < 3 {
				t.Errorf("%d connections", n)
			}
		})
	}
}
