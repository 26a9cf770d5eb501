// Package v1alpha1 holds the config.karmada.io/v1alpha1 API: how users teach the
// control plane the meaning of their kinds.
//
// +k8s:deepcopy-gen=package,register
// +k8s:openapi-gen=true
// +groupName=config.karmada.io
package v1alpha1
