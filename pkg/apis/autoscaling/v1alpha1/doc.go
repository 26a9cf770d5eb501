// Package v1alpha1 holds the autoscaling.karmada.io/v1alpha1 API: the scaling of
// workloads across clusters, by metrics and on a schedule.
//
// +k8s:deepcopy-gen=package,register
// +k8s:openapi-gen=true
// +groupName=autoscaling.karmada.io
package v1alpha1
