package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/validation"
)

func TestServe(t *testing.T) {
	for _, tc := range []struct{ operation, want string }{
		{"InterpretReplica", `"replicas":4`},
		{"InterpretHealth", `"healthy":true`},
		{"ReviseReplica", `"patchType":"JSONPatch"`},
		{"Retain", `"code":501`},
	} {
		body := `{"request":{"uid":"u","operation":"` + tc.operation + `","replicas":2,"object":{"spec":{"workers":4},"status":{"phase":"Running"}}}}`
		w := httptest.NewRecorder()
		serve(w, httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body)))
		var c configv1alpha1.ResourceInterpreterContext
		if err := json.Unmarshal(w.Body.Bytes(), &c); err != nil || c.Response.UID != "u" || !strings.Contains(w.Body.String(), tc.want) {
			t.Errorf("%s: %s, %v", tc.operation, w.Body, err)
		}
	}
}

func TestConfiguration_IsValid(t *testing.T) {
	text, err := os.ReadFile("webhook.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c := &configv1alpha1.ResourceInterpreterWebhookConfiguration{}
	if err := yaml.UnmarshalStrict(text, c); err != nil {
		t.Fatal(err)
	}
	if errs := validation.ValidateInterpreterWebhookConfiguration(c); len(errs) > 0 {
		t.Error(errs.ToAggregate())
	}
}
