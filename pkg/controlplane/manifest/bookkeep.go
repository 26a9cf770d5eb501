package manifest

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// Bookkeep records in place which annotations and labels the manifest brings, so
// that a key taken out of the template can be told from one that the member
// added, and ties the manifest to its Work. workPermanentID may be empty for a
// Work that has no id yet. It reports whether it changed anything; on an object
// that is up to date it allocates next to nothing.
func Bookkeep(obj *unstructured.Unstructured, workPermanentID string) bool {
	metadata := ensure(obj.Object, "metadata")
	annotations := ensure(metadata, "annotations")

	changed := setKeys(annotations, workv1alpha2.ManagedAnnotation, annotations,
		workv1alpha2.ManagedAnnotation, workv1alpha2.ManagedLabels)
	if workPermanentID != "" {
		changed = set(ensure(metadata, "labels"), workv1alpha2.WorkPermanentIDLabel, workPermanentID) || changed
	}
	return setKeys(annotations, workv1alpha2.ManagedLabels, child(metadata, "labels")) || changed
}

// setKeys writes the sorted keys of from, and those in always, comma-joined
// under key.
func setKeys(into map[string]any, key string, from map[string]any, always ...string) bool {
	var space [24]string
	keys := append(space[:0], always...)
	for k := range from {
		if !slices.Contains(always, k) {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	if have, ok := into[key].(string); ok && isJoined(have, keys) {
		return false
	}
	into[key] = strings.Join(keys, ",")
	return true
}

// isJoined says whether s is keys joined by commas.
func isJoined(s string, keys []string) bool {
	for i, key := range keys {
		if i > 0 {
			if !strings.HasPrefix(s, ",") {
				return false
			}
			s = s[1:]
		}
		if !strings.HasPrefix(s, key) {
			return false
		}
		s = s[len(key):]
	}
	return s == ""
}

// ensure returns the map at key, made when absent or of another type.
func ensure(m map[string]any, key string) map[string]any {
	if c, ok := m[key].(map[string]any); ok && c != nil {
		return c
	}
	c := map[string]any{}
	m[key] = c
	return c
}

// set writes a string and reports whether it was another one before.
func set(m map[string]any, key, value string) bool {
	if have, ok := m[key].(string); ok && have == value {
		return false
	}
	m[key] = value
	return true
}
