package contract

import (
	"encoding/json"
	"os"
	"testing"

	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/karmada-toolkit/karmada/pkg/generated/openapi"
)

// declaredFields are those that the contract does not have; docs/differences.md explains them.
var declaredFields = map[string]string{
	"com.github.karmada-io.karmada.pkg.apis.search.v1alpha1.ResourceRegistryStatus": "clusters",
}

func TestAggregatedSchemas_EqualTheContractFieldByField(t *testing.T) {
	data, err := os.ReadFile("testdata/aggregated/definitions.json")
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]any
	if err := json.Unmarshal(data, &want); err != nil {
		t.Fatal(err)
	}
	ref := func(name string) spec.Ref { return spec.MustCreateRef("#/definitions/" + name) }
	ours := openapi.GetOpenAPIDefinitions(common.ReferenceCallback(ref))
	for name, w := range want {
		def, ok := ours[name]
		if !ok {
			t.Errorf("definition %s is missing", name)
			continue
		}
		encoded, err := json.Marshal(def.Schema)
		if err != nil {
			t.Fatal(err)
		}
		var got any
		if err := json.Unmarshal(encoded, &got); err != nil {
			t.Fatal(err)
		}
		if field, ok := declaredFields[name]; ok {
			delete(got.(map[string]any)["properties"].(map[string]any), field)
		}
		w := w.(map[string]any)
		delete(w, "x-kubernetes-group-version-kind") // added when served
		for _, d := range compare("", w, withoutElementDefaults(got)) {
			t.Errorf("%s: %s", name, d)
		}
	}
	t.Logf("compared %d definitions", len(want))
}

// withoutElementDefaults drops the defaults of list and map elements, which the
// API server does not serve either.
func withoutElementDefaults(schema any) any {
	object, ok := schema.(map[string]any)
	if !ok {
		return schema
	}
	for key, value := range object {
		if element, ok := value.(map[string]any); ok && (key == "items" || key == "additionalProperties") {
			if _, isProperty := element["properties"]; !isProperty {
				delete(element, "default")
			}
		}
		withoutElementDefaults(value)
	}
	return object
}
