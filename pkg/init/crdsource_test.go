package installer

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/karmada-toolkit/karmada/pkg/init/config"
)

const crdText = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a.example.org}\n"

type tarEntry struct {
	name, content string
	kind          byte
}

func archive(t *testing.T, entries ...tarEntry) []byte {
	t.Helper()
	var buf bytes.Buffer
	zip := gzip.NewWriter(&buf)
	w := tar.NewWriter(zip)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Typeflag: e.kind, Size: int64(len(e.content)), Mode: 0o644}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(e.content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func good(t *testing.T) []byte {
	t.Helper()
	return archive(t, tarEntry{"crds/", "", tar.TypeDir}, tarEntry{"crds/bases/work/a.yaml", crdText, tar.TypeReg}, tarEntry{"crds/patches/x.yaml", "patch", tar.TypeReg})
}

func TestCustomCRDs(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "crds.tar.gz")
	if err := os.WriteFile(file, good(t), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a.yaml"), []byte(crdText), 0o600); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/crds.tar.gz" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_, _ = w.Write(good(t))
	}))
	defer server.Close()
	for name, tc := range map[string]struct {
		source, err string
		n           int
	}{
		"the default is what is built in": {source: config.New().CRDs},
		"nothing":                         {},
		"an archive":                      {source: file, n: 1},
		"a directory":                     {source: dir, n: 1},
		"a URL":                           {source: server.URL + "/crds.tar.gz", n: 1},
		"a URL of nothing":                {source: server.URL + "/x", err: "failed download file. url: " + server.URL + "/x code: 404"},
		"a file of nothing":               {source: "/nowhere", err: "reading --crds"},
	} {
		t.Run(name, func(t *testing.T) {
			o := config.New()
			o.CRDs = tc.source
			got, err := customCRDs(t.Context(), o.CustomCRDs())
			if len(got) != tc.n || tc.err == "" && err != nil || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
				t.Errorf("%d definitions, %v", len(got), err)
			}
		})
	}
}

func TestUnpackCRDs_RefusesWhatDoesNotBelong(t *testing.T) {
	fine := tarEntry{"crds/bases/a.yaml", crdText, tar.TypeReg}
	for name, tc := range map[string]struct {
		entries []tarEntry
		want    string
	}{
		"a way out":       {[]tarEntry{fine, {"crds/../../etc/passwd", "", tar.TypeReg}}, "the given file contains unclean path"},
		"an absolute way": {[]tarEntry{fine, {"/etc/passwd", "", tar.TypeReg}}, "the given file contains unclean path"},
		"another file":    {[]tarEntry{fine, {"bin/x", "", tar.TypeReg}}, "the given file contains unexpected path"},
		"another dir":     {[]tarEntry{fine, {"bin/", "", tar.TypeDir}}, "the given file contains unexpected file dir"},
		"a link":          {[]tarEntry{fine, {"crds/bases/l", "", tar.TypeSymlink}}, "unknown type"},
		"nothing":         {[]tarEntry{{"crds/", "", tar.TypeDir}}, "lacking the necessary file path: crds/bases"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := unpackCRDs(bytes.NewReader(archive(t, tc.entries...))); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
	if _, err := unpackCRDs(strings.NewReader("no archive")); err == nil {
		t.Error("something that is no archive is accepted")
	}
}
