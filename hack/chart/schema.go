package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// object is a JSON schema, or a part of one.
type object = map[string]any

// values writes the files that are made from values.yaml: a copy of the defaults that templates can read, and the schema.
func values(dir string) error {
	text, err := os.ReadFile(filepath.Join(dir, "values.yaml"))
	if err != nil {
		return err
	}
	values := object{}
	if err := yaml.Unmarshal(text, &values); err != nil {
		return err
	}
	if err := write(filepath.Join(dir, "defaults.json"), values); err != nil {
		return err
	}
	root, err := schemaOf(nil, values)
	if err != nil {
		return err
	}
	root["$schema"], root["$defs"] = "http://json-schema.org/draft-07/schema#", definitions()
	for path, rules := range combinations() {
		at := root
		for _, key := range strings.FieldsFunc(path, func(r rune) bool { return r == '.' }) {
			at = at["properties"].(object)[key].(object)
		}
		at["allOf"] = rules
	}
	return write(filepath.Join(dir, "values.schema.json"), root)
}

// schemaOf returns the schema of a map of values. Only the keys that it has are permitted.
func schemaOf(path []string, values object) (object, error) {
	properties, types := object{}, types()
	for key, value := range values {
		at := append(slices.Clone(path), key)
		name := ""
		// The longest end of the path that has a type.
		for i := range slices.Backward(at) {
			if found, ok := types[strings.Join(at[i:], ".")]; ok {
				name = found
			}
		}
		inner, branch := value.(object)
		switch {
		case name != "":
			properties[key] = object{"$ref": "#/$defs/" + name}
		case branch:
			schema, err := schemaOf(at, inner)
			if err != nil {
				return nil, err
			}
			properties[key] = schema
		default:
			return nil, fmt.Errorf("values.yaml: %s has no type in hack/chart/types.go", strings.Join(at, "."))
		}
	}
	return object{"type": []string{"object", "null"}, "properties": properties, "additionalProperties": false}, nil
}

func write(path string, value any) error {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(value); err != nil {
		return err
	}
	return os.WriteFile(path, out.Bytes(), 0o644)
}
