// Package v1alpha1 holds the apps.karmada.io/v1alpha1 API: the
// rebalancing of workloads.
//
// +k8s:deepcopy-gen=package,register
// +k8s:openapi-gen=true
// +groupName=apps.karmada.io
package v1alpha1
