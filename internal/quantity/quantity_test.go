package quantity

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/karmada-toolkit/karmada/internal/build"
)

func TestParse(t *testing.T) {
	for s, want := range map[string]string{
		"1": "1", "100m": "100m", "1Gi": "1Gi", "5E": "5E", "1e3": "1e3", "2E18": "2E18", "1.5Ei": "1536Pi", "123456789012345678": "123456789012345678",
		"1e19": "", "1e300000000": "", "1e-300000000": "", "1E999999999999999999999": "", "1e-19": "",
		strings.Repeat("1", 65): "", "": "", "x": "", "1e": "", "1ee5": "",
	} {
		q, err := Parse(s)
		if (err != nil) != (want == "") || err == nil && q.String() != want {
			t.Errorf("%q: got %v, %v; want %q", s, q.String(), err, want)
		}
	}
	if _, err := Parse("1e300000000"); !errors.Is(err, ErrRange) {
		t.Errorf("got %v", err)
	}
}

func TestLenient(t *testing.T) {
	var list map[string]Lenient
	if err := json.Unmarshal([]byte(`{"a":"2Gi","b":"1e-300000000","c":3,"d":1e300000000,"e":null,"f":{},"g":"\u001b"}`), &list); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int64{"a": 2 << 30, "b": 0, "c": 3, "d": 0, "e": 0, "f": 0, "g": 0} {
		if l := list[name]; l.Value() != want {
			t.Errorf("%s: got %d, want %d", name, l.Value(), want)
		}
	}
}

// object has quantities in all ways that types of Kubernetes have them.
type object struct {
	embedded `json:",inline"`
	Labels   map[string]string            `json:"labels"`
	List     []*resource.Quantity         `json:"list"`
	Limits   map[string]resource.Quantity `json:"limits"`
	Nested   *object                      `json:"nested"`
	Untyped  any                          `json:"untyped"`
}

type embedded struct {
	Max resource.Quantity `json:"max"`
}

func TestCheckTree(t *testing.T) {
	const hostile = "1e-300000000"
	for name, tc := range map[string]struct {
		tree any
		ok   bool
	}{
		"a label":        {map[string]any{"labels": map[string]any{"commit": "1e23456"}}, true},
		"no field":       {map[string]any{"other": hostile}, true},
		"untyped":        {map[string]any{"untyped": hostile}, true},
		"small":          {map[string]any{"max": "1e3", "list": []any{"1e-3", "1234567e89"}}, true},
		"embedded":       {map[string]any{"max": hostile}, false},
		"in other case":  {map[string]any{"MAX": hostile}, false},
		"in a list":      {map[string]any{"list": []any{"1", "+1.5E+300000000"}}, false},
		"in a map":       {map[string]any{"limits": map[string]any{"cpu": strings.Repeat("1", 5000) + "Ki"}}, false},
		"nested":         {map[string]any{"nested": map[string]any{"nested": map[string]any{"max": "1e300000000"}}}, false},
		"another shape":  {map[string]any{"limits": []any{hostile}, "list": hostile}, true},
		"a list instead": {map[string]any{"max": []any{hostile}}, false},
	} {
		if err := CheckTree(tc.tree, reflect.TypeFor[*object]()); (err == nil) != tc.ok || err != nil && !errors.Is(err, ErrRange) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestCheckJSON_Quantity(t *testing.T) {
	for s, ok := range map[string]bool{
		"1e3": true, "1e100": true, "1234567e89": true, "1e10000": false, strings.Repeat("1", 5000): false, strings.Repeat("1", 5000) + "Ki": false, "1e-300000000": false, "+1.5E+300000000": false, "1e300000000x": true, "abcde500": true, strings.Repeat("x", 100): true,
		" 1e-300000000": false, "1e-300000000\u00a0": false,
	} {
		tree := map[string]any{"a": []any{map[string]any{"b": s}}}
		data, err := json.Marshal(tree)
		if err != nil {
			t.Fatal(err)
		}
		for _, got := range []error{CheckTree(tree, reflect.TypeFor[resource.Quantity]()), CheckJSON(data, reflect.TypeFor[resource.Quantity]())} {
			if (got == nil) != ok || got != nil && !errors.Is(got, ErrRange) {
				t.Errorf("%q: got %v", s, got)
			}
		}
	}
}

func TestCheckJSON(t *testing.T) {
	for s, ok := range map[string]bool{
		`{"limits":{"a":"1e3"},"max":1e-300,"labels":{"a":"1e23456","1e-300000000":"b"}}`: true,
		`{"limits":{"a":"1e-300000000"}}`:                                                 false,
		`{"labels":{"a":"1e-300000000"}}`:                                                 true,
		`{"max":1e-300000000}`:                                                            false,
		`{"nested":{"max":1E+300000000}}`:                                                 false,
		`{"max":1e-300000000,"max":1}`:                                                    false,
		`{"labels":{"a":"1e-300000000"},"labels":{}}`:                                     true,
		`{"max":{"x":[1e-300000000]}}`:                                                    false,
		`{"other":{"max":1e-300000000},"max":1e-300000000}`:                               false,
		`{"max":"1\u0065-300000000"}`:                                                     false,
		`{"max":"1e\u002d300000000"}`:                                                     false,
		`{"max":"\u001b"}`:                                                                true,
		`{"max":` + strings.Repeat("1", 5000) + `}`:                                       false,
		`{"max":"` + strings.Repeat("1", 5000) + `Ki"}`:                                   false,
		`{"max":"` + strings.Repeat("x", 5000) + `"}`:                                     true,
		`{"list":[[{"x":1}],"1","1e-300000000"],"max":"1"}`:                               false,
		`{"untyped":[{"x":["1e-300000000"]}],"max":"1e12"}`:                               true,
		`e`: false, ``: false, `\`: false, `{"a":"1e-300000000"`: false, `{"max":"1",}`: false, `{"other":[}`: false,
		strings.Repeat(`{"nested":`, 1<<20): false, strings.Repeat(`{"max":`, 1<<20): false, `{"other":` + strings.Repeat(`[`, 1<<20): false,
	} {
		if err := CheckJSON([]byte(s), reflect.TypeFor[object]()); (err == nil) != ok {
			t.Errorf("%.80q: got %v", s, err)
		}
	}
}

// FuzzCheckJSON compares with the check of the tree.
func FuzzCheckJSON(f *testing.F) {
	f.Add([]byte(`{"max":"1e-300000000"}`))
	f.Add([]byte(`{"list":["1\u0065-30000"]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		build.Bounded(t, time.Minute, 64<<20+uint64(65536*len(data)), func() {
			var tree any
			if json.Unmarshal(data, &tree) == nil && CheckTree(tree, reflect.TypeFor[object]()) != nil && CheckJSON(data, reflect.TypeFor[object]()) == nil {
				t.Errorf("%q is not refused", data)
			}
		})
	})
}

func FuzzParse(f *testing.F) {
	f.Add("1e18")
	f.Fuzz(func(t *testing.T, s string) {
		build.Bounded(t, time.Minute, 64<<20+uint64(65536*len(s)), func() {
			if q, err := Parse(s); err == nil {
				sum := q.DeepCopy()
				sum.Add(q)
				_, _, _ = sum.String(), q.Value(), q.AsApproximateFloat64()
			}
		})
	})
}
