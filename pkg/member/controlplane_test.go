package member

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
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
		"require": func() error { return RequireControlPlane(t.Context(), config) },
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
}

func TestDeleteToken_Missing(t *testing.T) {
	err := DeleteToken(t.Context(), newServer(t), "abcdef")
	if want := `failed to delete bootstrap token "abcdef": secrets "bootstrap-token-abcdef" not found`; err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}
