package webhook

import (
	"encoding/json"
	"reflect"
	"strings"
)

// shape is the fields that a Go type has for a JSON value. It distinguishes a field
// that the type omits from one that the type does not have.
type shape struct {
	fields map[string]*shape // of an object with known fields
	items  *shape            // of each element of a list, or of each value of a map
}

// shapeOf returns the shape of a type. Types that encode themselves are opaque.
func shapeOf(t reflect.Type, done map[reflect.Type]*shape) *shape {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if s, ok := done[t]; ok {
		return s
	}
	s := &shape{}
	done[t] = s
	if reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return s
	}
	switch t.Kind() {
	case reflect.Struct:
		s.fields = map[string]*shape{}
		s.addFields(t, done)
	case reflect.Slice, reflect.Array, reflect.Map:
		s.items = shapeOf(t.Elem(), done)
	}
	return s
}

// addFields adds the fields of a struct, those of embedded ones included.
func (s *shape) addFields(t reflect.Type, done map[reflect.Type]*shape) {
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported() && !f.Anonymous:
		case f.Anonymous && name == "":
			embedded := f.Type
			if embedded.Kind() == reflect.Pointer {
				embedded = embedded.Elem()
			}
			if embedded.Kind() == reflect.Struct {
				s.addFields(embedded, done)
			}
		case name == "":
			s.fields[f.Name] = shapeOf(f.Type, done)
		default:
			s.fields[name] = shapeOf(f.Type, done)
		}
	}
}

// keepUnknown returns typed, what a Go type makes of a value, with the fields of
// the raw value that the type does not have. It changes typed.
func (s *shape) keepUnknown(raw, typed any) any {
	if s == nil {
		return typed
	}
	switch t := typed.(type) {
	case map[string]any:
		r, ok := raw.(map[string]any)
		if !ok {
			return typed
		}
		for key, value := range r {
			if known, ok := t[key]; ok {
				t[key] = s.child(key).keepUnknown(value, known)
			} else if _, has := s.fields[key]; !has && s.fields != nil {
				t[key] = value
			}
		}
	case []any:
		r, ok := raw.([]any)
		if !ok || len(r) != len(t) {
			return typed
		}
		for i := range t {
			t[i] = s.items.keepUnknown(r[i], t[i])
		}
	}
	return typed
}

func (s *shape) child(key string) *shape {
	if s.fields != nil {
		return s.fields[key]
	}
	return s.items
}
