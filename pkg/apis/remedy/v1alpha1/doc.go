// Package v1alpha1 holds the remedy.karmada.io/v1alpha1 API: actions on clusters
// depending on their conditions.
//
// +k8s:deepcopy-gen=package,register
// +k8s:openapi-gen=true
// +groupName=remedy.karmada.io
package v1alpha1
