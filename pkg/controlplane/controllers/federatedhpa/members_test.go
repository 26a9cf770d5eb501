package federatedhpa

import (
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/karmada-toolkit/karmada/pkg/member/access"
	"github.com/karmada-toolkit/karmada/pkg/member/follow"
)

// TestPodConfig_HostileQuantities lists pods with a quantity that takes minutes to parse.
func TestPodConfig_HostileQuantities(t *testing.T) {
	const pod = `{"metadata":{"name":"p","namespace":"ns","labels":{"app":"web"}},"status":{"phase":"Running","startTime":"2026-01-01T00:00:00Z",
		"conditions":[{"type":"Ready","status":"True","lastTransitionTime":"2026-01-01T00:00:05Z"},{"type":"Initialized","status":"True"}]},
		"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"500m","memory":"1e-300000000"}}}]}}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/namespaces/ns/pods" {
			t.Errorf("request for %s", r.URL.Path)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"kind":"PodList","apiVersion":"v1","items":[` + pod + `]}`))
	}))
	defer server.Close()
	member, err := access.NewMember("m1", &rest.Config{Host: server.URL}, nil)
	if err != nil {
		t.Fatal(err)
	}
	cfg := podConfig(member, watchKey{cluster: "m1", namespace: "ns", resource: corev1.SchemeGroupVersion.WithResource("pods")})
	pods := follow.Start(t.Context(), cfg)
	t.Cleanup(pods.Stop)
	err = pods.Await(t.Context())
	p := pods.Get(types.NamespacedName{Namespace: "ns", Name: "p"})
	if err != nil || p == nil {
		t.Fatalf("%d pods, %v", pods.Len(), err)
	}
	if p.Name != "p" || p.Labels["app"] != "web" || p.Status.Phase != corev1.PodRunning || p.Status.StartTime.Year() != 2026 || len(p.Status.Conditions) != 1 {
		t.Errorf("got %+v", p)
	}
	requests := map[string]string{}
	for name, q := range p.Spec.Containers[0].Resources.Requests {
		requests[p.Spec.Containers[0].Name+" "+string(name)] = q.String()
	}
	if diff := cmp.Diff(map[string]string{"c cpu": "500m", "c memory": "0"}, requests); diff != "" {
		t.Error(diff)
	}
}

// TestWatches_KeepNoMoreThanTheLimitOfACluster reads namespaces of two clusters that have one large pod each.
func TestWatches_KeepNoMoreThanTheLimitOfACluster(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") != "" {
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			return
		}
		w.Header().Set("Content-Type", "application/json")
		namespace := strings.Split(r.URL.Path, "/")[4]
		size := 10_000
		if namespace == "large" {
			size = 14_000
		}
		_, _ = w.Write([]byte(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[{"metadata":{"namespace":"` + namespace + `","name":"p","labels":{"a":"` + strings.Repeat("x", size) + `"}}}]}`))
	}))
	t.Cleanup(server.Close)
	members := map[string]*access.Member{}
	w := newWatches(podConfig, clock.RealClock{})
	w.limit = 48_000
	t.Cleanup(func() { w.stop(math.MaxInt64) })
	read := func(cluster, namespace string) error {
		member, ok := members[cluster]
		if !ok {
			var err error
			if member, err = access.NewMember(cluster, &rest.Config{Host: server.URL}, nil); err != nil {
				t.Fatal(err)
			}
			members[cluster] = member
		}
		return w.of(t.Context(), member, watchKey{cluster, namespace, corev1.SchemeGroupVersion.WithResource("pods")}).Await(t.Context())
	}
	if err := read("m1", "large"); err == nil || !strings.Contains(err.Error(), "more objects than can be kept") {
		t.Errorf("a namespace with more than its share: %v", err)
	}
	for _, namespace := range []string{"a", "b", "c", "d"} {
		if err := read("m1", namespace); err != nil {
			t.Fatal(err)
		}
	}
	if err := read("m1", "e"); err == nil || !strings.Contains(err.Error(), "more objects than can be kept") {
		t.Errorf("the fifth namespace: %v", err)
	}
	if err := read("m2", "a"); err != nil {
		t.Errorf("another cluster: %v", err)
	}
	w.stop(math.MaxInt64)
	if len(w.all) != 0 {
		t.Errorf("%d watches remain", len(w.all))
	}
	if err := read("m1", "e"); err != nil {
		t.Errorf("after the others ended: %v", err)
	}
}
