package plan

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
)

// storedAs returns the value that a merge gives a field, as the API server stores it: what a manifest did not change since it was applied
// last stays as it was stored then, with defaults in lists and canonical quantities.
func storedAs(merged, live, original, manifest any) any {
	m, isMap := manifest.(map[string]any)
	into, _ := merged.(map[string]any)
	if !isMap || into == nil {
		if equality.Semantic.DeepEqual(original, manifest) && covers(live, manifest) {
			return live
		}
		return merged
	}
	was, _ := original.(map[string]any)
	has, _ := live.(map[string]any)
	for name, value := range m {
		if stored, ok := has[name]; ok && was[name] != nil {
			into[name] = storedAs(into[name], stored, was[name], value)
		}
	}
	return into
}

// covers reports whether a stored value is one that was applied, with more fields and other forms of quantities.
func covers(stored, applied any) bool {
	switch a := applied.(type) {
	case map[string]any:
		s, ok := stored.(map[string]any)
		for name, value := range a {
			if ok = ok && covers(s[name], value); !ok {
				return false
			}
		}
		return ok
	case []any:
		s, ok := stored.([]any)
		return ok && slices.EqualFunc(s, a, covers)
	}
	return equality.Semantic.DeepEqual(stored, applied) || sameQuantity(stored, applied)
}

// sameQuantity reports whether two values are forms of one quantity.
func sameQuantity(stored, applied any) bool {
	text, ok := stored.(string)
	if !ok {
		return false
	}
	a, err := resource.ParseQuantity(text)
	b, failed := resource.ParseQuantity(fmt.Sprint(applied))
	return err == nil && failed == nil && a.Cmp(b) == 0
}
