package manifest

import (
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Equal reports whether two versions of an object are equal except for the status, the
// metadata that servers set and what Prune removes from their kind. A field that is null
// equals an absent one. Neither object is changed, and only those of the few kinds whose
// spec Prune changes are copied.
func Equal(a, b *unstructured.Unstructured) bool {
	x, y := comparableFields(a.Object), comparableFields(b.Object)
	return equalFields(x, y, func(key string) bool { return key == "status" || key == "metadata" }) &&
		equalMetadata(child(x, "metadata"), child(y, "metadata"))
}

// comparableFields returns the part of an object that Equal compares. For most kinds that is
// the object itself.
func comparableFields(obj map[string]any) map[string]any {
	k := kindOf(obj)
	switch k {
	case kind{"batch", "Job"}, kind{"", "Secret"}, kind{"", "ServiceAccount"}, kind{"", "Service"},
		kind{"apps", "Deployment"}, kind{"apps", "DaemonSet"}, kind{"", "PersistentVolumeClaim"}:
	default:
		return obj
	}
	view := make(map[string]any, len(obj))
	for key, value := range obj {
		switch {
		case key == "metadata":
			view[key] = annotationsCopied(obj)
		case key == "spec" && (k.kind == "Job" || k.kind == "Service"):
			view[key] = runtime.DeepCopyJSONValue(value)
		default:
			view[key] = value
		}
	}
	pruneKind(k, view)
	if k.kind == "DaemonSet" {
		removeAnnotations(view, appsv1.DeprecatedTemplateGeneration) // each API server counts for itself
	}
	return view
}

// annotationsCopied returns the metadata of an object with a copy of the annotations.
func annotationsCopied(obj map[string]any) map[string]any {
	metadata := shallow(child(obj, "metadata"))
	if annotations := child(metadata, "annotations"); annotations != nil {
		metadata["annotations"] = shallow(annotations)
	}
	return metadata
}

func shallow(m map[string]any) map[string]any {
	c := make(map[string]any, len(m))
	maps.Copy(c, m)
	return c
}

func equalMetadata(a, b map[string]any) bool {
	keyed := func(key string) bool { return key == "labels" || key == "annotations" || prunedMetadata(key) }
	return equalFields(a, b, keyed) &&
		equalFields(child(a, "labels"), child(b, "labels"), nil) &&
		equalFields(child(a, "annotations"), child(b, "annotations"), nil)
}

// equalFields compares two maps except for the keys that skip selects.
func equalFields(a, b map[string]any, skip func(string) bool) bool {
	for key, x := range a {
		if skip != nil && skip(key) {
			continue
		}
		if !equalValues(x, b[key]) {
			return false
		}
	}
	for key, y := range b {
		if y == nil || skip != nil && skip(key) {
			continue
		}
		if _, ok := a[key]; !ok {
			return false
		}
	}
	return true
}

// equalValues compares two JSON values. Numbers are compared by value.
func equalValues(a, b any) bool {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		return ok && equalFields(x, y, nil)
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for i := range x {
			if !equalValues(x[i], y[i]) {
				return false
			}
		}
		return true
	case int64:
		if y, ok := b.(float64); ok {
			return float64(x) == y
		}
		return a == b
	case float64:
		if y, ok := b.(int64); ok {
			return x == float64(y)
		}
		return a == b
	case string, bool, nil:
		return a == b
	}
	return equality.Semantic.DeepEqual(a, b)
}
