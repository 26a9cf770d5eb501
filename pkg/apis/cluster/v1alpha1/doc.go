// Package v1alpha1 holds the cluster.karmada.io/v1alpha1 API: the member
// clusters. An aggregated API server serves it.
//
// +k8s:deepcopy-gen=package,register
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=com.github.karmada-io.karmada.pkg.apis.cluster.v1alpha1
// +groupName=cluster.karmada.io
package v1alpha1
