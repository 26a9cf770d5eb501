package manifest

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// Bookkeep records in place the keys of the annotations and labels of the manifest, to
// distinguish a key that was removed from the template from one that was added in the
// member, and the permanent ID of the Work. workPermanentID may be empty for a Work that
// has none yet. It reports whether it changed anything.
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

// setKeys sets key to the sorted keys of from and always, separated by commas.
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

// isJoined reports whether s consists of keys separated by commas.
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

// ensure returns the map at key. It is created if it is absent or of another type.
func ensure(m map[string]any, key string) map[string]any {
	if c, ok := m[key].(map[string]any); ok && c != nil {
		return c
	}
	c := map[string]any{}
	m[key] = c
	return c
}

// set sets a string and reports whether it had another value.
func set(m map[string]any, key, value string) bool {
	if have, ok := m[key].(string); ok && have == value {
		return false
	}
	m[key] = value
	return true
}
