package interpreter

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/karmada-toolkit/karmada/internal/quantity"
)

// child returns the map at the path, or nil when there is none. The result must
// not be changed, unless the tree is the caller's.
func child(m map[string]any, path ...string) map[string]any {
	for _, key := range path {
		m, _ = m[key].(map[string]any)
	}
	return m
}

// list returns the list under key, or nil.
func list(m map[string]any, key string) []any {
	l, _ := m[key].([]any)
	return l
}

// text returns the string under key, or "".
func text(m map[string]any, key string) string {
	s, _ := m[key].(string)
	return s
}

// integer returns the number under key and whether there is one.
func integer(m map[string]any, key string) (int64, bool) {
	switch n := m[key].(type) {
	case int64:
		return n, true
	case float64:
		return int64(n), n == float64(int64(n))
	}
	return 0, false
}

// number returns the number under key, or 0.
func number(m map[string]any, key string) int64 {
	n, _ := integer(m, key)
	return n
}

// pick returns the named fields of m.
func pick(m map[string]any, keys ...string) map[string]any {
	picked := make(map[string]any, len(keys))
	for _, key := range keys {
		if v, ok := m[key]; ok {
			picked[key] = v
		}
	}
	return picked
}

// decode reads a tree into a typed value.
func decode(tree map[string]any, into any) error {
	if err := quantity.CheckTree(tree, reflect.TypeOf(into)); err != nil {
		return fmt.Errorf("decoding %T: %w", into, err)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(tree, into); err != nil {
		return fmt.Errorf("decoding %T: %w", into, err)
	}
	return nil
}

// encode returns the tree of a typed value.
func encode(from any) (map[string]any, error) {
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(from)
	if err != nil {
		return nil, fmt.Errorf("encoding %T: %w", from, err)
	}
	return tree, nil
}
