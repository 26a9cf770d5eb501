package imagearchive

import (
	"archive/tar"
	"bytes"
	"strings"
	"testing"
)

func TestRead(t *testing.T) {
	archive := func(files map[string]string) []byte {
		var out bytes.Buffer
		w := tar.NewWriter(&out)
		for name, content := range files {
			if err := w.WriteHeader(&tar.Header{Name: name, Size: int64(len(content)), Mode: 0o600}); err != nil {
				t.Fatal(err)
			}
			if _, err := w.Write([]byte(content)); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	for name, tc := range map[string]struct {
		data      []byte
		want, err string
	}{
		"named":       {archive(map[string]string{"manifest.json": `[{"RepoTags":["a/b:1","a/c:1"]}]`}), "a/b:1 a/c:1", ""},
		"nameless":    {archive(map[string]string{"manifest.json": `[{"RepoTags":null}]`}), "", "no name"},
		"no manifest": {archive(map[string]string{"index.json": "{}"}), "", "manifest.json"},
		"no archive":  {[]byte(strings.Repeat("what is this", 100)), "", "no tar archive"},
	} {
		t.Run(name, func(t *testing.T) {
			names, err := Read(bytes.NewReader(tc.data))
			got := strings.Join(names, " ")
			if got != tc.want || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
	if _, err := Names("/no/such/file"); err == nil || !strings.Contains(err.Error(), "make image") {
		t.Errorf("a missing file: %v", err)
	}
}

func TestCanonical(t *testing.T) {
	for image, want := range map[string]string{
		"nginx:1":                "docker.io/library/nginx:1",
		"karmada/karmada:v1":     "docker.io/karmada/karmada:v1",
		"registry.k8s.io/etcd:3": "registry.k8s.io/etcd:3",
		"localhost:5000/a/b:1":   "localhost:5000/a/b:1",
	} {
		if got := Canonical(image); got != want {
			t.Errorf("%s is %s, not %s", image, got, want)
		}
	}
}
