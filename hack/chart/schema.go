package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"sigs.k8s.io/yaml"
)

// open are the keys whose maps may have any key.
func open() []string {
	return []string{
		"global", "commonLabels", "cfssl", "kubectl", "labels", "podAnnotations", "podLabels", "serviceAnnotations", "nodeSelector", "affinity", "resources",
		"strategy", "podDisruptionBudget", "featureGates", "extraCommandArgs",
	}
}

// values writes the files that are made from values.yaml: a copy of the defaults that templates can read, and the schema.
func values(dir string) error {
	text, err := os.ReadFile(filepath.Join(dir, "values.yaml"))
	if err != nil {
		return err
	}
	values := map[string]any{}
	if err := yaml.Unmarshal(text, &values); err != nil {
		return err
	}
	if err := write(filepath.Join(dir, "defaults.json"), values); err != nil {
		return err
	}
	root := schemaOf("", values).(map[string]any)
	root["$schema"] = "http://json-schema.org/draft-07/schema#"
	properties := root["properties"].(map[string]any)
	choose := func(key string, choices ...any) {
		properties[key].(map[string]any)["enum"] = append(choices, nil)
	}
	choose("installMode", "host", "agent")
	properties["components"] = map[string]any{"type": []string{"array", "null"}, "items": map[string]any{"enum": []string{"schedulerEstimator", "descheduler", "search", "metricsAdapter"}}}
	choice := func(key, inner string, choices ...any) {
		properties[key].(map[string]any)["properties"].(map[string]any)[inner].(map[string]any)["enum"] = append(choices, nil)
	}
	choice("certs", "mode", "auto", "custom")
	choice("etcd", "mode", "internal", "external")
	choice("apiServer", "serviceType", "ClusterIP", "NodePort", "LoadBalancer")
	return write(filepath.Join(dir, "values.schema.json"), root)
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
	object, ok := value.(map[string]any)
	if !ok || len(indent)+len(line) <= 100 {
		return line, nil
	}
	out = bytes.Buffer{}
	for i, key := range slices.Sorted(maps.Keys(object)) {
		inner, err := lines(object[key], indent+"  ")
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&out, "%s\n%s  %q: %s", map[bool]string{true: "{", false: ","}[i == 0], indent, key, inner)
	}
	fmt.Fprintf(&out, "\n%s}", indent)
	return out.Bytes(), nil
}

func schemaOf(key string, value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := map[string]any{"type": []string{"object", "null"}}
		if slices.Contains(open(), key) {
			return out
		}
		properties := map[string]any{}
		for name, inner := range v {
			properties[name] = schemaOf(name, inner)
		}
		out["properties"], out["additionalProperties"] = properties, false
		return out
	case []any:
		return map[string]any{"type": []string{"array", "null"}}
	case bool:
		return map[string]any{"type": []string{"boolean", "null"}}
	case float64:
		return map[string]any{"type": []string{"integer", "string", "null"}, "pattern": "^[0-9]+$"}
	}
	return map[string]any{"type": []string{"string", "number", "null"}}
}
