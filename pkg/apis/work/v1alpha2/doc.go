// Package v1alpha2 holds the work.karmada.io/v1alpha2 API: the bindings of
// templates to clusters. It is the stored version.
//
// +k8s:deepcopy-gen=package,register
// +k8s:openapi-gen=true
// +groupName=work.karmada.io
package v1alpha2
