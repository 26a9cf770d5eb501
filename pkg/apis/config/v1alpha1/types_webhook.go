package v1alpha1

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ResourceInterpreterWebhookConfiguration registers webhooks that interpret
// custom kinds.
//
// +genclient
// +genclient:nonNamespaced
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=resourceinterpreterwebhookconfigurations,scope="Cluster",categories={karmada-io}
// +kubebuilder:storageversion
type ResourceInterpreterWebhookConfiguration struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Webhooks are the webhooks, each with the kinds and operations it serves.
	// +required
	Webhooks []ResourceInterpreterWebhook `json:"webhooks"`
}

// ResourceInterpreterWebhookConfigurationList is a list of
// ResourceInterpreterWebhookConfiguration.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type ResourceInterpreterWebhookConfigurationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ResourceInterpreterWebhookConfiguration `json:"items"`
}

// ResourceInterpreterWebhook is one webhook.
type ResourceInterpreterWebhook struct {
	// Name of the webhook, a fully qualified domain name.
	// +required
	Name string `json:"name"`

	// ClientConfig defines how to connect to the webhook.
	// +required
	ClientConfig admissionregistrationv1.WebhookClientConfig `json:"clientConfig"`

	// Rules are the operations and kinds that the webhook serves.
	// +optional
	Rules []RuleWithOperations `json:"rules,omitempty"`

	// TimeoutSeconds is the timeout of a call, 1 to 30 seconds. Default 10.
	// +optional
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`

	// InterpreterContextVersions are the versions of ResourceInterpreterContext that
	// the webhook supports, in order of preference.
	// +required
	InterpreterContextVersions []string `json:"interpreterContextVersions"`
}

// RuleWithOperations is a set of operations on a set of kinds.
type RuleWithOperations struct {
	// Operations, or "*" alone.
	// +required
	Operations []InterpreterOperation `json:"operations"`

	Rule `json:",inline"`
}

// Rule is a set of kinds.
type Rule struct {
	// APIGroups, or "*" alone.
	// +required
	APIGroups []string `json:"apiGroups"`

	// APIVersions, or "*" alone.
	// +required
	APIVersions []string `json:"apiVersions"`

	// Kinds, or "*" alone.
	// +required
	Kinds []string `json:"kinds"`
}
