package webhook

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/karmada-toolkit/karmada/internal/quantity"
	autoscalingv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/autoscaling/v1alpha1"
)

// TestBindings_QuantitiesThatTakeMinutes shows that no request has them decoded or stored.
func TestBindings_QuantitiesThatTakeMinutes(t *testing.T) {
	const hostile = `{"cpu":"1e-300000000"}`
	write := func(spec string) *admissionv1.AdmissionResponse {
		return ask(t, deps(), question{path: "/validate-resourcebinding", namespace: "ns", object: `{"apiVersion":"work.karmada.io/v1alpha2","kind":"ResourceBinding",
			"metadata":{"name":"a","namespace":"ns","labels":{"commit":"1e23456"}},"spec":{"resource":{"apiVersion":"apps/v1","kind":"Deployment","namespace":"ns","name":"a"},` + spec + `}}`})
	}
	if resp := write(`"replicas":1`); !resp.Allowed {
		t.Errorf("a label like a number: %+v", resp)
	}
	for name, spec := range map[string]string{
		"replicas":   `"replicaRequirements":{"resourceRequest":` + hostile + `}`,
		"components": `"components":[{"name":"a","replicas":1,"replicaRequirements":{"resourceRequest":` + hostile + `}}]`,
	} {
		if resp := write(spec); resp.Allowed || !strings.Contains(resp.Result.Message, quantity.ErrRange.Error()) {
			t.Errorf("%s: got %+v", name, resp)
		}
	}
	handlers, err := Handlers(deps())
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{`"1e-300000000"`, `1e-300000000`, `"1\u0065-300000000"`, `" 1e-300000000"`} {
		body := `{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"u","desiredAPIVersion":"work.karmada.io/v1alpha2","objects":[
			{"apiVersion":"work.karmada.io/v1alpha1","kind":"ResourceBinding","metadata":{"name":"a","namespace":"ns"},
			"spec":{"resource":{"apiVersion":"apps/v1","kind":"Deployment","name":"a","resourcePerReplicas":{"cpu":` + value + `}}}}]}}`
		if resp := post(t, handlers["/convert"], "/convert", "application/json", []byte(body)); resp.Code != http.StatusBadRequest {
			t.Errorf("%s: %d", value, resp.Code)
		}
	}
}

func TestDecodeAs_QuantitiesThatTakeMinutes(t *testing.T) {
	decode := func(value string) error {
		_, err := decodeAs[autoscalingv1alpha1.FederatedHPA]([]byte(`{"apiVersion":"autoscaling.karmada.io/v1alpha1","kind":"FederatedHPA",
			"spec":{"metrics":[{"type":"Resource","resource":{"name":"cpu","target":{"type":"AverageValue","averageValue":"`+value+`"}}}]}}`),
			autoscalingv1alpha1.GroupVersion.WithKind("FederatedHPA"))
		return err
	}
	if err := decode("1e-300000000"); !errors.Is(err, quantity.ErrRange) {
		t.Errorf("got %v", err)
	}
	if err := decode("1e3"); err != nil {
		t.Error(err)
	}
}

// TestPolicies_PathsThatExhaustTheParser shows that no policy reaches the JSONPath parser with text that ends the process.
func TestPolicies_PathsThatExhaustTheParser(t *testing.T) {
	const policy = `{"apiVersion":"policy.karmada.io/v1alpha1","kind":"%s","metadata":{"name":"a","namespace":"%s","labels":{"%s":"x"}},
		"spec":{"propagateDeps":true,"resourceSelectors":[{"apiVersion":"apps/v1","kind":"Deployment","namespace":"%s"}],"failover":{"%s":
		{"decisionConditions":{},"purgeMode":"Directly","statePreservation":{"rules":[{"aliasLabelName":"a","jsonPath":"{%s}"}]}}}}}`
	for _, p := range []struct{ path, kind, namespace, label string }{
		{"/validate-propagationpolicy", "PropagationPolicy", "ns", "propagationpolicy.karmada.io/permanent-id"},
		{"/validate-clusterpropagationpolicy", "ClusterPropagationPolicy", "", "clusterpropagationpolicy.karmada.io/permanent-id"},
	} {
		for _, failover := range []string{"application", "cluster"} {
			write := func(path string, dryRun bool) *admissionv1.AdmissionResponse {
				object := fmt.Sprintf(policy, p.kind, p.namespace, p.label, p.namespace, failover, path)
				return ask(t, deps(), question{path: p.path, namespace: p.namespace, object: object, dryRun: dryRun})
			}
			if resp := write(".a", false); !resp.Allowed {
				t.Errorf("%s: %s", p.kind, resp.Result.Message)
			}
			for _, dryRun := range []bool{true, false} {
				resp := write(strings.Repeat("@", 1_900_000), dryRun)
				if resp.Allowed || !strings.Contains(resp.Result.Message, "spec.failover."+failover+".statePreservation.rules[0].jsonPath") || len(resp.Result.Message) > 1024 {
					t.Errorf("%s: %+.1000v", p.kind, resp)
				}
			}
		}
	}
}
