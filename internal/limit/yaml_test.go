package limit

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/karmada-toolkit/karmada/internal/build"
)

// bomb returns YAML in which each alias repeats the ten before it.
func bomb(depth int) string {
	var out strings.Builder
	out.WriteString("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n")
	for i := 1; i < depth; i++ {
		name, before := string(rune('0'+i)), "*a"+string(rune('0'+i-1))
		out.WriteString("a" + name + ": &a" + name + " [" + strings.TrimSuffix(strings.Repeat(before+",", 10), ",") + "]\n")
	}
	return out.String()
}

func TestYAMLToJSON(t *testing.T) {
	for text, want := range map[string]string{
		"a: 1":                              `{"a":1}`,
		"a: &x 1":                           `{"a":1}`,
		"script: |\n  f(&x) ; g *x\n  y *x": `{"script":"f(\u0026x) ; g *x\ny *x"}`,
		`a: "&x *x"`:                        `{"a":"\u0026x *x"}`,
		"a: b # &x *x":                      `{"a":"b"}`,
		"a: '* * * * *'\nb: x & y &z":       `{"a":"* * * * *","b":"x \u0026 y \u0026z"}`,
	} {
		if got, err := YAMLToJSON([]byte(text)); err != nil || string(got) != want {
			t.Errorf("%q: got %s, %v", text, got, err)
		}
	}
	build.Bounded(t, time.Minute, 64<<20, func() {
		for _, text := range []string{
			bomb(9), "a: &a 1\nb: *a", "a: &a {b: 1}\nc:\n  <<: *a", "[&a b,*a]", "- &a x\n- *a\n", "a: 1\n---\nb: &b 1\nc: *b", "a: &a " + strings.Repeat("x", 100_000) + "\nb: [" + strings.Repeat("*a,", 5000) + "]",
		} {
			if _, err := YAMLToJSON([]byte(text)); !errors.Is(err, ErrAlias) {
				t.Errorf("%.64q: got %v", text, err)
			}
		}
		for _, text := range []string{strings.Repeat("[", 600) + strings.Repeat("]", 600), strings.Repeat("[", 1_000_000), strings.Repeat("a", MaxYAMLBytes+1), "[" + strings.Repeat("1,", MaxValues) + "]", strings.Repeat("-\n", MaxValues+1)} {
			if _, err := YAMLToJSON([]byte(text)); err == nil {
				t.Errorf("%.64q: there is no error", text)
			}
		}
	})
}

// FuzzYAMLToJSON converts text in proportion to its length: no alias passes.
func FuzzYAMLToJSON(f *testing.F) {
	for _, text := range []string{bomb(9), "a: &a 1\nb: *a", "? &a b\n: *a\n", "!!str &a x: *a", "- - - - &a\n- *a", "%YAML 1.1\n---\n&a [*a]", "a: |2\n  &x\n *x\n", "{a: &a b,c: *a}", "\"\\x26a\": *a"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		build.Bounded(t, time.Minute, 16<<20+uint64(4096*len(text)), func() {
			if out, err := YAMLToJSON([]byte(text)); err == nil && len(out) > 64+16*len(text) {
				t.Errorf("%d bytes become %d", len(text), len(out))
			}
		})
	})
}
