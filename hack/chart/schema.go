package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
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

// write writes JSON; what fits in a line is not broken.
func write(path string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	var plain any
	if err := json.Unmarshal(text, &plain); err != nil {
		return err
	}
	text, err = lines(plain, "")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

func lines(value any, indent string) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	line := bytes.TrimSpace(out.Bytes())
	fields, ok := value.(object)
	if !ok || len(indent)+len(line) <= 100 {
		return line, nil
	}
	out = bytes.Buffer{}
	for i, key := range slices.Sorted(maps.Keys(fields)) {
		inner, err := lines(fields[key], indent+"  ")
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&out, "%s\n%s  %q: %s", map[bool]string{true: "{", false: ","}[i == 0], indent, key, inner)
	}
	fmt.Fprintf(&out, "\n%s}", indent)
	return out.Bytes(), nil
}
