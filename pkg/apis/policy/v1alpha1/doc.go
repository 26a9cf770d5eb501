// Package v1alpha1 holds the policy.karmada.io/v1alpha1 API: the propagation of
// objects to clusters (PropagationPolicy), changes of objects for some clusters
// (OverridePolicy), taints of clusters (ClusterTaintPolicy) and quotas of
// namespaces across clusters (FederatedResourceQuota).
//
// +k8s:deepcopy-gen=package,register
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=com.github.karmada-io.karmada.pkg.apis.policy.v1alpha1
// +groupName=policy.karmada.io
package v1alpha1
