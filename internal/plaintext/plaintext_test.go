package plaintext

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/karmada-toolkit/karmada/internal/build"
)

func TestLine(t *testing.T) {
	for name, tc := range map[string]struct {
		in    string
		limit int
		want  string
	}{
		"plain text stays":            {"failed to apply Ä/ö", 100, "failed to apply Ä/ö"},
		"an escape sequence is inert": {"a\x1b[2Jb\x07\u009b1m", 100, "a[2Jb1m"},
		"line breaks become spaces":   {"a\r\nb\tc\u2028d", 100, "a  b c d"},
		"direction marks go":          {"a\u202eb\u200bc", 100, "abc"},
		"invalid bytes go":            {"a\xff\xfeb", 100, "ab"},
		"long text is cut":            {strings.Repeat("x", 50), 10, "xxxxxxx..."},
		"a rune is not cut":           {strings.Repeat("ä", 50), 10, "äää..."},
		"a tiny limit":                {"abcdef", 0, "..."},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Line(tc.in, tc.limit); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestWithoutURLs(t *testing.T) {
	cause := &url.Error{Op: "Get", URL: `https://10.0.0.1:6443/api/v1/pods?x="y"`, Err: errors.New("dial tcp 10.0.0.1:6443: connect: connection refused")}
	unparsed := &url.Error{Op: "parse", URL: "http://user:password@proxy:port", Err: errors.New("invalid port")}
	for in, want := range map[string]string{
		fmt.Sprintf("listing pods: %v; again: %v", cause, cause):             "listing pods: dial tcp 10.0.0.1:6443: connect: connection refused; again: dial tcp 10.0.0.1:6443: connect: connection refused",
		(&url.Error{Op: "Post", URL: "https://a/token", Err: cause}).Error(): "dial tcp 10.0.0.1:6443: connect: connection refused",
		unparsed.Error():         "invalid port",
		`pods "web" not found`:   `pods "web" not found`,
		`kind "A" and "B": none`: `kind "A" and "B": none`,
		"":                       "",
	} {
		if got := WithoutURLs(in); got != want {
			t.Errorf("%s becomes %s", in, got)
		}
	}
}

func FuzzLine(f *testing.F) {
	f.Add("a\x1bb", 5)
	f.Fuzz(func(t *testing.T, s string, limit int) {
		build.Bounded(t, time.Minute, 64<<20+uint64(65536*len(s)), func() {
			limit = min(max(limit, 3), 1000)
			got := Line(s, limit)
			if len(got) > limit || !utf8.ValidString(got) || strings.IndexFunc(got, unicode.IsControl) >= 0 {
				t.Errorf("%q becomes %q", s, got)
			}
		})
	})
}
