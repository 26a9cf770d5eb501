package webhook

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/interpreter"
)

// server is a webhook that answers what a test says.
type server struct {
	*httptest.Server
	ca []byte

	mu   sync.Mutex
	seen []*http.Request
	body []string
	// answer returns the response to a request; nil sends none.
	answer func(*configv1alpha1.ResourceInterpreterRequest) *configv1alpha1.ResourceInterpreterResponse
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	s.seen, s.body = append(s.seen, r), append(s.body, string(text))
	s.mu.Unlock()
	var c configv1alpha1.ResourceInterpreterContext
	if err := json.Unmarshal(text, &c); err != nil || c.Request == nil {
		http.Error(w, "no request", http.StatusBadRequest)
		return
	}
	response := s.answer(c.Request)
	if response != nil && response.UID == "" {
		response.UID = c.Request.UID
	}
	_ = json.NewEncoder(w).Encode(configv1alpha1.ResourceInterpreterContext{Response: response})
}

// count returns how many requests there were.
func (s *server) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.seen)
}

// last returns the last request and its body.
func (s *server) last(t *testing.T) (*http.Request, map[string]any) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	var tree map[string]any
	if err := json.Unmarshal([]byte(s.body[len(s.body)-1]), &tree); err != nil {
		t.Fatal(err)
	}
	return s.seen[len(s.seen)-1], tree
}

// serve starts a webhook whose certificate is for the names.
func serve(t *testing.T, answer func(*configv1alpha1.ResourceInterpreterRequest) *configv1alpha1.ResourceInterpreterResponse, names ...string) *server {
	t.Helper()
	s := &server{answer: answer}
	s.Server = httptest.NewUnstartedServer(s)
	s.Config.ErrorLog = discard(t)
	cert, ca := certificate(t, names...)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}
	s.ca = ca
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func certificate(t *testing.T, names ...string) (tls.Certificate, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "webhook"}, DNSNames: names,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	if len(names) == 0 {
		template.IPAddresses = []net.IP{net.ParseIP("127.0.0.1")}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func rule(kind string, ops ...configv1alpha1.InterpreterOperation) configv1alpha1.RuleWithOperations {
	return configv1alpha1.RuleWithOperations{Operations: ops, Rule: configv1alpha1.Rule{
		APIGroups: []string{"example.io"}, APIVersions: []string{"v1"}, Kinds: []string{kind},
	}}
}

func configuration(name string, hooks ...configv1alpha1.ResourceInterpreterWebhook) *configv1alpha1.ResourceInterpreterWebhookConfiguration {
	return &configv1alpha1.ResourceInterpreterWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}, Webhooks: hooks}
}

// hookAt is a webhook at a URL of a server.
func hookAt(name string, s *server, rules ...configv1alpha1.RuleWithOperations) configv1alpha1.ResourceInterpreterWebhook {
	return configv1alpha1.ResourceInterpreterWebhook{
		Name: name, Rules: rules, InterpreterContextVersions: []string{"v1alpha1"},
		ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: new(s.URL + "/interpret"), CABundle: s.ca},
	}
}

func interpreterWith(t *testing.T, config Config, configurations ...*configv1alpha1.ResourceInterpreterWebhookConfiguration) *interpreter.Interpreter {
	t.Helper()
	layer := New(t.Context(), config)
	layer.Load(configurations)
	t.Cleanup(layer.Close)
	return interpreter.New(interpreter.WithLayer(layer))
}

func workflow() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.io/v1", "kind": "Workflow",
		"metadata": map[string]any{"name": "w", "namespace": "ns"},
		"spec":     map[string]any{"paused": true, "replicas": int64(2)},
	}}
}

func TestLayer_AsksAndUnderstandsEveryOperation(t *testing.T) {
	json6902 := configv1alpha1.PatchTypeJSONPatch
	s := serve(t, func(r *configv1alpha1.ResourceInterpreterRequest) *configv1alpha1.ResourceInterpreterResponse {
		out := &configv1alpha1.ResourceInterpreterResponse{Successful: true}
		switch r.Operation {
		case configv1alpha1.InterpreterOperationInterpretReplica:
			out.Replicas = new(int32(7))
		case configv1alpha1.InterpreterOperationInterpretComponent:
			out.Components = []workv1alpha2.Component{{Name: "a", Replicas: 1}}
		case configv1alpha1.InterpreterOperationReviseReplica:
			out.Patch, out.PatchType = fmt.Appendf(nil, `[{"op":"replace","path":"/spec/replicas","value":%d}]`, *r.DesiredReplicas), &json6902
		case configv1alpha1.InterpreterOperationRetain:
			out.Patch, out.PatchType = []byte(`[{"op":"replace","path":"/spec/paused","value":false}]`), &json6902
		case configv1alpha1.InterpreterOperationAggregateStatus:
			out.Patch, out.PatchType = fmt.Appendf(nil, `[{"op":"add","path":"/status","value":{"clusters":%d}}]`, len(r.AggregatedStatus)), &json6902
		case configv1alpha1.InterpreterOperationInterpretDependency:
			out.Dependencies = []configv1alpha1.DependentObjectReference{{APIVersion: "v1", Kind: "Secret", Namespace: r.Namespace, Name: "s"}}
		case configv1alpha1.InterpreterOperationInterpretStatus:
			out.RawStatus = &runtime.RawExtension{Raw: []byte(`{"phase":"Done"}`)}
		case configv1alpha1.InterpreterOperationInterpretHealth:
			out.Healthy = new(true)
		}
		return out
	})
	var calls atomic.Int32
	in := interpreterWith(t, Config{Observe: func(c Call) {
		if c.Err == nil && c.Webhook == "c/hook.example.io" {
			calls.Add(1)
		}
	}}, configuration("c", hookAt("hook.example.io", s, rule("*", "*"))))
	obj := workflow()

	replicas, _, err := in.GetReplicas(obj)
	if err != nil || replicas != 7 {
		t.Errorf("replicas: %d, %v", replicas, err)
	}
	request, tree := s.last(t)
	if request.Method != http.MethodPost || request.URL.Path != "/interpret" || request.URL.RawQuery != "" ||
		request.Header.Get("Content-Type") != "application/json" || request.Header.Get("User-Agent") != "kube-apiserver-admission" {
		t.Errorf("the request is %s %s with %v", request.Method, request.URL, request.Header)
	}
	asked, _ := tree["request"].(map[string]any)
	if uid, _ := asked["uid"].(string); len(uid) != 36 {
		t.Errorf("uid %q", uid)
	}
	delete(asked, "uid")
	want := map[string]any{
		"apiVersion": "config.karmada.io/v1alpha1", "kind": "ResourceInterpreterContext",
		"request": map[string]any{
			"kind": map[string]any{"group": "example.io", "version": "v1", "kind": "Workflow"},
			"name": "w", "namespace": "ns", "operation": "InterpretReplica", "replicas": 0.0,
			"object": map[string]any{
				"apiVersion": "example.io/v1", "kind": "Workflow", "metadata": map[string]any{"name": "w", "namespace": "ns"},
				"spec": map[string]any{"paused": true, "replicas": 2.0},
			},
		},
	}
	if diff := cmp.Diff(want, tree); diff != "" {
		t.Errorf("the body (-want +got):\n%s", diff)
	}

	components, err := in.GetComponents(obj)
	if err != nil || len(components) != 1 {
		t.Errorf("components: %v, %v", components, err)
	}
	revised, err := in.ReviseReplica(obj, 5)
	if err != nil || number(revised, "spec", "replicas") != 5 || number(obj, "spec", "replicas") != 2 {
		t.Errorf("revised: %v, %v; before: %v", revised, err, obj)
	}
	retained, err := in.Retain(obj, workflow())
	if paused, _, _ := unstructured.NestedBool(retained.Object, "spec", "paused"); err != nil || paused {
		t.Errorf("retained: %v, %v", retained, err)
	}
	if _, tree := s.last(t); tree["request"].(map[string]any)["observedObject"] == nil {
		t.Error("the observed object was not sent")
	}
	aggregated, err := in.AggregateStatus(obj, make([]workv1alpha2.AggregatedStatusItem, 3))
	if err != nil || number(aggregated, "status", "clusters") != 3 || obj.Object["status"] != nil {
		t.Errorf("aggregated: %v, %v", aggregated, err)
	}
	dependencies, err := in.GetDependencies(obj)
	if err != nil || len(dependencies) != 1 || dependencies[0].Namespace != "ns" {
		t.Errorf("dependencies: %v, %v", dependencies, err)
	}
	status, err := in.ReflectStatus(obj)
	if err != nil || string(status.Raw) != `{"phase":"Done"}` {
		t.Errorf("status: %s, %v", status, err)
	}
	if healthy, err := in.InterpretHealth(obj); err != nil || !healthy {
		t.Errorf("healthy: %t, %v", healthy, err)
	}
	if calls.Load() != 8 {
		t.Errorf("%d calls were observed", calls.Load())
	}
}

func number(obj *unstructured.Unstructured, path ...string) int64 {
	n, _, _ := unstructured.NestedInt64(obj.Object, path...)
	return n
}

func TestLayer_TellsWhatIsWrongWithAnAnswer(t *testing.T) {
	merge := configv1alpha1.PatchType("MergePatch")
	right := configv1alpha1.PatchTypeJSONPatch
	type response = configv1alpha1.ResourceInterpreterResponse
	for name, tt := range map[string]struct {
		op       configv1alpha1.InterpreterOperation
		response *response
		want     string
	}{
		"no response":                   {"InterpretHealth", nil, `received invalid webhook response: webhook response was absent`},
		"another uid":                   {"InterpretHealth", &response{UID: "b", Successful: true}, `", got "b"`},
		"failed without why":            {"InterpretHealth", &response{}, `received invalid webhook response: webhook require response.status when response.successful is false`},
		"failed":                        {"InterpretHealth", &response{Status: &configv1alpha1.RequestStatus{Code: 403, Message: "no"}}, `webhook call failed, get status code: 403, msg: no`},
		"no replicas":                   {"InterpretReplica", &response{Successful: true}, `webhook returned nil response.replicas`},
		"no status":                     {"InterpretStatus", &response{Successful: true}, `webhook returned nill response.rawStatus`},
		"no health":                     {"InterpretHealth", &response{Successful: true}, `webhook returned nil response.healthy`},
		"patch without type":            {"Retain", &response{Successful: true, Patch: []byte("[]")}, `webhook returned nil response.patchType`},
		"type without patch":            {"Retain", &response{Successful: true, PatchType: &right}, `webhook returned empty response.patch`},
		"another type":                  {"ReviseReplica", &response{Successful: true, Patch: []byte("{}"), PatchType: &merge}, `webhook returned invalid response.patchType of "MergePatch"`},
		"no patch after all":            {"AggregateStatus", &response{Successful: true, Patch: []byte("{}"), PatchType: &right}, `decoding response.patch`},
		"patch that misses":             {"ReviseReplica", &response{Successful: true, Patch: []byte(`[{"op":"replace","path":"/spec/x","value":1}]`), PatchType: &right}, `applying response.patch`},
		"patch away the kind":           {"Retain", &response{Successful: true, Patch: []byte(`[{"op":"remove","path":"/kind"}]`), PatchType: &right}, `decoding the object after response.patch`},
		"dependency without apiVersion": {"InterpretDependency", &response{Successful: true, Dependencies: []configv1alpha1.DependentObjectReference{{Kind: "Secret", Name: "s"}}}, `dependencies[0].apiVersion`},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, func(*configv1alpha1.ResourceInterpreterRequest) *response { return tt.response })
			in := interpreterWith(t, Config{}, configuration("c", hookAt("hook.example.io", s, rule("Workflow", tt.op))))
			err := run(in, tt.op, workflow())
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %v, want %q", err, tt.want)
			}
			prefix := `Internal error occurred: failed calling webhook "c/hook.example.io": `
			if tt.op != "InterpretDependency" && (!strings.HasPrefix(err.Error(), prefix) || !apierrors.IsInternalError(err)) {
				t.Errorf("%v does not begin with %q", err, prefix)
			}
			if n := s.count(); n != 1 {
				t.Errorf("%d requests", n)
			}
		})
	}
}

func run(in *interpreter.Interpreter, op configv1alpha1.InterpreterOperation, obj *unstructured.Unstructured) (err error) {
	switch op {
	case configv1alpha1.InterpreterOperationInterpretReplica:
		_, _, err = in.GetReplicas(obj)
	case configv1alpha1.InterpreterOperationInterpretStatus:
		_, err = in.ReflectStatus(obj)
	case configv1alpha1.InterpreterOperationInterpretHealth:
		_, err = in.InterpretHealth(obj)
	case configv1alpha1.InterpreterOperationRetain:
		_, err = in.Retain(obj, obj)
	case configv1alpha1.InterpreterOperationReviseReplica:
		_, err = in.ReviseReplica(obj, 1)
	case configv1alpha1.InterpreterOperationAggregateStatus:
		_, err = in.AggregateStatus(obj, nil)
	case configv1alpha1.InterpreterOperationInterpretDependency:
		_, err = in.GetDependencies(obj)
	}
	return err
}

func TestLayer_NoPatchIsNoChange(t *testing.T) {
	s := serve(t, func(*configv1alpha1.ResourceInterpreterRequest) *configv1alpha1.ResourceInterpreterResponse {
		return &configv1alpha1.ResourceInterpreterResponse{Successful: true}
	})
	in := interpreterWith(t, Config{}, configuration("c", hookAt("hook.example.io", s, rule("*", "*"))))
	obj := workflow()
	revised, err := in.ReviseReplica(obj, 3)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(obj, revised); diff != "" {
		t.Error(diff)
	}
	revised.SetName("other")
	if obj.GetName() != "w" {
		t.Error("the caller does not own the result")
	}
}

func TestLayer_TheFirstHookByConfigurationAndNameAnswers(t *testing.T) {
	answer := func(n int32) func(*configv1alpha1.ResourceInterpreterRequest) *configv1alpha1.ResourceInterpreterResponse {
		return func(*configv1alpha1.ResourceInterpreterRequest) *configv1alpha1.ResourceInterpreterResponse {
			return &configv1alpha1.ResourceInterpreterResponse{Successful: true, Replicas: new(n)}
		}
	}
	one, two, three := serve(t, answer(1)), serve(t, answer(2)), serve(t, answer(3))
	layer := New(t.Context(), Config{})
	layer.Load([]*configv1alpha1.ResourceInterpreterWebhookConfiguration{
		configuration("b", hookAt("a.example.io", one, rule("Workflow", "InterpretReplica"))),
		configuration("a", hookAt("z.example.io", three, rule("Workflow", "*")), hookAt("b.example.io", two, rule("*", "InterpretReplica"))),
	})
	in := interpreter.New(interpreter.WithLayer(layer))
	if replicas, _, err := in.GetReplicas(workflow()); err != nil || replicas != 2 {
		t.Errorf("%d replicas, %v", replicas, err)
	}
	gvk := workflow().GroupVersionKind()
	for op, want := range map[configv1alpha1.InterpreterOperation]string{
		configv1alpha1.InterpreterOperationInterpretReplica: "a/b.example.io",
		configv1alpha1.InterpreterOperationInterpretHealth:  "a/z.example.io",
	} {
		if got := layer.For(gvk, op); got != want {
			t.Errorf("%s is answered by %q, want %q", op, got, want)
		}
	}
	for _, other := range []schema.GroupVersionKind{
		{Group: "example.io", Version: "v2", Kind: "Workflow"}, {Group: "", Version: "v1", Kind: "Workflow"},
	} {
		if in.HookEnabled(other, configv1alpha1.InterpreterOperationInterpretReplica) {
			t.Errorf("%s is covered", other)
		}
	}
	layer.Load(nil)
	if in.HookEnabled(gvk, configv1alpha1.InterpreterOperationInterpretReplica) {
		t.Error("a webhook that is gone is asked")
	}
}

func healthy(*configv1alpha1.ResourceInterpreterRequest) *configv1alpha1.ResourceInterpreterResponse {
	return &configv1alpha1.ResourceInterpreterResponse{Successful: true, Healthy: new(true)}
}

func TestLayer_TrustsTheBundleAndTheName(t *testing.T) {
	s := serve(t, healthy)
	_, foreign := certificate(t)
	for name, tt := range map[string]struct {
		ca   []byte
		want string
	}{
		"another authority": {foreign, "certificate"},
		"no authority":      {nil, "certificate"},
		"no PEM":            {[]byte("x"), "failed to call webhook: caBundle holds no certificate in PEM form"},
	} {
		t.Run(name, func(t *testing.T) {
			h := hookAt("hook.example.io", s, rule("*", "*"))
			h.ClientConfig.CABundle = tt.ca
			in := interpreterWith(t, Config{}, configuration("c", h))
			if _, err := in.InterpretHealth(workflow()); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
	if s.count() > 0 {
		t.Error("an untrusted server was asked")
	}
}

func TestLayer_FindsServices(t *testing.T) {
	s := serve(t, healthy, "hook.ns.svc")
	port := s.Listener.Addr().(*net.TCPAddr).Port
	spec := func(change func(*corev1.ServiceSpec)) *corev1.Service {
		svc := &corev1.Service{Spec: corev1.ServiceSpec{ClusterIP: "127.0.0.1", Ports: []corev1.ServicePort{{Port: int32(port)}}}}
		change(&svc.Spec)
		return svc
	}
	for name, tt := range map[string]struct {
		service *corev1.Service
		err     error
		want    string
	}{
		"by its cluster IP": {service: spec(func(*corev1.ServiceSpec) {})},
		"of a load balancer": {service: spec(func(s *corev1.ServiceSpec) {
			s.Type = corev1.ServiceTypeLoadBalancer
		})},
		"by its external name, whatever ports it has": {service: spec(func(s *corev1.ServiceSpec) {
			s.Type, s.ExternalName, s.Ports = corev1.ServiceTypeExternalName, "127.0.0.1", nil
		})},
		"without the port": {
			service: spec(func(s *corev1.ServiceSpec) { s.Ports[0].Port++ }),
			want:    fmt.Sprintf(`no service port %d found for service "hook"`, port),
		},
		"headless": {
			service: spec(func(s *corev1.ServiceSpec) { s.ClusterIP = "None" }),
			want:    `cannot route to service with ClusterIP "None"`,
		},
		"of an unknown type": {
			service: spec(func(s *corev1.ServiceSpec) { s.Type = "X" }), want: `unsupported service type "X"`,
		},
		"that is not in the control plane: by its name": {
			err: apierrors.NewNotFound(corev1.Resource("services"), "hook"), want: "hook.ns.svc",
		},
		"that cannot be read": {err: errors.New("no access"), want: "getting service ns/hook: no access"},
	} {
		t.Run(name, func(t *testing.T) {
			h := hookAt("hook.example.io", s, rule("*", "*"))
			h.TimeoutSeconds = new(int32(2))
			h.ClientConfig = admissionregistrationv1.WebhookClientConfig{CABundle: s.ca, Service: &admissionregistrationv1.ServiceReference{
				Namespace: "ns", Name: "hook", Port: new(int32(port)), Path: new("/path"),
			}}
			in := interpreterWith(t, Config{Services: func(_ context.Context, namespace, name string) (*corev1.Service, error) {
				if namespace != "ns" || name != "hook" {
					t.Errorf("asked for %s/%s", namespace, name)
				}
				return tt.service, tt.err
			}}, configuration("c", h))
			ok, err := in.InterpretHealth(workflow())
			if tt.want != "" {
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Fatalf("got %v, want %q", err, tt.want)
				}
				return
			}
			if err != nil || !ok {
				t.Fatal(err)
			}
			request, _ := s.last(t)
			if request.URL.Path != "/path" || request.URL.RawQuery != "timeout=2s" {
				t.Errorf("asked for %s", request.URL)
			}
		})
	}
}

func TestLayer_HTTPFailures(t *testing.T) {
	for name, tt := range map[string]struct {
		code int
		body string
		want string
	}{
		"refused":        {http.StatusForbidden, "keep\nout", "failed to call webhook: the server answered 403 Forbidden: keep out"},
		"broken":         {http.StatusInternalServerError, "", "failed to call webhook: the server answered 500 Internal Server Error"},
		"moved":          {http.StatusTemporaryRedirect, "", "failed to call webhook: the server answered 307 Temporary Redirect"},
		"no JSON":        {http.StatusOK, "<html>", `failed to call webhook: decoding the answer "<html>"`},
		"something else": {http.StatusOK, `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}`, "the answer is a AdmissionReview"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &server{}
			var requests atomic.Int32
			s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				requests.Add(1)
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(tt.code)
				_, _ = io.WriteString(w, tt.body)
			}))
			t.Cleanup(s.Close)
			s.ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
			in := interpreterWith(t, Config{}, configuration("c", hookAt("hook.example.io", s, rule("*", "*"))))
			if _, err := in.InterpretHealth(workflow()); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if requests.Load() != 1 {
				t.Errorf("%d requests: what may have been seen is not sent again", requests.Load())
			}
		})
	}
}

func TestLayer_KnowsNoOtherVersion(t *testing.T) {
	s := serve(t, healthy)
	h := hookAt("hook.example.io", s, rule("*", "*"))
	h.InterpreterContextVersions = []string{"v1"}
	in := interpreterWith(t, Config{}, configuration("c", h))
	want := `webhook does not accept known ResourceInterpreterContext versions (v1alpha1)`
	if _, err := in.InterpretHealth(workflow()); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}

func TestLoad_TellsWhichKindsAreAffected(t *testing.T) {
	s := serve(t, healthy)
	layer := New(t.Context(), Config{})
	load := func(hooks ...configv1alpha1.ResourceInterpreterWebhook) func(schema.GroupVersionKind) bool {
		return layer.Load([]*configv1alpha1.ResourceInterpreterWebhookConfiguration{configuration("c", hooks...)})
	}
	one, two := hookAt("one.example.io", s, rule("One", "*")), hookAt("two.example.io", s, rule("Two", "Retain"))
	kind := func(name string) schema.GroupVersionKind {
		return schema.GroupVersionKind{Group: "example.io", Version: "v1", Kind: name}
	}
	if affects := load(one); affects == nil || !affects(kind("One")) || affects(kind("Two")) {
		t.Error("a new webhook affects its kinds")
	}
	if load(one) != nil {
		t.Error("nothing changed")
	}
	if affects := load(one, two); affects == nil || affects(kind("One")) || !affects(kind("Two")) {
		t.Error("one more webhook affects its kinds only")
	}
	two.TimeoutSeconds = new(int32(3))
	if affects := load(one, two); affects == nil || affects(kind("One")) || !affects(kind("Two")) {
		t.Error("a changed webhook affects its kinds only")
	}
	if affects := load(two); affects == nil || !affects(kind("One")) || affects(kind("Two")) {
		t.Error("a webhook that goes affects its kinds")
	}
}
