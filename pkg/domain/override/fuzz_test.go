package override

import (
	"encoding/json"
	"testing"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/karmada-toolkit/karmada/internal/build"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
)

// FuzzParseImage checks that what is parsed is written back the same, but for a
// digest behind a tag.
func FuzzParseImage(f *testing.F) {
	for _, seed := range []string{
		"nginx", "nginx:1.19", "localhost/app", "r.io:5000/team/app:v1", "library/nginx", "a/b/c@sha256:1111111111111111111111111111111111111111111111111111111111111111",
		"a:v1@sha256:1111111111111111111111111111111111111111111111111111111111111111", "", "/", ":", "A/b", "[::1]:5000/a", "a..b/c",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		build.Bounded(t, time.Minute, 64<<20+uint64(65536*len(text)), func() {
			image, err := ParseImage(text)
			if err != nil {
				return
			}
			if image.Tag != "" && image.Digest != "" {
				t.Fatalf("%q has a tag and a digest: %+v", text, image)
			}
			again, err := ParseImage(image.String())
			if err != nil || again != image {
				t.Fatalf("%q: %+v, then %+v, %v", text, image, again, err)
			}
		})
	})
}

// FuzzPlaintext checks one operation against an implementation that works on
// text.
func FuzzPlaintext(f *testing.F) {
	for _, seed := range []struct{ path, op, value string }{
		{"/spec/replicas", "replace", "3"}, {"/spec/list/-", "add", `"x"`}, {"/spec/list/0", "remove", ""}, {"/spec/list/-1", "replace", "{}"},
		{"/spec/list/3", "add", "1"}, {"/spec/list/-4", "add", "1"}, {"/spec/a~1b", "add", "[1]"}, {"/spec", "remove", ""}, {"", "replace", `{"kind":"x"}`},
		{"/spec/nested/0/k", "add", "null"}, {"/spec/list/x", "remove", ""}, {"/spec/none/x", "add", "1"},
	} {
		f.Add(seed.path, seed.op, []byte(seed.value))
	}
	const document = `{"kind":"K","spec":{"replicas":1,"list":["a","b"],"nested":[{"k":1},null],"a/b":true}}`
	f.Fuzz(func(t *testing.T, path, op string, value []byte) {
		build.Bounded(t, time.Minute, 64<<20+uint64(65536*(len(path)+len(op)+len(value))), func() {
			if len(value) > 0 && !json.Valid(value) {
				return
			}
			var tree map[string]any
			if err := json.Unmarshal([]byte(document), &tree); err != nil {
				t.Fatal(err)
			}
			r := run{obj: &unstructured.Unstructured{Object: tree}, budget: newBudget(tree, nil)}
			err := r.overridePlaintext(&policyv1alpha1.PlaintextOverrider{
				Path: path, Operator: policyv1alpha1.OverriderOperator(op), Value: apiextensionsv1.JSON{Raw: value},
			})
			if err != nil {
				return
			}
			got := r.obj.Object
			want, err := applyText(document, path, op, value)
			if err != nil {
				t.Fatalf("%s %q %s: want the error %v, got %v", op, path, value, err, got)
			}
			data, err := json.Marshal(got)
			if err != nil {
				t.Fatal(err)
			}
			var plain any
			if err := json.Unmarshal(data, &plain); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, plain); diff != "" {
				t.Fatalf("%s %q %s: %s", op, path, value, diff)
			}
		})
	})
}

// applyText does an operation on text.
func applyText(document, path, op string, value []byte) (any, error) {
	if len(value) == 0 {
		value = []byte("null")
	}
	ops, err := json.Marshal([]map[string]any{{"op": op, "path": path, "value": json.RawMessage(value)}})
	if err != nil {
		return nil, err
	}
	patch, err := jsonpatch.DecodePatch(ops)
	if err != nil {
		return nil, err
	}
	data, err := patch.Apply([]byte(document))
	if err != nil {
		return nil, err
	}
	var tree any
	return tree, json.Unmarshal(data, &tree)
}

// FuzzDocument changes documents in a field in proportion to their length.
func FuzzDocument(f *testing.F) {
	f.Add("a: &a [1]\nb: [*a,*a]", "/b/0", []byte("1"), true)
	f.Add(`{"a":[{"b":1}]}`, "/a/0/b", []byte(`{"c":[]}`), false)
	f.Add("[[[[[[", "/-", []byte("null"), false)
	f.Fuzz(func(t *testing.T, text, path string, value []byte, isYAML bool) {
		o := policyv1alpha1.FieldOverrider{FieldPath: "/data/c"}
		op := policyv1alpha1.JSONPatchOperation{SubPath: path, Operator: policyv1alpha1.OverriderOpAdd, Value: apiextensionsv1.JSON{Raw: value}}
		if isYAML {
			o.YAML = []policyv1alpha1.YAMLPatchOperation{policyv1alpha1.YAMLPatchOperation(op)}
		} else {
			o.JSON = []policyv1alpha1.JSONPatchOperation{op}
		}
		tree := map[string]any{"data": map[string]any{"c": text}}
		r := run{obj: &unstructured.Unstructured{Object: tree}, budget: newBudget(tree, nil)}
		build.Bounded(t, time.Minute, 16<<20+uint64(8192*(len(text)+len(path)+len(value))), func() { _ = r.overrideField(&o) })
	})
}
