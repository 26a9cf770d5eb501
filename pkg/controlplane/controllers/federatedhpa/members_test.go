package federatedhpa

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/karmada-toolkit/karmada/pkg/member/access"
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
	list, err := cfg.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var got []corev1.Pod
	err = meta.EachListItem(list, func(obj runtime.Object) error {
		p, err := cfg.Project(obj, nil)
		got = append(got, p)
		return err
	})
	if err != nil || len(got) != 1 {
		t.Fatalf("%d pods, %v", len(got), err)
	}
	p := &got[0]
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
