package components

import (
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	"github.com/karmada-toolkit/karmada/pkg/member/registration"
)

const (
	// WebhookClient is the certificate by which the webhook server recognizes the API
	// server.
	WebhookClient = "apiserver-webhook-client"

	// AdmissionConfigFlag is the API server's flag that names the file.
	AdmissionConfigFlag = "--admission-control-config-file"
	// AdmissionConfigKey is the file name of the AdmissionConfiguration.
	AdmissionConfigKey = "admission.yaml"
	// AdmissionKubeconfigKey is the file name of the kubeconfig that it names.
	AdmissionKubeconfigKey = "webhooks.kubeconfig"

	admissionSecret = "karmada-apiserver-admission"
	admissionDir    = "/etc/karmada/admission"
)

// AdmissionConfiguration returns the file for the API server's flag
// --admission-control-config-file by which it identifies itself to the servers of
// admission webhooks with the users of a kubeconfig.
func AdmissionConfiguration(kubeconfig string) []byte {
	const plugin = `- name: %s
  configuration:
    apiVersion: apiserver.config.k8s.io/v1
    kind: WebhookAdmissionConfiguration
    kubeConfigFile: %q
`
	var text strings.Builder
	text.WriteString("apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n")
	for _, name := range []string{"MutatingAdmissionWebhook", "ValidatingAdmissionWebhook"} {
		fmt.Fprintf(&text, plugin, name, kubeconfig)
	}
	return []byte(text.String())
}

// AdmissionKubeconfig returns the kubeconfig of the AdmissionConfiguration: the
// client certificate and key, PEM, for the webhook server at host, which is
// HOST:PORT, HOST for port 443, or "*" for every server. Servers of other webhooks
// are presented none.
func AdmissionKubeconfig(host string, certificate, key []byte) ([]byte, error) {
	config := clientcmdapi.NewConfig()
	config.AuthInfos[host] = &clientcmdapi.AuthInfo{ClientCertificateData: certificate, ClientKeyData: key}
	out, err := clientcmd.Write(*config)
	if err != nil {
		return nil, fmt.Errorf("encoding the kubeconfig for webhooks at %s: %w", host, err)
	}
	return out, nil
}

// quantityPolicyName is the name of the admission policy and of its binding.
const quantityPolicyName = "quantities.karmada.io"

// quantityPolicy refuses quantities that every role would take minutes to decode, where users write a status: webhooks check
// the specs. The default role "edit" has the status of FederatedHPAs.
func quantityPolicy() []client.Object {
	return registration.AdmissionPolicy(quantityPolicyName, admissionregistrationv1.Deny, admissionregistrationv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{
			registration.Admitted(groupAutoscaling, "federatedhpas/status", admissionregistrationv1.Update),
		}},
		Validations: []admissionregistrationv1.Validation{{
			Expression: `object.?status.?currentMetrics.orValue([]).all(m,
  [dyn(m.?resource), dyn(m.?containerResource), dyn(m.?pods), dyn(m.?object), dyn(m.?external)].all(source,
    [dyn(source.?current.?value), dyn(source.?current.?averageValue)].all(q,
      !q.hasValue() || type(q.value()) != string || (size(q.value()) <= 64 && !q.value().matches("[eE][+-]?[0-9]{3,}")))))`,
			Message: "a quantity of status.currentMetrics is out of range: it may have 64 characters and an exponent of two digits",
		}},
	})
}

// namespacePolicyName is the name of the admission policy and of its binding.
const namespacePolicyName = "namespaces.karmada.io"

// namespacePolicy refuses to delete namespaces without which clusters lose what runs in them or the access to them: the
// execution namespace of a cluster, which the controller of clusters labels while its Cluster exists, and those of the
// credentials and of the state of the control plane.
func namespacePolicy() []client.Object {
	execution := `request.name.startsWith("` + names.ExecutionNamespace("") + `")`
	return registration.AdmissionPolicy(namespacePolicyName, admissionregistrationv1.Deny, admissionregistrationv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{
			registration.Admitted("", "namespaces", admissionregistrationv1.Delete),
		}},
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
	})
}

// fieldsPolicyName is the name of the admission policy and of its binding.
const fieldsPolicyName = "managedfields.karmada.io"

// fieldsPolicy removes the managed fields of bindings and Works that controllers create. The API server then keeps none with later
// writes, until a user changes such an object with server-side apply: to keep them is a large part of what a write costs, and they are
// almost half of what is stored.
func fieldsPolicy() []client.Object {
	meta := metav1.ObjectMeta{Name: fieldsPolicyName, Labels: names.SystemLabels()}
	return []client.Object{
		&admissionregistrationv1.MutatingAdmissionPolicy{
			ObjectMeta: meta,
			Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
				FailurePolicy: ptr.To(admissionregistrationv1.Ignore),
				MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{
					registration.Admitted(groupWork, "works", admissionregistrationv1.Create),
					registration.Admitted(groupWork, "resourcebindings", admissionregistrationv1.Create),
					registration.Admitted(groupWork, "clusterresourcebindings", admissionregistrationv1.Create),
				}},
				MatchConditions: []admissionregistrationv1.MatchCondition{{
					Name:       "controllers",
					Expression: fmt.Sprintf("request.userInfo.username in [%q, %q] && has(object.metadata.managedFields)", UserOf(ControllerManager), UserOf(AllInOne)),
				}},
				Mutations: []admissionregistrationv1.Mutation{{
					PatchType: admissionregistrationv1.PatchTypeJSONPatch,
					JSONPatch: &admissionregistrationv1.JSONPatch{Expression: `[JSONPatch{op: "remove", path: "/metadata/managedFields"}]`},
				}},
				ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy,
			},
		},
		&admissionregistrationv1.MutatingAdmissionPolicyBinding{
			ObjectMeta: meta, Spec: admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: fieldsPolicyName},
		},
	}
}
