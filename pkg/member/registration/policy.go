package registration

import (
	"slices"
	"strconv"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
)

// agentPolicyName is the name of the admission policy and of its binding.
const agentPolicyName = "agents.karmada.io"

// maxAgentRequest is the longest certificate request of an agent, in bytes.
const maxAgentRequest = 16 << 10

// agentPolicy keeps agents to objects of their own where roles cannot: a role
// cannot say under which name an object may be created.
func agentPolicy() []client.Object {
	return AdmissionPolicy(agentPolicyName, admissionregistrationv1.Deny, admissionregistrationv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{
			Admitted("", "secrets", admissionregistrationv1.Create, admissionregistrationv1.Update),
			Admitted(coordinationv1.GroupName, "leases", admissionregistrationv1.Create, admissionregistrationv1.Update),
			Admitted("", "events", admissionregistrationv1.Create, admissionregistrationv1.Update),
			Admitted(eventsv1.GroupName, "events", admissionregistrationv1.Create, admissionregistrationv1.Update),
			Admitted("", "configmaps", admissionregistrationv1.Create, admissionregistrationv1.Update),
			Admitted(certificatesv1.GroupName, "certificatesigningrequests", admissionregistrationv1.Create),
			Admitted(workv1alpha1.GroupName, "works", admissionregistrationv1.Create, admissionregistrationv1.Update),
		}},
		MatchConditions: []admissionregistrationv1.MatchCondition{{
			Name: "agent", Expression: IsAgentExpression(),
		}},
		Variables: append([]admissionregistrationv1.Variable{
			{Name: "cluster", Expression: `request.userInfo.username.startsWith("` + names.AgentUser("") + `") ? request.userInfo.username.substring(` + strconv.Itoa(len(names.AgentUser(""))) + `) : ""`},
			{Name: "home", Expression: `request.namespace == "` + names.ExecutionNamespace("") + `" + variables.cluster`},
		}, metadataVariables()...),
		Validations: slices.Concat([]admissionregistrationv1.Validation{
			forbid(`request.resource.resource != "secrets" || (object.type == "Opaque" && object.metadata.name in [variables.cluster, variables.cluster + "`+names.ImpersonatorSecret("")+`"])`,
				"an agent may write only the two Secrets of its own cluster"),
			forbid(`request.resource.resource != "leases" || object.metadata.name == (request.namespace == "karmada-system" ? "`+names.AgentLease("")+`" + variables.cluster : variables.cluster)`,
				"an agent may create only the leases of its own cluster"),
			forbid(`request.resource.resource != "events" || variables.home || `+aboutOwn("object")+` && (request.operation == "CREATE" || `+aboutOwn("oldObject")+`)`,
				"an agent may report events of its own cluster only"),
			forbid(`request.resource.resource != "certificatesigningrequests" || object.spec.signerName == "kubernetes.io/kube-apiserver-client" && size(object.spec.request) <= `+strconv.Itoa(maxAgentRequest),
				"an agent may ask only for client certificates, in small requests"),
		}, metadataRules(), workRules()),
	})
}

// AdmissionPolicy returns an admission policy and the binding of the same name by which it takes effect. A policy that cannot be
// evaluated denies requests as well, unless its action is to warn.
func AdmissionPolicy(name string, action admissionregistrationv1.ValidationAction, spec admissionregistrationv1.ValidatingAdmissionPolicySpec) []client.Object {
	meta := metav1.ObjectMeta{Name: name, Labels: names.SystemLabels()}
	spec.FailurePolicy = ptr.To(admissionregistrationv1.Fail)
	if action == admissionregistrationv1.Warn {
		spec.FailurePolicy = ptr.To(admissionregistrationv1.Ignore)
	}
	return []client.Object{
		&admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: meta, Spec: spec},
		&admissionregistrationv1.ValidatingAdmissionPolicyBinding{
			ObjectMeta: meta,
			Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName:        name,
				ValidationActions: []admissionregistrationv1.ValidationAction{action},
			},
		},
	}
}

// IsAgentExpression returns a CEL expression of admission that reports whether the
// user of the request is an agent.
func IsAgentExpression() string {
	return `"` + names.AgentGroup + `" in request.userInfo.groups || request.userInfo.username.startsWith("` + names.AgentUser("") + `")`
}

// aboutOwn says in CEL that an event is about the agent's cluster or its lease.
func aboutOwn(event string) string {
	// The two APIs of events call it differently.
	field := func(name string) string {
		return "(" + event + `.?involvedObject.?` + name + `.orValue("") + ` + event + `.?regarding.?` + name + `.orValue(""))`
	}
	is := func(kind, name string) string {
		return "(" + field("kind") + ` == "` + kind + `" && ` + field("name") + " == " + name + ")"
	}
	return "(" + is("Cluster", "variables.cluster") + " || " + is("Lease", `"`+names.AgentLease("")+`" + variables.cluster`) + ")"
}

// Admitted selects operations on a resource of an API group, in all versions.
func Admitted(group, resource string, operations ...admissionregistrationv1.OperationType) admissionregistrationv1.NamedRuleWithOperations {
	return admissionregistrationv1.NamedRuleWithOperations{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
		Operations: operations,
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: []string{resource}},
	}}
}

func forbid(unless, message string) admissionregistrationv1.Validation {
	return admissionregistrationv1.Validation{Expression: unless, Message: message, Reason: ptr.To(metav1.StatusReasonForbidden)}
}
