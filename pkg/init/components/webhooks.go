package components

import (
	"cmp"
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/member/registration"
)

// Names of the webhook configurations.
const (
	MutatingWebhooksName   = names.MutatingWebhooks
	ValidatingWebhooksName = names.ValidatingWebhooks
)

// Groups of the kinds that are admitted.
const (
	groupAutoscaling = "autoscaling.karmada.io"
	groupConfig      = "config.karmada.io"
	groupNetworking  = "networking.karmada.io"
	groupPolicy      = "policy.karmada.io"
	groupWork        = "work.karmada.io"
)

// hook is a row of the table of webhooks. What is empty takes the usual value.
type hook struct {
	name, path, group, resource string

	operations  []admissionregistrationv1.OperationType // create and update
	scope       admissionregistrationv1.ScopeType       // Namespaced
	timeout     int32                                   // 3 seconds
	sideEffects admissionregistrationv1.SideEffectClass // None
	needsLabel  string                                  // objects with any value of the label; all
	subresource string                                  // none, beside the resource itself
	agentsOnly  bool                                    // requests of everybody
	optional    bool                                    // requests fail when the webhook does not answer
	idLabel     string                                  // requests of everybody; else not those of controllers for objects with the label
	reads       []string                                // all updates; else those of the spec and of these labels and annotations
}

const clusterScope = admissionregistrationv1.ClusterScope

func mutatingHooks() []hook {
	create := []admissionregistrationv1.OperationType{admissionregistrationv1.Create}
	return []hook{
		{name: "propagationpolicy", path: "/mutate-propagationpolicy", group: groupPolicy, resource: "propagationpolicies"},
		{name: "clusterpropagationpolicy", path: "/mutate-clusterpropagationpolicy", group: groupPolicy, resource: "clusterpropagationpolicies", scope: clusterScope},
		{name: "overridepolicy", path: "/mutate-overridepolicy", group: groupPolicy, resource: "overridepolicies"},
		{name: "resourcebinding", path: "/mutate-resourcebinding", group: groupWork, resource: "resourcebindings", operations: create, idLabel: workv1alpha2.ResourceBindingPermanentIDLabel},
		{name: "clusterresourcebinding", path: "/mutate-clusterresourcebinding", group: groupWork, resource: "clusterresourcebindings", operations: create, scope: clusterScope, idLabel: workv1alpha2.ClusterResourceBindingPermanentIDLabel},
		{name: "work", path: "/mutate-work", group: groupWork, resource: "works", idLabel: workv1alpha2.WorkPermanentIDLabel},
		{name: "autoscaling", path: "/mutate-federatedhpa", group: groupAutoscaling, resource: "federatedhpas"},
		{name: "multiclusterservice", path: "/mutate-multiclusterservice", group: groupNetworking, resource: "multiclusterservices"},
	}
}

func validatingHooks() []hook {
	return []hook{
		{name: "propagationpolicy", path: "/validate-propagationpolicy", group: groupPolicy, resource: "propagationpolicies"},
		{name: "clusterpropagationpolicy", path: "/validate-clusterpropagationpolicy", group: groupPolicy, resource: "clusterpropagationpolicies", scope: clusterScope},
		{name: "overridepolicy", path: "/validate-overridepolicy", group: groupPolicy, resource: "overridepolicies"},
		{name: "clusteroverridepolicy", path: "/validate-clusteroverridepolicy", group: groupPolicy, resource: "clusteroverridepolicies", scope: clusterScope},
		{name: "config", path: "/validate-resourceinterpreterwebhookconfiguration", group: groupConfig, resource: "resourceinterpreterwebhookconfigurations", scope: clusterScope},
		{name: "resourceinterpretercustomization", path: "/validate-resourceinterpretercustomization", group: groupConfig, resource: "resourceinterpretercustomizations", scope: clusterScope, timeout: 10},
		{name: "federatedresourcequota", path: "/validate-federatedresourcequota", group: groupPolicy, resource: "federatedresourcequotas"},
		{name: "multiclusteringress", path: "/validate-multiclusteringress", group: groupNetworking, resource: "multiclusteringresses"},
		{name: "federatedhpa", path: "/validate-federatedhpa", group: groupAutoscaling, resource: "federatedhpas"},
		{name: "cronfederatedhpa", path: "/validate-cronfederatedhpa", group: groupAutoscaling, resource: "cronfederatedhpas"},
		{name: "multiclusterservice", path: "/validate-multiclusterservice", group: groupNetworking, resource: "multiclusterservices"},
		{
			name: "resourcedeletionprotection", path: "/validate-resourcedeletionprotection", group: "*", resource: "*",
			operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Delete},
			scope:      admissionregistrationv1.AllScopes, needsLabel: "resourcetemplate.karmada.io/deletion-protected",
		},
		{
			name: "resourcebinding", path: "/validate-resourcebinding", group: groupWork, resource: "resourcebindings",
			sideEffects: admissionregistrationv1.SideEffectClassNoneOnDryRun,
			reads: []string{
				fmt.Sprintf("labels[?%q]", workv1alpha2.ResourceBindingPermanentIDLabel),
				fmt.Sprintf("annotations[?%q]", workv1alpha2.BindingDependenciesAnnotation),
			},
		},
		{
			// A limit of load: agents go on to report while the webhook is away.
			name: "agentwork", path: "/validate-agent-work", group: groupWork, resource: "works", subresource: "status", agentsOnly: true, optional: true,
		},
		{name: "agentevent", path: "/validate-agent-work", resource: "events", agentsOnly: true, optional: true},
	}
}

// MutatingWebhooks returns the registration of the mutating webhooks served at
// baseURL (https://host:port) with a certificate of the CA bundle.
func MutatingWebhooks(baseURL string, caBundle []byte) *admissionregistrationv1.MutatingWebhookConfiguration {
	out := &admissionregistrationv1.MutatingWebhookConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "MutatingWebhookConfiguration"},
		ObjectMeta: webhookMeta(MutatingWebhooksName),
	}
	for _, h := range mutatingHooks() {
		out.Webhooks = append(out.Webhooks, admissionregistrationv1.MutatingWebhook{
			Name: h.fullName(), ClientConfig: h.client(baseURL, caBundle), Rules: h.rules(), FailurePolicy: h.failurePolicy(),
			ObjectSelector: h.selector(), SideEffects: h.effects(), TimeoutSeconds: h.seconds(), AdmissionReviewVersions: reviewVersions(),
			MatchConditions: h.conditions(),
		})
	}
	return out
}

// ValidatingWebhooks returns the registration of the validating webhooks served
// at baseURL (https://host:port) with a certificate of the CA bundle.
func ValidatingWebhooks(baseURL string, caBundle []byte) *admissionregistrationv1.ValidatingWebhookConfiguration {
	out := &admissionregistrationv1.ValidatingWebhookConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "ValidatingWebhookConfiguration"},
		ObjectMeta: webhookMeta(ValidatingWebhooksName),
	}
	for _, h := range validatingHooks() {
		out.Webhooks = append(out.Webhooks, admissionregistrationv1.ValidatingWebhook{
			Name: h.fullName(), ClientConfig: h.client(baseURL, caBundle), Rules: h.rules(), FailurePolicy: h.failurePolicy(),
			ObjectSelector: h.selector(), SideEffects: h.effects(), TimeoutSeconds: h.seconds(), AdmissionReviewVersions: reviewVersions(),
			MatchConditions: h.conditions(),
		})
	}
	return out
}

func webhookMeta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "karmada-webhook"}}
}

func (h hook) failurePolicy() *admissionregistrationv1.FailurePolicyType {
	if h.optional {
		return new(admissionregistrationv1.Ignore)
	}
	return new(admissionregistrationv1.Fail)
}

func (h hook) conditions() []admissionregistrationv1.MatchCondition {
	switch {
	case h.agentsOnly:
		return []admissionregistrationv1.MatchCondition{{Name: "agent", Expression: registration.IsAgentExpression()}}
	case h.idLabel != "":
		// Controllers write what the webhook would not change, and they write most.
		return []admissionregistrationv1.MatchCondition{{Name: "incomplete", Expression: fmt.Sprintf(
			`!(request.userInfo.username in [%q, %q] && has(object.metadata.labels) && %q in object.metadata.labels)`,
			UserOf(ControllerManager), UserOf(AllInOne), h.idLabel)}}
	case h.reads != nil:
		// The generation changes with the spec. To compare specs would cost more than the API server allows for large ones.
		changed := []string{"oldObject == null", "object.metadata.generation != oldObject.metadata.generation"}
		for _, field := range h.reads {
			changed = append(changed, fmt.Sprintf(`object.metadata.?%[1]s.orValue("") != oldObject.metadata.?%[1]s.orValue("")`, field))
		}
		return []admissionregistrationv1.MatchCondition{{Name: "changed", Expression: strings.Join(changed, " || ")}}
	}
	return nil
}

func reviewVersions() []string { return []string{"v1"} }

func (h hook) fullName() string { return h.name + ".karmada.io" }

func (h hook) client(baseURL string, caBundle []byte) admissionregistrationv1.WebhookClientConfig {
	return admissionregistrationv1.WebhookClientConfig{URL: new(strings.TrimSuffix(baseURL, "/") + h.path), CABundle: caBundle}
}

func (h hook) rules() []admissionregistrationv1.RuleWithOperations {
	operations, scope := h.operations, cmp.Or(h.scope, admissionregistrationv1.NamespacedScope)
	if operations == nil {
		operations = []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update}
	}
	resources := []string{h.resource}
	if h.subresource != "" {
		resources = append(resources, h.resource+"/"+h.subresource)
	}
	return []admissionregistrationv1.RuleWithOperations{{
		Operations: operations,
		Rule: admissionregistrationv1.Rule{
			APIGroups: []string{h.group}, APIVersions: []string{"*"}, Resources: resources, Scope: &scope,
		},
	}}
}

func (h hook) selector() *metav1.LabelSelector {
	if h.needsLabel == "" {
		return nil
	}
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: h.needsLabel, Operator: metav1.LabelSelectorOpExists},
	}}
}

func (h hook) effects() *admissionregistrationv1.SideEffectClass {
	if h.sideEffects == "" {
		return new(admissionregistrationv1.SideEffectClassNone)
	}
	return &h.sideEffects
}

func (h hook) seconds() *int32 {
	if h.timeout == 0 {
		return new(int32(3))
	}
	return &h.timeout
}
