package cache

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/karmada-toolkit/karmada/pkg/domain/search"
)

// The version is replaced in the metadata only, wherever else the text has one.
func TestObject_WithVersions(t *testing.T) {
	versions := search.NewVersions(map[string]string{"m1": "7", "m2": "9"})
	for name, tc := range map[string]struct {
		text   string
		direct bool
	}{
		"an object":                       {`{"metadata":{"name":"a","resourceVersion":"7"}}`, true},
		"another object that names one":   {`{"involvedObject":{"resourceVersion":"7"},"metadata":{"name":"a","resourceVersion":"7"}}`, false},
		"text that looks like one":        {`{"data":{"x":"{\"resourceVersion\":\"7\"}"},"metadata":{"name":"a","resourceVersion":"7"}}`, true},
		"a version that needs an escape":  {`{"metadata":{"name":"a","resourceVersion":"<7>"}}`, false},
		"a key of a map, and no version":  {`{"data":{"resourceVersion":"7"},"metadata":{"name":"a"}}`, false},
		"a key of a map before a version": {`{"data":{"resourceVersion":"7"},"metadata":{"name":"a","resourceVersion":"7"}}`, false},
	} {
		var u unstructured.Unstructured
		if err := json.Unmarshal([]byte(tc.text), &u.Object); err != nil {
			t.Fatal(err)
		}
		o, err := (&codec{}).keep(&u, nil, "m1")
		if err != nil {
			t.Fatal(err)
		}
		_, o = settle(types.NamespacedName{}, o)
		if (o.versionAt > 0) != tc.direct {
			t.Errorf("%s: the version is at %d", name, o.versionAt)
		}
		got, err := o.WithVersions("m1", versions)
		if err != nil {
			t.Fatal(err)
		}
		text, err := o.JSON()
		if err != nil {
			t.Fatal(err)
		}
		want, err := search.WithVersions(text, "m1", versions)
		if err != nil {
			t.Fatal(err)
		}
		var a, b any
		if json.Unmarshal(want, &a) != nil || json.Unmarshal(got, &b) != nil {
			t.Fatalf("%s: %s, %s", name, want, got)
		}
		if diff := cmp.Diff(a, b); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
