package limit

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/karmada-toolkit/karmada/internal/build"
)

func TestReadManifest(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	for name, tc := range map[string]struct{ text, want string }{
		"no aliases":          {text: "a: 1"},
		"some aliases":        {text: "a: &a {b: 1}\nc:\n  <<: *a\nd: [*a, *a]"},
		"a large document":    {text: "a: &a 1\nb: *a\nc:\n" + strings.Repeat("- 1\n", MaxValues+1)},
		"a bundle":            {text: strings.Repeat("a: &a x\nb: *a\nc: |\n  &a *a\n---\n", 10_000)},
		"JSON values":         {text: `{"a": "&a *a"}` + "\n" + `{"b": "&a *a"}`},
		"a bomb":              {text: bomb(9), want: "aliases repeat more than 262144 values"},
		"a bomb in UTF-16":    {text: "\xff\xfe" + strings.Join(strings.Split(bomb(9), ""), "\x00") + "\x00", want: "aliases repeat more than 262144 values"},
		"a bomb behind JSON":  {text: "{\"a\": 1}\n---\n" + bomb(9), want: "aliases repeat"},
		"a bomb of merges":    {text: "a: &a {x: 1}\nb: &b {" + strings.Repeat("<<: *a,", 2000) + "}\nc: [" + strings.Repeat("*b,", 2000) + "]", want: "aliases repeat"},
		"a bomb of text":      {text: "a: &a " + long + "\nb: [" + strings.Repeat("*a,", 5000) + "]", want: "aliases repeat"},
		"a bomb in documents": {text: strings.Repeat("a: &a "+long+"\nb: [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\n---\n", 30), want: "aliases repeat"},
		"an anchor in itself": {text: "a: &a [*a]", want: "reading f"},
		"lines":               {text: strings.Repeat("-\n", MaxLines+1), want: "split it into several files"},
		"brackets":            {text: strings.Repeat("[", 10_000), want: ""},
		"nested with aliases": {text: strings.Repeat("[", 100_000) + "&a x,*a", want: "reading f"},
	} {
		t.Run(name, func(t *testing.T) {
			build.Bounded(t, time.Minute, 256<<20, func() {
				_, err := ReadManifest("f", strings.NewReader(tc.text))
				if (err == nil) != (tc.want == "") || err != nil && (!strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "f")) {
					t.Errorf("got %v, want %q", err, tc.want)
				}
			})
		})
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func TestRead(t *testing.T) {
	if text, err := Read("f", strings.NewReader("x"), 1); err != nil || string(text) != "x" {
		t.Errorf("got %q, %v", text, err)
	}
	if _, err := ReadManifest("f", endless{}); err == nil || err.Error() != "reading f: it has more than 64 MiB: use less, or several files" {
		t.Errorf("got %v", err)
	}
	if _, err := ReadManifest(filepath.Join(t.TempDir(), "f"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestWithin(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	if got, err := Within(ctx, "f", func() (int, error) { return 1, nil }); got != 1 || err != nil {
		t.Errorf("got %d, %v", got, err)
	}
	block := make(chan struct{})
	defer close(block)
	cancel()
	if _, err := Within(ctx, "f", func() (int, error) { <-block; return 1, nil }); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "reading f") {
		t.Errorf("got %v", err)
	}
}

// FuzzReadManifest converts what passes in proportion to its length and the limit.
func FuzzReadManifest(f *testing.F) {
	for _, text := range []string{bomb(4), bomb(9), "a: &a 1\nb: *a", "a: &a [*a]", "{\"a\": 1}", "a: &a {<<: *a}", "a: &a b\n---\nc: *a"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		build.Bounded(t, time.Minute, 512<<20+uint64(65536*len(text)), func() {
			if _, err := ReadManifest("f", strings.NewReader(text)); err != nil {
				return
			}
			if out, err := yaml.YAMLToJSON([]byte(text)); err == nil && len(out) > 16*(len(text)+MaxValues*64) {
				t.Errorf("%d bytes become %d", len(text), len(out))
			}
		})
	})
}
