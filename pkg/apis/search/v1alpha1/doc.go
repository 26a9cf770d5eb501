// Package v1alpha1 holds the search.karmada.io/v1alpha1 API: the objects of
// member clusters that the search component caches.
//
// +k8s:deepcopy-gen=package,register
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=com.github.karmada-io.karmada.pkg.apis.search.v1alpha1
// +groupName=search.karmada.io
package v1alpha1
