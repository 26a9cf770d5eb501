package components

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/pkg/apis/names"
)

// quantityPolicyName is the name of the admission policy and of its binding.
const quantityPolicyName = "quantities.karmada.io"

// quantityPolicy refuses quantities that every role would take minutes to decode, where users write a status: webhooks check
// the specs. The default role "edit" has the status of FederatedHPAs.
func quantityPolicy() []client.Object {
	meta := metav1.ObjectMeta{Name: quantityPolicyName, Labels: names.SystemLabels()}
	return []client.Object{
		&admissionregistrationv1.ValidatingAdmissionPolicy{
			ObjectMeta: meta,
			Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
				FailurePolicy: ptr.To(admissionregistrationv1.Fail),
				MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
					RuleWithOperations: admissionregistrationv1.RuleWithOperations{
						Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Update},
						Rule:       admissionregistrationv1.Rule{APIGroups: []string{groupAutoscaling}, APIVersions: []string{"*"}, Resources: []string{"federatedhpas/status"}},
					},
				}}},
				Validations: []admissionregistrationv1.Validation{{
					Expression: `object.?status.?currentMetrics.orValue([]).all(m,
  [dyn(m.?resource), dyn(m.?containerResource), dyn(m.?pods), dyn(m.?object), dyn(m.?external)].all(source,
    [dyn(source.?current.?value), dyn(source.?current.?averageValue)].all(q,
      !q.hasValue() || type(q.value()) != string || (size(q.value()) <= 64 && !q.value().matches("[eE][+-]?[0-9]{3,}")))))`,
					Message: "a quantity of status.currentMetrics is out of range: it may have 64 characters and an exponent of two digits",
				}},
			},
		},
		&admissionregistrationv1.ValidatingAdmissionPolicyBinding{
			ObjectMeta: meta,
			Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName:        quantityPolicyName,
				ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
			},
		},
	}
}
