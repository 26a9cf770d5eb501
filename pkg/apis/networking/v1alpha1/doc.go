// Package v1alpha1 holds the networking.karmada.io/v1alpha1 API: services and
// ingresses that span clusters.
//
// +k8s:deepcopy-gen=package,register
// +k8s:openapi-gen=true
// +groupName=networking.karmada.io
package v1alpha1
