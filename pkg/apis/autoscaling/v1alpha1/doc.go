// Package v1alpha1 holds the autoscaling.karmada.io/v1alpha1 API: the
// scaling of workloads over clusters, by metrics and by time.
//
// +k8s:deepcopy-gen=package,register
// +k8s:openapi-gen=true
// +groupName=autoscaling.karmada.io
package v1alpha1
