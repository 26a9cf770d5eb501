// Package v1alpha1 holds the cluster.karmada.io/v1alpha1 API: the member
// clusters. An aggregated API server serves it.
//
// +k8s:deepcopy-gen=package,register
// +k8s:openapi-gen=true
// +groupName=cluster.karmada.io
package v1alpha1
