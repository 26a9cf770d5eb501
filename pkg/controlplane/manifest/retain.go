package manifest

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

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
