package components

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/apply"
	"github.com/karmada-toolkit/karmada/internal/unbuilt"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
)

// unbuiltPrefix begins the names of the policies that warn of kinds without effect.
const unbuiltPrefix = "no-effect-"

// PrunedWebhookConfigurations are the families of objects of WebhookConfigurations that are deleted when they are not
// wanted any more: an earlier version warned of a kind that has an effect now.
func PrunedWebhookConfigurations() []apply.Family {
	return []apply.Family{
		{List: &admissionregistrationv1.ValidatingAdmissionPolicyBindingList{}, Labels: names.SystemLabels(), Prefix: unbuiltPrefix},
		{List: &admissionregistrationv1.ValidatingAdmissionPolicyList{}, Labels: names.SystemLabels(), Prefix: unbuiltPrefix},
	}
}

// unbuiltPolicies warn of objects that have no effect by default, for kinds that no webhook
// is for: a policy and its binding for each kind. They refuse nothing.
func unbuiltPolicies() []client.Object {
	var out []client.Object
	for _, kind := range unbuilt.Kinds() {
		if kind.Webhook {
			continue
		}
		meta := metav1.ObjectMeta{Name: unbuiltPrefix + kind.Resource + "." + kind.Group, Labels: names.SystemLabels()}
		out = append(out, &admissionregistrationv1.ValidatingAdmissionPolicy{
			ObjectMeta: meta,
			Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
				FailurePolicy: ptr.To(admissionregistrationv1.Ignore),
				MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
					RuleWithOperations: admissionregistrationv1.RuleWithOperations{
						Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
						Rule:       admissionregistrationv1.Rule{APIGroups: []string{kind.Group}, APIVersions: []string{"*"}, Resources: []string{kind.Resource}},
					},
				}}},
				Validations: []admissionregistrationv1.Validation{{Expression: "false", Message: unbuilt.Warnings(kind.Kind)[0]}},
			},
		}, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
			ObjectMeta: meta,
			Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName:        meta.Name,
				ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Warn},
			},
		})
	}
	return out
}
