package cli

import (
	"strings"
	"testing"
)

func TestWrapText(t *testing.T) {
	long := strings.TrimSpace(strings.Repeat("word ", 30))
	wrapped := strings.TrimSpace(strings.Repeat("word ", 16)) + "\n" + strings.TrimSpace(strings.Repeat("word ", 14)) + "\n"
	for in, want := range map[string]string{
		"short\n":                          "short\n",
		long + "\n":                        wrapped,
		" " + long[:79] + "\n\n":           " " + long[:79] + "\n\n",
		"Examples:\n  " + long + "\n":      "Examples:\n  " + long + "\n",
		"Usage:\n  a\n\n" + long + "\n":    "Usage:\n  a\n\n" + wrapped,
		"Options:\n    --a='" + long + "'": "Options:\n    --a='" + long + "'",
		"  name      " + long + "\n":       "  name      " + long + "\n",
		"\t" + long[:74] + "\n":            "\t" + long[:69] + "\n\tword\n",
		strings.Repeat("x", 100) + " y\n":  strings.Repeat("x", 100) + "\ny\n",
	} {
		if got := wrapText(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}
