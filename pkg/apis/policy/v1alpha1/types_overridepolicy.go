package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OverridePolicy changes objects of its namespace for some clusters.
//
// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=overridepolicies,scope=Namespaced,shortName=op,categories={karmada-io}
type OverridePolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec selects the objects and the clusters, and defines the changes.
	// +required
	Spec OverrideSpec `json:"spec"`
}

// OverridePolicyList is a list of OverridePolicy.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type OverridePolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []OverridePolicy `json:"items"`
}

// ClusterOverridePolicy changes objects of any scope and namespace for some
// clusters.
//
// +genclient
// +genclient:nonNamespaced
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=clusteroverridepolicies,scope="Cluster",shortName=cop,categories={karmada-io}
type ClusterOverridePolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec selects the objects and the clusters, and defines the changes.
	// +required
	Spec OverrideSpec `json:"spec"`
}

// ClusterOverridePolicyList is a list of ClusterOverridePolicy.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type ClusterOverridePolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterOverridePolicy `json:"items"`
}

// OverrideSpec is the spec of both kinds of override policy.
type OverrideSpec struct {
	// ResourceSelectors select the objects. Nil selects every object in the scope of
	// the policy.
	// +optional
	ResourceSelectors []ResourceSelector `json:"resourceSelectors,omitempty"`

	// OverrideRules are applied in order. They cannot be combined with
	// TargetCluster or Overriders.
	// +optional
	OverrideRules []RuleWithCluster `json:"overrideRules,omitempty"`

	// TargetCluster is deprecated; use OverrideRules. It selects the clusters for
	// Overriders.
	// +optional
	TargetCluster *ClusterAffinity `json:"targetCluster,omitempty"`

	// Overriders is deprecated; use OverrideRules.
	// +optional
	Overriders Overriders `json:"overriders,omitempty"`
}

// RuleWithCluster is a set of changes for some clusters.
type RuleWithCluster struct {
	// TargetCluster selects the clusters. Nil selects all.
	// +optional
	TargetCluster *ClusterAffinity `json:"targetCluster,omitempty"`

	// Overriders are the changes.
	// +required
	Overriders Overriders `json:"overriders"`
}

// Overriders are changes to an object. They are applied in the order image,
// command, args, labels, annotations, field, plaintext; each list in order.
type Overriders struct {
	// Plaintext changes any part of the object by JSON pointer.
	// +optional
	Plaintext []PlaintextOverrider `json:"plaintext,omitempty"`

	// ImageOverrider changes parts of image references.
	// +optional
	ImageOverrider []ImageOverrider `json:"imageOverrider,omitempty"`

	// CommandOverrider changes the command of containers.
	// +optional
	CommandOverrider []CommandArgsOverrider `json:"commandOverrider,omitempty"`

	// ArgsOverrider changes the arguments of containers.
	// +optional
	ArgsOverrider []CommandArgsOverrider `json:"argsOverrider,omitempty"`

	// LabelsOverrider changes the labels of the object.
	// +optional
	LabelsOverrider []LabelAnnotationOverrider `json:"labelsOverrider,omitempty"`

	// AnnotationsOverrider changes the annotations of the object.
	// +optional
	AnnotationsOverrider []LabelAnnotationOverrider `json:"annotationsOverrider,omitempty"`

	// FieldOverrider changes JSON or YAML text inside a string field.
	// +optional
	FieldOverrider []FieldOverrider `json:"fieldOverrider,omitempty"`
}

// LabelAnnotationOverrider changes labels or annotations.
type LabelAnnotationOverrider struct {
	// Operator is add (sets the keys), replace or remove (only keys that exist).
	// +kubebuilder:validation:Enum=add;remove;replace
	// +required
	Operator OverriderOperator `json:"operator"`

	// Value holds keys and values; remove uses only the keys.
	// +required
	Value map[string]string `json:"value,omitempty"`
}

// ImageComponent is a part of an image reference.
type ImageComponent string

// The parts of an image reference host/repository:tag or host/repository@digest.
const (
	Registry   ImageComponent = "Registry"
	Repository ImageComponent = "Repository"
	Tag        ImageComponent = "Tag"
)

// ImageOverrider changes one part of image references.
type ImageOverrider struct {
	// Predicate locates the image. Nil means every container image of the
	// well-known workload kinds.
	// +optional
	Predicate *ImagePredicate `json:"predicate,omitempty"`

	// Component is the part to change.
	// +kubebuilder:validation:Enum=Registry;Repository;Tag
	// +required
	Component ImageComponent `json:"component"`

	// Operator is add (append), replace or remove.
	// +kubebuilder:validation:Enum=add;remove;replace
	// +required
	Operator OverriderOperator `json:"operator"`

	// Value for add and replace.
	// +optional
	Value string `json:"value,omitempty"`
}

// ImagePredicate locates an image in an object.
type ImagePredicate struct {
	// Path is a slash-separated path to the string field that holds the image.
	// +required
	Path string `json:"path"`
}

// OverriderOperator is an operation of an overrider.
type OverriderOperator string

// The values of OverriderOperator.
const (
	OverriderOpAdd     OverriderOperator = "add"
	OverriderOpRemove  OverriderOperator = "remove"
	OverriderOpReplace OverriderOperator = "replace"
)

// CommandArgsOverrider changes the command or the arguments of a container.
type CommandArgsOverrider struct {
	// ContainerName names the container.
	// +required
	ContainerName string `json:"containerName"`

	// Operator is add (append) or remove (every equal element).
	// +kubebuilder:validation:Enum=add;remove
	// +required
	Operator OverriderOperator `json:"operator"`

	// Value holds the elements.
	// +optional
	Value []string `json:"value,omitempty"`
}

// PlaintextOverrider is one RFC 6902 operation.
type PlaintextOverrider struct {
	// Path is a JSON pointer into the object.
	// +required
	Path string `json:"path"`

	// Operator is add, replace or remove.
	// +kubebuilder:validation:Enum=add;remove;replace
	// +required
	Operator OverriderOperator `json:"operator"`

	// Value for add and replace; empty means null.
	// +optional
	Value apiextensionsv1.JSON `json:"value,omitempty"`
}

// FieldOverrider changes a document in a string field. Exactly one of JSON and
// YAML is set.
type FieldOverrider struct {
	// FieldPath is the JSON pointer of the string field.
	// +required
	FieldPath string `json:"fieldPath"`

	// JSON holds operations on a JSON document.
	// +optional
	JSON []JSONPatchOperation `json:"json,omitempty"`

	// YAML holds operations on a YAML document.
	// +optional
	YAML []YAMLPatchOperation `json:"yaml,omitempty"`
}

// JSONPatchOperation is one RFC 6902 operation on a JSON document.
type JSONPatchOperation struct {
	// SubPath is a JSON pointer into the document.
	// +required
	SubPath string `json:"subPath"`

	// Operator is add, replace or remove.
	// +kubebuilder:validation:Enum=add;remove;replace
	// +required
	Operator OverriderOperator `json:"operator"`

	// Value for add and replace; it must be absent for remove.
	// +optional
	Value apiextensionsv1.JSON `json:"value,omitempty"`
}

// YAMLPatchOperation is one RFC 6902 operation on a YAML document.
type YAMLPatchOperation struct {
	// SubPath is a JSON pointer into the document.
	// +required
	SubPath string `json:"subPath"`

	// Operator is add, replace or remove.
	// +kubebuilder:validation:Enum=add;remove;replace
	// +required
	Operator OverriderOperator `json:"operator"`

	// Value for add and replace; it must be absent for remove.
	// +optional
	Value apiextensionsv1.JSON `json:"value,omitempty"`
}
