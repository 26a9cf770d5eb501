package plaintext

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/karmada-toolkit/karmada/internal/build"
)

func TestEscape(t *testing.T) {
	for name, tc := range map[string]struct{ in, want string }{
		"plain text stays":       {"failed Ä/ö 中 🚀\n\tagain", "failed Ä/ö 中 🚀\n\tagain"},
		"escape sequences":       {"a\x1b[2Jb\x07", `a\x1b[2Jb\x07`},
		"a carriage return":      {"good\rbad", `good\rbad`},
		"the eight-bit control":  {"\u009b1m", `\u009b1m`},
		"text direction":         {"a\u202eb", `a\u202eb`},
		"line separators":        {"a\u2028b", `a\u2028b`},
		"invalid bytes":          {"a\xffb", `a\xffb`},
		"delete":                 {"a\x7fb", `a\x7fb`},
		"the replacement itself": {"a\ufffdb", "a\ufffdb"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Escape(tc.in); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestEscapeLine(t *testing.T) {
	if got, want := EscapeLine("a\n\tb\x1b"), `a  b\x1b`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func FuzzWriter(f *testing.F) {
	f.Add([]byte("a\x1b[2J中\u202e\xff"), 3)
	f.Fuzz(func(t *testing.T, text []byte, at int) {
		build.Bounded(t, time.Minute, 64<<20+uint64(65536*len(text)), func() {
			at = min(max(at, 0), len(text))
			var out bytes.Buffer
			w := NewWriter(&out)
			for _, part := range [][]byte{text[:at], text[at:], []byte("\n")} {
				if n, err := w.Write(part); err != nil || n != len(part) {
					t.Fatal(n, err)
				}
			}
			got := out.String()
			if want := Escape(string(text) + "\n"); got != want {
				t.Errorf("in two writes %q, in one %q", got, want)
			}
			bad := func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }
			if strings.IndexFunc(got, bad) >= 0 || !utf8.ValidString(got) {
				t.Errorf("%q becomes %q", text, got)
			}
		})
	})
}
