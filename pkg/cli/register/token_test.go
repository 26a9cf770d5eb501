package register

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReadToken(t *testing.T) {
	const token = "abcdef.0123456789abcdef"
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, tc := range map[string]struct{ token, file, stdin, want, err string }{
		"the flag":                {token: token, want: token},
		"neither":                 {},
		"a file":                  {file: file("one", token+"\n"), want: token},
		"standard input":          {file: "-", stdin: "  " + token + "\r\n", want: token},
		"standard input, --token": {token: "-", stdin: token, want: token},
		"both":                    {token: token, file: file("two", token), err: "--token and --token-file cannot be used together"},
		"no such file":            {file: filepath.Join(dir, "missing"), err: "no such file"},
		"an empty file":           {file: file("empty", "\n"), err: "holds no token"},
		"empty standard input":    {file: "-", err: "standard input holds no token"},
		"something else":          {file: file("else", "two secret\nlines"), err: "holds more than a token"},
		"something large":         {file: file("large", strings.Repeat("secret", 1<<20)), err: "holds more than a token"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := readToken(tc.token, tc.file, strings.NewReader(tc.stdin))
			if got != tc.want || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("got %q, %v", got, err)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("the error repeats the file: %v", err)
			}
		})
	}
}
