// Package v1alpha1 holds the work.karmada.io/v1alpha1 API: Work, the objects of
// one cluster, and the deprecated first version of the bindings.
//
// +k8s:deepcopy-gen=package,register
// +k8s:openapi-gen=true
// +groupName=work.karmada.io
package v1alpha1
