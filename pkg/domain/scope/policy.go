package scope

import policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"

// Policy is one of the two kinds of propagation policy.
type Policy struct {
	// Kind of the policy.
	Kind string
	// EventPrefix precedes the word policy in events.
	EventPrefix string
	// Namespaced is true for PropagationPolicies.
	Namespaced bool
	// Finalizer is kept on a policy until its templates are released.
	Finalizer string
	// IDLabel holds the permanent id, on the policy, its templates and their bindings.
	IDLabel string
	// NamespaceAnnotation and NameAnnotation name the policy on templates and
	// bindings. The former is empty for ClusterPropagationPolicies.
	NamespaceAnnotation, NameAnnotation string
	// Controller is the name of the controller.
	Controller string
	// New and NewList return empty objects.
	New     func() policyv1alpha1.Policy
	NewList func() policyv1alpha1.PolicyList
	// NewOverride returns an empty override policy of the same scope.
	NewOverride func() policyv1alpha1.OverridePolicyObject
}

// Policies returns both kinds of policy. A PropagationPolicy has precedence over a
// ClusterPropagationPolicy.
func Policies() []*Policy { return []*Policy{NamespacedPolicy(), ClusterPolicy()} }

// NamespacedPolicy is the scope of PropagationPolicies.
func NamespacedPolicy() *Policy {
	return &Policy{
		Kind: "PropagationPolicy", Namespaced: true, Controller: "propagation-policy-controller",
		Finalizer:           policyv1alpha1.PropagationPolicyFinalizer,
		IDLabel:             policyv1alpha1.PropagationPolicyPermanentIDLabel,
		NamespaceAnnotation: policyv1alpha1.PropagationPolicyNamespaceAnnotation,
		NameAnnotation:      policyv1alpha1.PropagationPolicyNameAnnotation,
		New:                 func() policyv1alpha1.Policy { return &policyv1alpha1.PropagationPolicy{} },
		NewList:             func() policyv1alpha1.PolicyList { return &policyv1alpha1.PropagationPolicyList{} },
		NewOverride:         func() policyv1alpha1.OverridePolicyObject { return &policyv1alpha1.OverridePolicy{} },
	}
}

// ClusterPolicy is the scope of ClusterPropagationPolicies.
func ClusterPolicy() *Policy {
	return &Policy{
		Kind: "ClusterPropagationPolicy", EventPrefix: "cluster ", Controller: "cluster-propagation-policy-controller",
		Finalizer:      policyv1alpha1.ClusterPropagationPolicyFinalizer,
		IDLabel:        policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel,
		NameAnnotation: policyv1alpha1.ClusterPropagationPolicyAnnotation,
		New:            func() policyv1alpha1.Policy { return &policyv1alpha1.ClusterPropagationPolicy{} },
		NewList:        func() policyv1alpha1.PolicyList { return &policyv1alpha1.ClusterPropagationPolicyList{} },
		NewOverride:    func() policyv1alpha1.OverridePolicyObject { return &policyv1alpha1.ClusterOverridePolicy{} },
	}
}

// PolicyOf returns the scope of a policy.
func PolicyOf(p policyv1alpha1.Policy) *Policy {
	if _, ok := p.(*policyv1alpha1.ClusterPropagationPolicy); ok {
		return ClusterPolicy()
	}
	return NamespacedPolicy()
}
