package webhook

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// operation is one step of a JSON patch (RFC 6902).
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// MarshalJSON writes the value also when it is null, zero or empty.
func (o operation) MarshalJSON() ([]byte, error) {
	if o.Op == "remove" {
		return json.Marshal(map[string]any{"op": o.Op, "path": o.Path})
	}
	return json.Marshal(map[string]any{"op": o.Op, "path": o.Path, "value": o.Value})
}

// diff returns the steps that turn before into after, under path.
func diff(path string, before, after any) []operation {
	switch a := after.(type) {
	case map[string]any:
		if b, ok := before.(map[string]any); ok {
			return diffMaps(path, b, a)
		}
	case []any:
		b, ok := before.([]any)
		if !ok || len(b) != len(a) {
			break
		}
		var out []operation
		for i := range a {
			out = append(out, diff(path+"/"+strconv.Itoa(i), b[i], a[i])...)
		}
		return out
	}
	if reflect.DeepEqual(before, after) {
		return nil
	}
	return []operation{{Op: "replace", Path: path, Value: after}}
}

func diffMaps(path string, before, after map[string]any) []operation {
	var out []operation
	for _, key := range slices.Sorted(maps.Keys(before)) {
		at := path + "/" + escape(key)
		if value, ok := after[key]; ok {
			out = append(out, diff(at, before[key], value)...)
		} else {
			out = append(out, operation{Op: "remove", Path: at})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(after)) {
		if _, ok := before[key]; !ok {
			out = append(out, operation{Op: "add", Path: path + "/" + escape(key), Value: after[key]})
		}
	}
	return out
}

// escape makes a key part of a JSON pointer.
func escape(key string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}
