package components

import (
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/karmada-toolkit/karmada/internal/unbuilt"
)

// TestWebhookConfigurations_WarnOfEveryUnbuiltKind checks that each kind without a
// controller is warned of: by a webhook that is registered, or by a policy.
func TestWebhookConfigurations_WarnOfEveryUnbuiltKind(t *testing.T) {
	warned := map[string]bool{}
	for _, o := range WebhookConfigurations("https://h:1", nil) {
		switch o := o.(type) {
		case *admissionregistrationv1.ValidatingWebhookConfiguration:
			for i := range o.Webhooks {
				for _, rule := range o.Webhooks[i].Rules {
					warned[strings.Join(rule.Resources, ",")] = true
				}
			}
		case *admissionregistrationv1.ValidatingAdmissionPolicyBinding:
			if len(o.Spec.ValidationActions) != 1 || o.Spec.ValidationActions[0] != admissionregistrationv1.Warn {
				t.Errorf("%s does not only warn: %v", o.Name, o.Spec.ValidationActions)
			}
			resource, _, _ := strings.Cut(strings.TrimPrefix(o.Spec.PolicyName, "no-effect-"), ".")
			warned[resource] = true
		}
	}
	for _, kind := range unbuilt.Kinds() {
		if !warned[kind.Resource] {
			t.Errorf("nothing warns of %s", kind.Kind)
		}
	}
}
