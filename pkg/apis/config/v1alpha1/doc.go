// Package v1alpha1 holds the config.karmada.io/v1alpha1 API: the interpretation
// of custom kinds, by Lua scripts or webhooks.
//
// +k8s:deepcopy-gen=package,register
// +k8s:openapi-gen=true
// +groupName=config.karmada.io
package v1alpha1
