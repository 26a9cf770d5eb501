package components

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
)

// namespacePolicyName is the name of the admission policy and of its binding.
const namespacePolicyName = "namespaces.karmada.io"

// namespacePolicy refuses to delete namespaces without which clusters lose what runs in them or the access to them: the
// execution namespace of a cluster, which the controller of clusters labels while its Cluster exists, and those of the
// credentials and of the state of the control plane.
func namespacePolicy() []client.Object {
	meta := metav1.ObjectMeta{Name: namespacePolicyName, Labels: names.SystemLabels()}
	execution := `request.name.startsWith("` + names.ExecutionNamespace("") + `")`
	return []client.Object{
		&admissionregistrationv1.ValidatingAdmissionPolicy{
			ObjectMeta: meta,
			Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
				FailurePolicy: ptr.To(admissionregistrationv1.Fail),
				MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
					RuleWithOperations: admissionregistrationv1.RuleWithOperations{
						Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Delete},
						Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"*"}, Resources: []string{"namespaces"}},
					},
				}}},
				MatchConditions: []admissionregistrationv1.MatchCondition{{
					Name: "needed", Expression: execution + ` || request.name in ["` + clusterv1alpha1.NamespaceKarmadaSystem + `", "` + clusterv1alpha1.NamespaceKarmadaCluster + `"]`,
				}},
				Validations: []admissionregistrationv1.Validation{{
					Expression: execution + ` && !("` + clusterv1alpha1.ExecutionNamespaceLabel + `" in oldObject.metadata.?labels.orValue({}))`,
					MessageExpression: execution + ` ? "the namespace holds all that runs in cluster " + oldObject.metadata.?labels[?"` +
						clusterv1alpha1.ExecutionNamespaceLabel + `"].orValue("") + " and is deleted with it: use karmadactl unjoin or unregister"` +
						` : "the namespace holds the credentials of clusters or the state of the control plane"`,
					Message: "the namespace is needed by the control plane",
					Reason:  ptr.To(metav1.StatusReasonForbidden),
				}},
			},
		},
		&admissionregistrationv1.ValidatingAdmissionPolicyBinding{
			ObjectMeta: meta,
			Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName:        namespacePolicyName,
				ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
			},
		},
	}
}
