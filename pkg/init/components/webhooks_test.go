package components

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

func line(name string, c admissionregistrationv1.WebhookClientConfig, rules []admissionregistrationv1.RuleWithOperations) string {
	r := rules[0]
	return fmt.Sprintf("%s %s %v %s/%s %s", name, *c.URL, r.Operations, r.APIGroups[0], r.Resources[0], *r.Scope)
}

func TestMutatingWebhooks(t *testing.T) {
	got := MutatingWebhooks("https://host:1", []byte("ca"))
	var lines []string
	conditions := map[string]string{}
	for _, w := range got.Webhooks {
		lines = append(lines, line(w.Name, w.ClientConfig, w.Rules))
		if *w.FailurePolicy != admissionregistrationv1.Fail || *w.TimeoutSeconds != 3 || *w.SideEffects != admissionregistrationv1.SideEffectClassNone ||
			string(w.ClientConfig.CABundle) != "ca" || w.Rules[0].APIVersions[0] != "*" || w.AdmissionReviewVersions[0] != "v1" {
			t.Errorf("%s: %+v", w.Name, w)
		}
		for _, c := range w.MatchConditions {
			conditions[w.Name] = c.Expression
		}
	}
	controllers := `!(request.userInfo.username in ["system:karmada:controller-manager", "system:karmada:all-in-one"] && has(object.metadata.labels) && "%s" in object.metadata.labels)`
	wantConditions := map[string]string{
		"resourcebinding.karmada.io":        fmt.Sprintf(controllers, "resourcebinding.karmada.io/permanent-id"),
		"clusterresourcebinding.karmada.io": fmt.Sprintf(controllers, "clusterresourcebinding.karmada.io/permanent-id"),
		"work.karmada.io":                   fmt.Sprintf(controllers, "work.karmada.io/permanent-id"),
	}
	if diff := cmp.Diff(wantConditions, conditions); diff != "" {
		t.Error(diff)
	}
	want := []string{
		"propagationpolicy.karmada.io https://host:1/mutate-propagationpolicy [CREATE UPDATE] policy.karmada.io/propagationpolicies Namespaced",
		"clusterpropagationpolicy.karmada.io https://host:1/mutate-clusterpropagationpolicy [CREATE UPDATE] policy.karmada.io/clusterpropagationpolicies Cluster",
		"overridepolicy.karmada.io https://host:1/mutate-overridepolicy [CREATE UPDATE] policy.karmada.io/overridepolicies Namespaced",
		"resourcebinding.karmada.io https://host:1/mutate-resourcebinding [CREATE] work.karmada.io/resourcebindings Namespaced",
		"clusterresourcebinding.karmada.io https://host:1/mutate-clusterresourcebinding [CREATE] work.karmada.io/clusterresourcebindings Cluster",
		"work.karmada.io https://host:1/mutate-work [CREATE UPDATE] work.karmada.io/works Namespaced",
		"autoscaling.karmada.io https://host:1/mutate-federatedhpa [CREATE UPDATE] autoscaling.karmada.io/federatedhpas Namespaced",
		"multiclusterservice.karmada.io https://host:1/mutate-multiclusterservice [CREATE UPDATE] networking.karmada.io/multiclusterservices Namespaced",
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Error(diff)
	}
	if got.Name != "mutating-config" || got.Labels["app"] != "karmada-webhook" {
		t.Errorf("metadata %v", got.ObjectMeta)
	}
}

func TestValidatingWebhooks(t *testing.T) {
	got := ValidatingWebhooks("https://host:1/", nil)
	var lines []string
	for _, w := range got.Webhooks {
		lines = append(lines, line(w.Name, w.ClientConfig, w.Rules))
		seconds, effects, selects := int32(3), admissionregistrationv1.SideEffectClassNone, false
		switch w.Name {
		case "resourceinterpretercustomization.karmada.io":
			seconds = 10
		case "resourcebinding.karmada.io":
			effects = admissionregistrationv1.SideEffectClassNoneOnDryRun
		case "resourcedeletionprotection.karmada.io":
			selects = true
		}
		agents := strings.HasPrefix(w.Name, "agent")
		conditional := agents || w.Name == "resourcebinding.karmada.io"
		if conditional != (len(w.MatchConditions) == 1) || agents != (*w.FailurePolicy == admissionregistrationv1.Ignore) || (w.Name == "agentwork.karmada.io") != (len(w.Rules[0].Resources) == 2) {
			t.Errorf("%s: %+v", w.Name, w)
		}
		if *w.TimeoutSeconds != seconds || *w.SideEffects != effects || (w.ObjectSelector != nil) != selects {
			t.Errorf("%s: %+v", w.Name, w)
		}
	}
	want := []string{
		"propagationpolicy.karmada.io https://host:1/validate-propagationpolicy [CREATE UPDATE] policy.karmada.io/propagationpolicies Namespaced",
		"clusterpropagationpolicy.karmada.io https://host:1/validate-clusterpropagationpolicy [CREATE UPDATE] policy.karmada.io/clusterpropagationpolicies Cluster",
		"overridepolicy.karmada.io https://host:1/validate-overridepolicy [CREATE UPDATE] policy.karmada.io/overridepolicies Namespaced",
		"clusteroverridepolicy.karmada.io https://host:1/validate-clusteroverridepolicy [CREATE UPDATE] policy.karmada.io/clusteroverridepolicies Cluster",
		"config.karmada.io https://host:1/validate-resourceinterpreterwebhookconfiguration [CREATE UPDATE] config.karmada.io/resourceinterpreterwebhookconfigurations Cluster",
		"resourceinterpretercustomization.karmada.io https://host:1/validate-resourceinterpretercustomization [CREATE UPDATE] config.karmada.io/resourceinterpretercustomizations Cluster",
		"federatedresourcequota.karmada.io https://host:1/validate-federatedresourcequota [CREATE UPDATE] policy.karmada.io/federatedresourcequotas Namespaced",
		"multiclusteringress.karmada.io https://host:1/validate-multiclusteringress [CREATE UPDATE] networking.karmada.io/multiclusteringresses Namespaced",
		"federatedhpa.karmada.io https://host:1/validate-federatedhpa [CREATE UPDATE] autoscaling.karmada.io/federatedhpas Namespaced",
		"cronfederatedhpa.karmada.io https://host:1/validate-cronfederatedhpa [CREATE UPDATE] autoscaling.karmada.io/cronfederatedhpas Namespaced",
		"multiclusterservice.karmada.io https://host:1/validate-multiclusterservice [CREATE UPDATE] networking.karmada.io/multiclusterservices Namespaced",
		"resourcedeletionprotection.karmada.io https://host:1/validate-resourcedeletionprotection [DELETE] */* *",
		"resourcebinding.karmada.io https://host:1/validate-resourcebinding [CREATE UPDATE] work.karmada.io/resourcebindings Namespaced",
		"agentwork.karmada.io https://host:1/validate-agent-work [CREATE UPDATE] work.karmada.io/works Namespaced",
		"agentevent.karmada.io https://host:1/validate-agent-work [CREATE UPDATE] /events Namespaced",
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Error(diff)
	}
}
