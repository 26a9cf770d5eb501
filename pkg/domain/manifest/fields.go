package manifest

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// managedFieldsAnnotation lists, in a member, the top-level fields that come from the manifest.
const managedFieldsAnnotation = "propagation.karmada.io/managed-fields"

// RecordFields removes the status from a manifest of a kind without a status subresource, in place, and lists its top-level fields in
// an annotation, by which RetainFields distinguishes a field that was removed from the template from one that the member added.
func RecordFields(obj *unstructured.Unstructured) {
	delete(obj.Object, "status")
	setKeys(ensure(ensure(obj.Object, "metadata"), "annotations"), managedFieldsAnnotation, obj.Object)
}

// RetainFields adds to desired, in place, the status of observed and the top-level fields that desired does not have, except those of
// an earlier manifest. observed is read-only.
func RetainFields(desired, observed *unstructured.Unstructured) {
	Take(desired, observed, Path{"status"})
	managed := observed.GetAnnotations()[managedFieldsAnnotation]
	for key := range observed.Object {
		if _, ok := desired.Object[key]; !ok && !contains(managed, key) {
			Take(desired, observed, Path{key})
		}
	}
}
