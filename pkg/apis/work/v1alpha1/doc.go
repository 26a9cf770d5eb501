// Package v1alpha1 holds the work.karmada.io/v1alpha1 API: Work, which is what
// one cluster gets, and the deprecated first version of the bindings.
//
// +k8s:deepcopy-gen=package,register
// +k8s:openapi-gen=true
// +groupName=work.karmada.io
package v1alpha1
