// Package v1alpha2 holds the work.karmada.io/v1alpha2 API: the bindings of
// templates to clusters. It is the stored version.
//
// +k8s:deepcopy-gen=package,register
// +k8s:openapi-gen=true
// +groupName=work.karmada.io
package v1alpha2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the name of the API group.
const GroupName = "work.karmada.io"

var (
	// GroupVersion is the group and version of this package.
	GroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1alpha2"}
	// SchemeGroupVersion is GroupVersion, by the name that generated clients use.
	SchemeGroupVersion = GroupVersion
	// SchemeBuilder collects the functions that add the types to a scheme.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)
	// AddToScheme adds the types of this package to a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

// Resource returns the GroupResource of a resource of this group.
func Resource(resource string) schema.GroupResource {
	return GroupVersion.WithResource(resource).GroupResource()
}

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&ClusterResourceBinding{}, &ClusterResourceBindingList{},
		&ResourceBinding{}, &ResourceBindingList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
