// Package v1alpha1 holds the operator.karmada.io/v1alpha1 API: control planes that
// karmada-operator installs in a host cluster.
//
// +k8s:deepcopy-gen=package,register
// +k8s:openapi-gen=true
// +groupName=operator.karmada.io
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the name of the API group.
const GroupName = "operator.karmada.io"

var (
	// GroupVersion is the group and version of this package.
	GroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1alpha1"}
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
		&Karmada{}, &KarmadaList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
