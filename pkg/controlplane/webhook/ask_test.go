package webhook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	"github.com/karmada-toolkit/karmada/internal/kube"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
)

// deps returns dependencies with ids id-1, id-2 and so on, and the objects.
func deps(objects ...client.Object) Deps {
	c := fake.NewClientBuilder().WithScheme(kube.NewScheme()).WithObjects(objects...).
		WithStatusSubresource(&policyv1alpha1.FederatedResourceQuota{}).Build()
	n := 0
	return Deps{
		NewID:  func() string { n++; return fmt.Sprintf("id-%d", n) },
		Reader: c, LiveReader: c, Writer: c, Metrics: prometheus.NewRegistry(),
	}
}

// question is what an API server asks.
type question struct {
	path        string
	operation   admissionv1.Operation
	namespace   string
	object, old string // YAML
	dryRun      bool
	user        authenticationv1.UserInfo
}

func toJSON(t testing.TB, text string) []byte {
	t.Helper()
	if text == "" {
		return nil
	}
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func (q question) body(t testing.TB) []byte {
	t.Helper()
	if q.operation == "" {
		q.operation = admissionv1.Create
	}
	review := admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID: "u", Operation: q.operation, Namespace: q.namespace, Name: "a", DryRun: &q.dryRun, UserInfo: q.user,
			Object: runtime.RawExtension{Raw: toJSON(t, q.object)}, OldObject: runtime.RawExtension{Raw: toJSON(t, q.old)},
		},
	}
	body, err := json.Marshal(review)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// post sends a request to a handler.
func post(t testing.TB, handler http.Handler, path, contentType string, body []byte) *httptest.ResponseRecorder {
	t.Helper()
	req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, bytes.NewReader(body))
	req.Header.Set("Content-Type", contentType)
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, req)
	return recorder
}

// ask asks the handlers.
func ask(t testing.TB, d Deps, q question) *admissionv1.AdmissionResponse {
	t.Helper()
	handlers, err := Handlers(d)
	if err != nil {
		t.Fatal(err)
	}
	recorder := post(t, handlers[q.path], q.path, "application/json", q.body(t))
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(recorder.Body.Bytes(), &review); err != nil || review.Response == nil {
		t.Fatalf("%s: %v in %s", q.path, err, recorder.Body)
	}
	if review.Response.UID != "u" {
		t.Errorf("the answer is to %q", review.Response.UID)
	}
	return review.Response
}

// wantRefused fails unless the answer is a refusal with a code and text.
func wantRefused(t *testing.T, resp *admissionv1.AdmissionResponse, code int32, message string) {
	t.Helper()
	if resp.Allowed {
		t.Fatal("admitted")
	}
	if resp.Result.Code != code || resp.Result.Message != message {
		t.Errorf("refused with %d %q", resp.Result.Code, resp.Result.Message)
	}
	if code == http.StatusForbidden && resp.Result.Reason != metav1.StatusReasonForbidden {
		t.Errorf("reason %q", resp.Result.Reason)
	}
}

// patchedObject returns the object with the patch applied.
func patchedObject(t testing.TB, object string, resp *admissionv1.AdmissionResponse) map[string]any {
	t.Helper()
	if !resp.Allowed {
		t.Fatalf("refused: %s", resp.Result.Message)
	}
	raw := toJSON(t, object)
	if len(resp.Patch) > 0 {
		patch, err := jsonpatch.DecodePatch(resp.Patch)
		if err != nil {
			t.Fatal(err)
		}
		if raw, err = patch.Apply(raw); err != nil {
			t.Fatalf("%v: %s", err, resp.Patch)
		}
	}
	var out map[string]any
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// wantObject compares the object after the patch.
func wantObject(t *testing.T, q question, resp *admissionv1.AdmissionResponse, want string) {
	t.Helper()
	var wanted map[string]any
	if err := json.Unmarshal(toJSON(t, want), &wanted); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wanted, patchedObject(t, q.object, resp)); diff != "" {
		t.Error(diff)
	}
}
