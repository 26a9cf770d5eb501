//go:build !kind

package e2e

import (
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// growthLimit is how much resident memory a hostile member may cost the roles, in MiB:
// 100 MiB of heap, which the garbage collector lets grow to twice that.
const growthLimit = 200

// hostile is a member that answers as its attack says.
type hostile struct {
	*httptest.Server

	mu     sync.Mutex
	attack http.HandlerFunc
	// attacked counts the requests that met an attack, by path.
	attacked map[string]int
}

func newHostile(t *testing.T) *hostile {
	t.Helper()
	h := &hostile{attacked: map[string]int{}}
	h.Server = httptest.NewUnstartedServer(http.HandlerFunc(h.serve))
	h.Config.ErrorLog = nil
	h.StartTLS()
	t.Cleanup(func() {
		h.CloseClientConnections()
		h.Close()
	})
	return h
}

// begin starts an attack; existing watches are closed, so that they are requested again.
func (h *hostile) begin(attack http.HandlerFunc) {
	h.mu.Lock()
	h.attack, h.attacked = attack, map[string]int{}
	h.mu.Unlock()
	h.CloseClientConnections()
}

// missed returns an error for a path that was not requested since the attack began.
func (h *hostile) missed(paths ...string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, path := range paths {
		if h.attacked[path] == 0 {
			return fmt.Errorf("%s was not requested, only %v", path, h.attacked)
		}
	}
	return nil
}

func (h *hostile) serve(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/readyz" {
		_, _ = io.WriteString(w, "ok")
		return
	}
	h.mu.Lock()
	attack := h.attack
	h.attacked[r.URL.Path]++
	h.mu.Unlock()
	if attack != nil {
		attack(w, r)
		return
	}
	h.honest(w, r)
}

// honest answers like a cluster without objects.
func (h *hostile) honest(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	resource := func(name, kind string) map[string]any {
		return map[string]any{"resource": name, "responseKind": map[string]any{"version": "v1", "kind": kind}, "scope": "Namespaced", "verbs": []string{"get", "list", "watch", "create", "update", "delete"}}
	}
	answer := map[string]any{}
	switch path := r.URL.Path; {
	case path == "/version":
		answer["gitVersion"] = "v1.36.0"
	case path == "/api":
		w.Header().Set("Content-Type", aggregated)
		answer["kind"], answer["items"] = "APIGroupDiscoveryList", []any{map[string]any{"versions": []any{map[string]any{
			"version": "v1", "resources": []any{resource("configmaps", "ConfigMap"), resource("namespaces", "Namespace")},
		}}}}
	case path == "/apis":
		w.Header().Set("Content-Type", aggregated)
		answer["kind"], answer["items"] = "APIGroupDiscoveryList", []any{}
	case r.URL.Query().Get("watch") != "":
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		return
	case r.Method == http.MethodPost:
		_, _ = io.Copy(w, r.Body)
		return
	case strings.HasSuffix(path, "/nodes"):
		answer = map[string]any{"kind": "NodeList", "apiVersion": "v1", "items": []any{}}
	case strings.HasSuffix(path, "/pods"):
		answer = map[string]any{"kind": "PodList", "apiVersion": "v1", "items": []any{}}
	case strings.HasSuffix(path, "/customresourcedefinitions"):
		answer = map[string]any{"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "items": []any{}}
	case strings.HasSuffix(path, "/configmaps"), strings.HasSuffix(path, "/namespaces"):
		answer = map[string]any{"kind": "ConfigMapList", "apiVersion": "v1", "items": []any{}}
	default:
		w.WriteHeader(http.StatusNotFound)
		answer = map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}
	}
	_ = json.NewEncoder(w).Encode(answer)
}

func repeat(w io.Writer, text string) {
	chunk := []byte(strings.Repeat(text, 1+(256<<10)/len(text)))
	for {
		if _, err := w.Write(chunk); err != nil {
			return
		}
	}
}

// asJSON sends a text without end, or until the client has enough.
func asJSON(text string, endless bool) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if endless {
			repeat(w, text)
			return
		}
		_, _ = io.WriteString(w, text)
	}
}

// attacks returns what a member may answer, by name.
func attacks(elsewhere string) map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{
		"endless": asJSON(" ", true),
		"one GB": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "1000000000")
			repeat(w, `{"kind":"List","items":[`+strings.Repeat(`"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",`, 1000))
		},
		"gzip bomb": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			repeat(z, " ")
		},
		"redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere+r.URL.Path, http.StatusTemporaryRedirect)
		},
		"many values":  asJSON(`{},`, true),
		"deep nesting": asJSON(`{"a":[`, true),
		"wrong types":  asJSON(`{"kind":7,"apiVersion":{},"metadata":"x","items":{"a":1},"groups":{},"versions":1,"resources":"x","gitVersion":[]}`, false),
		"hostile text": func(w http.ResponseWriter, _ *http.Request) {
			refuseWith(w, "\x1b[2Jgone\r\n"+strings.Repeat("x", 1<<20))
		},
		"hostile numbers":   asJSON(`{"kind":"NodeList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":"n"},"status":{"allocatable":{"cpu":"1e-300000000"}}}]}`, false),
		"pages without end": asJSON(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1","continue":"x"},"items":[{"metadata":{"name":"n"}}]}`, false),
		"slow": func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				_, _ = io.WriteString(w, " ")
				_ = http.NewResponseController(w).Flush()
				time.Sleep(100 * time.Millisecond)
			}
		},
	}
}

func refuseWith(w http.ResponseWriter, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusInternalServerError)
	_ = json.NewEncoder(w).Encode(map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 500, "message": message})
}

// TestHostileMember has a member send malicious responses on every path that the roles,
// the proxy and the command line request: requests to other members succeed, the memory
// of the roles does not grow, and no client follows its redirects.
func TestHostileMember(t *testing.T) {
	ns := namespace(t)
	elsewhere := make(chan string, 1000)
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case elsewhere <- r.URL.Path:
		default:
		}
	}))
	t.Cleanup(other.Close)
	h := newHostile(t)
	joinHostile(t, h)
	apply(t, ns, `apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: everywhere}
spec:
  resourceSelectors: [{apiVersion: v1, kind: ConfigMap}]
  placement: {clusterAffinity: {clusterNames: [member1, hostile]}}`, configMapNamed("first"))
	eventually(t, is("member1", ns, "configmap/first", "{.data.a}", "b"))
	eventually(t, func() error {
		return h.missed("/version", "/api", "/apis", "/api/v1/nodes", "/api/v1/pods", "/api/v1/configmaps")
	})

	for name, attack := range attacks(other.URL) {
		t.Run(name, func(t *testing.T) {
			before := resetPeak(t)
			h.begin(attack)
			eventually(t, func() error { return h.missed("/api", "/api/v1/nodes", "/api/v1/pods", "/api/v1/configmaps") })
			text := strings.ToLower(strings.ReplaceAll(name, " ", "-"))
			apply(t, ns, configMapNamed(text))
			eventually(t, is("member1", ns, "configmap/"+text, "{.data.a}", "b"))
			merged(t, ns, text)
			eventually(t, func() error { // member1 has two seconds each time
				out := ctl("", "get", "configmaps", "-n", ns, "--operation-scope", "members")
				if strings.ContainsAny(out.out+out.err, "\x1b\r") {
					t.Errorf("get shows\n%.2000q\n%.2000q", out.out, out.err)
				}
				if !strings.Contains(out.out, "member1") {
					return fmt.Errorf("get shows\n%.2000q\n%.2000q", out.out, out.err)
				}
				return nil
			})
			if grown := peak(t) - before; grown > growthLimit {
				t.Errorf("the roles grew by %d MiB", grown)
			}
		})
	}
	if len(elsewhere) > 0 {
		t.Errorf("a redirect was followed to %s", <-elsewhere)
	}
	out := must(t, "get", "works", "-n", "karmada-es-hostile", "-o", "json") + must(t, "get", "events", "-A", "-o", "json") + must(t, "get", "cluster", "hostile", "-o", "json")
	if strings.Contains(out, `\u001b`) {
		t.Error("an object of the control plane has an escape sequence")
	}
}

// joinHostile makes the Cluster; nothing but its endpoint and credentials is needed.
func joinHostile(t *testing.T, h *hostile) {
	t.Helper()
	ca := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: h.Certificate().Raw}))
	apply(t, "karmada-cluster", fmt.Sprintf(`apiVersion: v1
kind: Secret
metadata: {name: hostile}
data: {caBundle: %s}
stringData: {token: one}`, ca), fmt.Sprintf(`apiVersion: v1
kind: Secret
metadata: {name: hostile-impersonator}
data: {caBundle: %s}
stringData: {token: two}`, ca), fmt.Sprintf(`apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: hostile}
spec:
  id: hostile
  syncMode: Push
  apiEndpoint: %s
  secretRef: {namespace: karmada-cluster, name: hostile}
  impersonatorSecretRef: {namespace: karmada-cluster, name: hostile-impersonator}`, h.URL))
	t.Cleanup(func() {
		h.begin(nil)
		ctl("", "delete", "propagationpolicies", "--all", "-A")
		ctl("", "unjoin", "hostile", "--force", "--wait", "30s")
		ctl("", "delete", "secrets", "hostile", "hostile-impersonator", "-n", "karmada-cluster")
	})
	eventually(t, is("", "", "cluster/hostile", `{.status.conditions[?(@.type=="Ready")].status}`, "True"))
}

// merged lists the ConfigMaps of all members with one request.
func merged(t *testing.T, ns, name string) {
	t.Helper()
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	c, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		body, err := c.RESTClient().Get().AbsPath("/apis/cluster.karmada.io/v1alpha1/clusters/*/proxy/api/v1/namespaces/" + ns + "/configmaps").Do(t.Context()).Raw()
		if err == nil && !strings.Contains(string(body), `"`+name+`"`) {
			return fmt.Errorf("the list of all members is\n%.500s", body)
		}
		return err
	})
}

// resetPeak returns the resident memory of the roles, in MiB, and measures the peak
// from now on.
func resetPeak(t *testing.T) int {
	t.Helper()
	if err := os.WriteFile(filepath.Join("/proc", rolesPID(t), "clear_refs"), []byte("5"), 0); err != nil {
		t.Fatal(err)
	}
	return memoryOf(t, "VmRSS")
}

func peak(t *testing.T) int {
	t.Helper()
	return memoryOf(t, "VmHWM")
}

func memoryOf(t *testing.T, field string) int {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("/proc", rolesPID(t), "status"))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(field + `:\s+(\d+) kB`).FindSubmatch(data)
	if m == nil {
		t.Fatalf("there is no %s in\n%s", field, data)
	}
	kib, err := strconv.Atoi(string(m[1]))
	if err != nil {
		t.Fatal(err)
	}
	return kib >> 10
}

func rolesPID(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(stateDir, federationName, "processes", "karmada.json"))
	if err != nil {
		t.Fatal(err)
	}
	var record struct{ PID int }
	if err := json.Unmarshal(data, &record); err != nil {
		t.Fatal(err)
	}
	return strconv.Itoa(record.PID)
}
