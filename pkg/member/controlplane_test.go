package member

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/karmada-toolkit/karmada/internal/wait"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
)

// otherServer is an API server without the API of clusters. It fails the test if
// anything is written to it.
func otherServer(t *testing.T) *rest.Config {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			t.Errorf("%s %s", r.Method, r.URL)
		}
		http.NotFound(w, r) // as a generic API server answers for groups it does not have
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}
}

func TestCommandsRefuseAServerThatIsNoControlPlane(t *testing.T) {
	config := otherServer(t)
	c, err := NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	for name, do := range map[string]func() error{
		"require": func() error { return RequireControlPlane(t.Context(), config, time.Minute, nil) },
		"taints": func() error {
			return UpdateTaints(t.Context(), c, "m1", false, func(taints []corev1.Taint) ([]corev1.Taint, bool, error) { return taints, true, nil })
		},
		"unjoin": func() error {
			_, err := Unjoin(t.Context(), Deps{ControlPlane: c, Member: c, Program: "karmadactl"}, unjoinRequest("m1"))
			return err
		},
		"unregister": func() error {
			_, err := Unregister(t.Context(), Deps{ControlPlane: c, Member: c, Program: "karmadactl"}, UnregisterRequest{Name: "m1", Wait: time.Second})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			if err := do(); err == nil || !strings.Contains(err.Error(), "the server is no karmada control plane") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// startingServer is the API server of a control plane after a restart: it knows the API of clusters, answers the first
// requests for it as first says, and lists its kinds later still.
func startingServer(t *testing.T, first http.HandlerFunc) *rest.Config {
	t.Helper()
	var requests, lists atomic.Int32
	answer := func(w http.ResponseWriter, text string) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(text))
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/apis/apiregistration.k8s.io/v1/apiservices/v1alpha1.cluster.karmada.io":
			answer(w, `{"kind":"APIService","apiVersion":"apiregistration.k8s.io/v1"}`)
		case r.URL.Path == "/apis" && lists.Add(1) < 3:
			answer(w, `{"items":[{"metadata":{"name":"cluster.karmada.io"},"versions":[{"version":"v1alpha1","freshness":"Stale"}]}]}`)
		case r.URL.Path == "/apis":
			answer(w, `{"items":[{"metadata":{"name":"cluster.karmada.io"},"versions":[{"version":"v1alpha1"}]}]}`)
		case r.URL.Path == "/apis/cluster.karmada.io/v1alpha1" && requests.Add(1) < 3:
			first(w, r)
		case r.URL.Path == "/apis/cluster.karmada.io/v1alpha1":
			answer(w, `{"kind":"APIResourceList","apiVersion":"v1"}`)
		default:
			t.Errorf("a request for %s", r.URL)
		}
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}
}

func unavailable(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "service unavailable", http.StatusServiceUnavailable)
}

func TestRequireControlPlane_WaitsForOneThatStarts(t *testing.T) {
	for name, first := range map[string]http.HandlerFunc{"the group is not registered": http.NotFound, "its server does not answer": unavailable} {
		t.Run(name, func(t *testing.T) {
			if err := RequireDiscovery(t.Context(), startingServer(t, first), time.Minute, nil); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestRequireControlPlane_NotForEver(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(unavailable))
	defer server.Close()
	err := RequireControlPlane(t.Context(), &rest.Config{Host: server.URL}, 100*time.Millisecond, nil)
	if err == nil || !strings.Contains(err.Error(), "does not serve the API of member clusters") || !strings.Contains(err.Error(), "karmada-aggregated-apiserver") {
		t.Errorf("got %v", err)
	}
}

// A user who may not read APIServices waits as well: the APIs of the control plane are discovered.
func TestRequireControlPlane_WithoutRightsOnAPIServices(t *testing.T) {
	var requests atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(r.URL.Path, "/apis/apiregistration.k8s.io/"):
			w.WriteHeader(http.StatusForbidden)
		case r.URL.Path == "/apis/cluster.karmada.io/v1alpha1" && requests.Add(1) < 3:
			http.NotFound(w, r)
		default:
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"kind":"APIResourceList","apiVersion":"v1"}`))
		}
	}))
	defer server.Close()
	if err := RequireControlPlane(t.Context(), &rest.Config{Host: server.URL}, time.Minute, nil); err != nil {
		t.Error(err)
	}
}

// While the API server restarts, clusters are not served. That is not the end of a cluster, nor that of a wait.
func TestWaits_OutlastARestartOfTheControlPlane(t *testing.T) {
	restarting := []error{
		&meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "cluster.karmada.io", Kind: "Cluster"}},
		apierrors.NewGenericServerResponse(http.StatusNotFound, "get", clusters, "m1", "404 page not found", 0, true),
		apierrors.NewServiceUnavailable("the server is currently unable to handle the request"),
		fmt.Errorf("get: %w", syscall.ECONNREFUSED),
	}
	server := func() (client.Client, *int) {
		reads := 0
		joined := clusterObject("m1", "id")
		joined.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue}}
		return interceptor.NewClient(newServer(t, joined).Client.(client.WithWatch), interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
				if _, ok := obj.(*clusterv1alpha1.Cluster); !ok {
					return c.Get(ctx, key, obj, opts...)
				}
				if reads++; reads <= len(restarting) {
					return restarting[reads-1]
				}
				return c.Get(ctx, key, obj, opts...)
			},
		}), &reads
	}
	c, reads := server()
	if state, err := WaitReady(t.Context(), Deps{ControlPlane: c}, "m1", time.Minute); err != nil || state != "" || *reads != len(restarting)+1 {
		t.Errorf("ready: %q, %v after %d reads", state, err, *reads)
	}
	c, reads = server()
	if err := awaitGone(t.Context(), Deps{ControlPlane: c}, "m1", 3*time.Second); !errors.Is(err, wait.ErrTimeout) || *reads <= len(restarting) {
		t.Errorf("removed: %v after %d reads", err, *reads)
	}
}

func TestAgentConfig_UsesTheContextOfTheAgent(t *testing.T) {
	const kubeconfig = `{"apiVersion":"v1","kind":"Config","current-context":"own","contexts":[{"name":"own","context":{"cluster":"own"}},{"name":"other","context":{"cluster":"other"}}],
		"clusters":[{"name":"own","cluster":{"server":"https://own"}},{"name":"other","cluster":{"server":"https://other"}}]}`
	spec := agentSpec("m3")
	m := memberServer(t, "id", spec.Objects()...)
	secret := &corev1.Secret{}
	secret.Namespace, secret.Name = "karmada-system", "karmada-kubeconfig"
	_ = m.Delete(t.Context(), secret.DeepCopy())
	secret.Data = map[string][]byte{"karmada-kubeconfig": []byte(kubeconfig)}
	if err := m.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	config, err := AgentConfig(t.Context(), m, UnregisterRequest{Name: "m3", Namespace: "karmada-system", Agent: "karmada-agent"})
	if err != nil || config.Host != "https://own" {
		t.Errorf("got %v, %v", config, err)
	}
	_, err = AgentConfig(t.Context(), m, UnregisterRequest{Name: "m3", Namespace: "karmada-system", Agent: "none"})
	if err == nil || !strings.Contains(err.Error(), "A cluster in Push mode has no agent: `unjoin` removes it") {
		t.Errorf("got %v", err)
	}
}

func TestDeleteToken_Missing(t *testing.T) {
	err := DeleteToken(t.Context(), newServer(t), "abcdef")
	if want := `failed to delete bootstrap token "abcdef", err: secrets "bootstrap-token-abcdef" not found`; err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}
