// Package contract compares what the project defines with the contract that it
// is measured by.
package contract

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/karmada-toolkit/karmada/pkg/apis/crds"
)

// declared are the differences that docs/differences.md explains.
var declared = []string{
	"serviceexports.multicluster.x-k8s.io: names.listKind: extra ServiceExportList",
	"serviceimports.multicluster.x-k8s.io: names.listKind: extra ServiceImportList",
}

func TestCRDs_EqualTheContractFieldByField(t *testing.T) {
	all, err := crds.All()
	if err != nil {
		t.Fatal(err)
	}
	ours := map[string]any{}
	for _, crd := range all {
		data, err := json.Marshal(crd)
		if err != nil {
			t.Fatal(err)
		}
		ours[crd.Name] = load(t, data)
	}
	const operator = "../../charts/karmada-operator/files/operator.karmada.io_karmadas.yaml"
	data, err := os.ReadFile(operator)
	if err != nil {
		t.Fatal(err)
	}
	ours["karmadas.operator.karmada.io"] = load(t, data)
	paths, err := filepath.Glob("testdata/crds/*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no contract: %v", err)
	}
	var found []string
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		want := load(t, data).(map[string]any)
		name := want["metadata"].(map[string]any)["name"].(string)
		got, ok := ours[name].(map[string]any)
		if !ok {
			t.Errorf("CRD %s is missing", name)
			continue
		}
		delete(ours, name)
		for _, d := range compare("", want["spec"], got["spec"]) {
			found = append(found, name+": "+d)
		}
	}
	for name := range ours {
		t.Errorf("CRD %s is not in the contract", name)
	}
	for _, d := range found {
		if !slices.Contains(declared, d) {
			t.Error(d)
		}
	}
	t.Logf("compared %d CRDs, %d declared differences", len(paths), len(found))
}

func load(t *testing.T, data []byte) any {
	t.Helper()
	var v any
	if err := yaml.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// compare lists how got differs from want, descriptions aside.
func compare(path string, want, got any) []string {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return []string{fmt.Sprintf("%s: want an object, got %v", path, got)}
		}
		return compareMaps(path, w, g)
	case []any:
		g, ok := got.([]any)
		if !ok || len(w) != len(g) {
			return []string{fmt.Sprintf("%s: want %v, got %v", path, want, got)}
		}
		w, g = sorted(w), sorted(g)
		var out []string
		for i := range w {
			out = append(out, compare(fmt.Sprintf("%s[%d]", path, i), w[i], g[i])...)
		}
		return out
	default:
		if want != got {
			return []string{fmt.Sprintf("%s: want %v, got %v", path, want, got)}
		}
		return nil
	}
}

func compareMaps(path string, want, got map[string]any) []string {
	var out []string
	join := func(key string) string {
		if path == "" {
			return key
		}
		return path + "." + key
	}
	for key, w := range want {
		if _, isText := w.(string); key == "description" && isText {
			continue
		}
		g, ok := got[key]
		if !ok {
			out = append(out, fmt.Sprintf("%s: missing %v", join(key), w))
			continue
		}
		out = append(out, compare(join(key), w, g)...)
	}
	for key, g := range got {
		if _, isText := g.(string); key == "description" && isText {
			continue
		}
		if _, ok := want[key]; !ok {
			out = append(out, fmt.Sprintf("%s: extra %v", join(key), g))
		}
	}
	slices.Sort(out)
	return out
}

// sorted orders lists of strings, whose order means nothing in a schema.
func sorted(in []any) []any {
	texts := make([]string, 0, len(in))
	for _, v := range in {
		s, ok := v.(string)
		if !ok {
			return in
		}
		texts = append(texts, s)
	}
	slices.Sort(texts)
	out := make([]any, len(texts))
	for i, s := range texts {
		out[i] = s
	}
	return out
}
