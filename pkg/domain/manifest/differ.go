package manifest

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Path leads to a field through maps. A list is one field.
type Path []string

// String returns the path as users write it.
func (p Path) String() string { return strings.Join(p, ".") }

// Differences returns the fields in which two versions of an object differ by the rules of Equal, in order. If they are more than
// limit, it returns the fields of the object itself in which they differ.
func Differences(a, b *unstructured.Unstructured, limit int) []Path {
	x, y := comparableFields(a.Object), comparableFields(b.Object)
	var out, top []Path
	for _, key := range slices.Sorted(maps.Keys(union(x, y))) {
		var found []Path
		switch key {
		case "status":
		case "metadata":
			for _, field := range []string{"labels", "annotations"} {
				found = differ(found, Path{"metadata", field}, child(child(x, "metadata"), field), child(child(y, "metadata"), field), limit)
			}
		default:
			found = differ(found, Path{key}, x[key], y[key], limit)
		}
		if len(found) > 0 {
			out, top = append(out, found...), append(top, Path{key})
		}
	}
	if len(out) > limit {
		return top
	}
	return out
}

// differ appends the fields below a path in which two values differ.
func differ(out []Path, path Path, a, b any, limit int) []Path {
	if len(out) > limit || equalValues(a, b) {
		return out
	}
	x, xok := a.(map[string]any)
	y, yok := b.(map[string]any)
	if !xok || !yok {
		return append(out, path)
	}
	for _, key := range slices.Sorted(maps.Keys(union(x, y))) {
		out = differ(out, append(slices.Clip(path), key), x[key], y[key], limit)
	}
	return out
}

func union(a, b map[string]any) map[string]any {
	all := maps.Clone(a)
	if all == nil {
		return b
	}
	maps.Copy(all, b)
	return all
}

// Take changes an object in place: it gets the field that another version has, or loses it. Of the metadata it takes labels and
// annotations only.
func Take(into, from *unstructured.Unstructured, path Path) {
	if slices.Equal(path, Path{"metadata"}) {
		Take(into, from, Path{"metadata", "labels"})
		path = Path{"metadata", "annotations"}
	}
	have, found := any(from.Object), true
	for _, key := range path {
		m, _ := have.(map[string]any)
		have, found = m[key]
	}
	at := into.Object
	for _, key := range path[:len(path)-1] {
		next := child(at, key)
		if next == nil && !found {
			return
		}
		if next == nil {
			next = map[string]any{}
			at[key] = next
		}
		at = next
	}
	if last := path[len(path)-1]; found {
		at[last] = runtime.DeepCopyJSONValue(have)
	} else {
		delete(at, last)
	}
}
