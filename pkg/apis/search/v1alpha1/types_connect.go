package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Search is the kind of the resource "search", which serves cached objects. It has no content.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Search struct {
	metav1.TypeMeta `json:",inline"`
}

// Proxying is the kind of the resource "proxying", which serves all members as one cluster. It has no content.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Proxying struct {
	metav1.TypeMeta `json:",inline"`
}
