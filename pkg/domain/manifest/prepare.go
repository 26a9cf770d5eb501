// Package manifest turns a template into the manifest of a Work and compares the
// manifest with the object in a member. It is pure.
//
// Functions that change an object change it in place. An object from a cache must be
// copied first.
package manifest

import (
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// BindingRef is the binding of a manifest. Without a namespace it is a
// ClusterResourceBinding.
type BindingRef struct {
	Namespace, Name, PermanentID string
}

// Origin is the template, the binding and the Work of a manifest.
type Origin struct {
	// Binding is nil for objects that the control plane creates without one.
	Binding *BindingRef
	// UID and Generation of the template; a generation of 0 is not recorded.
	UID        types.UID
	Generation int64
	// WorkNamespace, WorkName and WorkPermanentID identify the Work. The ID may be
	// empty for a Work that is not created yet.
	WorkNamespace, WorkName, WorkPermanentID string
	// ConflictResolution is the value of that annotation of the Work; empty if it has
	// none.
	ConflictResolution string
}

// Annotate sets in place the labels and annotations that refer to the template, the
// binding and the Work.
func Annotate(obj *unstructured.Unstructured, o Origin) {
	metadata := ensure(obj.Object, "metadata")
	labels, annotations := ensure(metadata, "labels"), ensure(metadata, "annotations")

	if b := o.Binding; b != nil && b.Namespace != "" {
		set(labels, workv1alpha2.ResourceBindingPermanentIDLabel, b.PermanentID)
		set(annotations, workv1alpha2.ResourceBindingNamespaceAnnotation, b.Namespace)
		set(annotations, workv1alpha2.ResourceBindingNameAnnotation, b.Name)
	} else if b != nil {
		set(labels, workv1alpha2.ClusterResourceBindingPermanentIDLabel, b.PermanentID)
		set(annotations, workv1alpha2.ClusterResourceBindingAnnotation, b.Name)
	}
	if o.Generation > 0 {
		set(annotations, workv1alpha2.ResourceTemplateGenerationAnnotation, strconv.FormatInt(o.Generation, 10))
	}
	set(labels, workv1alpha2.ManagedByKarmadaLabel, workv1alpha2.ManagedByKarmadaLabelValue)
	set(annotations, workv1alpha2.ResourceTemplateUIDAnnotation, string(o.UID))
	set(annotations, workv1alpha2.WorkNameAnnotation, o.WorkName)
	set(annotations, workv1alpha2.WorkNamespaceAnnotation, o.WorkNamespace)
	if o.ConflictResolution != "" {
		set(annotations, workv1alpha2.ResourceConflictResolutionAnnotation, o.ConflictResolution)
	}
}

// Prepare turns a template, in place, into the manifest of a Work as the admission of
// Works does, so that admission has nothing to change.
func Prepare(obj *unstructured.Unstructured, o Origin) error {
	Annotate(obj, o)
	if err := Prune(obj); err != nil {
		return err
	}
	Bookkeep(obj, o.WorkPermanentID)
	return nil
}

// ConflictResolution returns the conflict resolution of a Work: that of the manifest
// after overrides, else that of the binding.
func ConflictResolution(obj *unstructured.Unstructured, binding policyv1alpha1.ConflictResolution) string {
	annotations := child(child(obj.Object, "metadata"), "annotations")
	switch value, _ := annotations[workv1alpha2.ResourceConflictResolutionAnnotation].(string); value {
	case workv1alpha2.ResourceConflictResolutionOverwrite, workv1alpha2.ResourceConflictResolutionAbort:
		return value
	}
	if binding == policyv1alpha1.ConflictOverwrite {
		return workv1alpha2.ResourceConflictResolutionOverwrite
	}
	return workv1alpha2.ResourceConflictResolutionAbort
}

// Owned reports whether an object in a member is managed by the control plane.
func Owned(obj *unstructured.Unstructured) bool {
	labels := child(child(obj.Object, "metadata"), "labels")
	value, _ := labels[workv1alpha2.ManagedByKarmadaLabel].(string)
	return value == workv1alpha2.ManagedByKarmadaLabelValue
}

// StripOwnership removes in place every label and annotation that refers to the control
// plane, for objects that remain in the member after their Work is deleted. It reports
// whether there was any.
func StripOwnership(obj *unstructured.Unstructured) bool {
	metadata := child(obj.Object, "metadata")
	labels := without(child(metadata, "labels"),
		policyv1alpha1.PropagationPolicyPermanentIDLabel,
		policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel,
		workv1alpha2.ResourceBindingPermanentIDLabel,
		workv1alpha2.ClusterResourceBindingPermanentIDLabel,
		workv1alpha2.WorkPermanentIDLabel,
		workv1alpha2.ManagedByKarmadaLabel)
	annotations := without(child(metadata, "annotations"),
		policyv1alpha1.PropagationPolicyNamespaceAnnotation,
		policyv1alpha1.PropagationPolicyNameAnnotation,
		policyv1alpha1.ClusterPropagationPolicyAnnotation,
		workv1alpha2.ManagedAnnotation,
		workv1alpha2.ManagedLabels,
		managedFieldsAnnotation,
		workv1alpha2.ResourceTemplateUIDAnnotation,
		workv1alpha2.ResourceTemplateGenerationAnnotation,
		workv1alpha2.ResourceBindingNamespaceAnnotation,
		workv1alpha2.ResourceBindingNameAnnotation,
		workv1alpha2.ClusterResourceBindingAnnotation,
		workv1alpha2.WorkNameAnnotation,
		workv1alpha2.WorkNamespaceAnnotation,
		workv1alpha2.ResourceConflictResolutionAnnotation)
	return labels || annotations
}

func without(m map[string]any, keys ...string) bool {
	before := len(m)
	for _, key := range keys {
		delete(m, key)
	}
	return len(m) != before
}

// RetainMetadata turns desired, in place, into an update of observed: it takes over the
// metadata that the member owns, and the labels and annotations that were added in the
// member. observed is read-only and shares nothing with desired afterwards.
func RetainMetadata(desired, observed *unstructured.Unstructured) {
	into, from := ensure(desired.Object, "metadata"), child(observed.Object, "metadata")
	for _, field := range []string{"resourceVersion", "finalizers", "ownerReferences"} {
		if value, ok := from[field]; ok {
			into[field] = runtime.DeepCopyJSONValue(value)
		} else {
			delete(into, field)
		}
	}
	annotations := child(from, "annotations")
	retainKeys(into, "annotations", annotations, annotations[workv1alpha2.ManagedAnnotation])
	retainKeys(into, "labels", child(from, "labels"), annotations[workv1alpha2.ManagedLabels])
}

// retainKeys adds the observed keys that desired does not have, except those of an
// earlier manifest.
func retainKeys(metadata map[string]any, field string, observed map[string]any, managed any) {
	if len(observed) == 0 {
		return
	}
	list, _ := managed.(string)
	desired := child(metadata, field)
	for key, value := range observed {
		if _, ok := desired[key]; ok || contains(list, key) {
			continue
		}
		if desired == nil {
			desired = ensure(metadata, field)
		}
		desired[key] = value
	}
}

// contains reports whether a list separated by commas has the element.
func contains(list, element string) bool {
	for list != "" {
		first, rest, _ := strings.Cut(list, ",")
		if first == element {
			return true
		}
		list = rest
	}
	return false
}
