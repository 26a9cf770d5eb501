// Package v1alpha1 holds the policy.karmada.io/v1alpha1 API: which objects go to
// which clusters (PropagationPolicy), how they differ there (OverridePolicy),
// which taints clusters get (ClusterTaintPolicy) and how much a namespace may
// use across clusters (FederatedResourceQuota).
//
// +k8s:deepcopy-gen=package,register
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=com.github.karmada-io.karmada.pkg.apis.policy.v1alpha1
// +groupName=policy.karmada.io
package v1alpha1
