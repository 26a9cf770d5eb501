package quantity

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
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

func TestCheckTree(t *testing.T) {
	tree := func(s string) any { return map[string]any{"a": []any{map[string]any{"b": s}}} }
	for s, ok := range map[string]bool{
		"1e3": true, "1e100": true, "1234567e89": true, "1e10000": false, strings.Repeat("1", 5000): false, strings.Repeat("1", 5000) + "Ki": false, "1e-300000000": false, "+1.5E+300000000": false, "1e300000000x": true, "abcde500": true, strings.Repeat("x", 100): true,
	} {
		if err := CheckTree(tree(s)); (err == nil) != ok {
			t.Errorf("%q: got %v", s, err)
		}
	}
}

func TestCheckJSON(t *testing.T) {
	for s, ok := range map[string]bool{
		`{"a":[{"b":"1e3"}],"c":1e-300,"d":"abcde12345","e":"1e-00003"}`: true,
		`{"a":[{"b":"1e-300000000"}]}`:                                   false,
		`{"a":1e-300000000}`:                                             false,
		`[1E+300000000]`:                                                 false,
		`{"a":1e-300000000,"a":1}`:                                       false,
		`{"a":"1\u0065-300000000"}`:                                      false,
		`{"a":"1e\u002d300000000"}`:                                      false,
		`{"a":"\u001b"}`:                                                 true,
		`{"a":` + strings.Repeat("1", 5000) + `}`:                        false,
		`{"a":"` + strings.Repeat("1", 5000) + `Ki"}`:                    false,
		`{"a":"` + strings.Repeat("x", 5000) + `"}`:                      true,
		`e`: true, ``: true, `\`: true,
	} {
		if err := CheckJSON([]byte(s)); (err == nil) != ok {
			t.Errorf("%.80q: got %v", s, err)
		}
	}
}

// FuzzCheckJSON compares with the check of all tokens.
func FuzzCheckJSON(f *testing.F) {
	f.Add([]byte(`{"a":"1e-300000000"}`))
	f.Add([]byte(`["1\u0065-30000"]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var tree any
		if json.Unmarshal(data, &tree) == nil && CheckTree(tree) != nil && CheckJSON(data) == nil {
			t.Errorf("%q is not refused", data)
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add("1e18")
	f.Fuzz(func(_ *testing.T, s string) {
		if q, err := Parse(s); err == nil {
			sum := q.DeepCopy()
			sum.Add(q)
			_, _, _ = sum.String(), q.Value(), q.AsApproximateFloat64()
		}
	})
}
