// Package v1alpha1 holds the multicluster.x-k8s.io/v1alpha1 API: the
// services exported from and imported into clusters, as the Multi-Cluster
// Services API defines them.
//
// +k8s:deepcopy-gen=package,register
// +k8s:openapi-gen=true
// +groupName=multicluster.x-k8s.io
package v1alpha1
