// Package release makes a release for this platform and installs the plugin from
// it the way krew does: by the manifest alone.
package release

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/yaml"
)

const release = "v0.0.0-test.1"

// plugin is a manifest as krew reads it.
type plugin struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Version          string     `json:"version"`
		Homepage         string     `json:"homepage"`
		ShortDescription string     `json:"shortDescription"`
		Description      string     `json:"description"`
		Platforms        []platform `json:"platforms"`
	} `json:"spec"`
}

type platform struct {
	Selector *metav1.LabelSelector       `json:"selector"`
	URI      string                      `json:"uri"`
	SHA256   string                      `json:"sha256"`
	Bin      string                      `json:"bin"`
	Files    []struct{ From, To string } `json:"files"`
}

func TestKrew_InstallsThePluginFromTheManifest(t *testing.T) {
	dist := filepath.Join(t.TempDir(), "dist")
	server := httptest.NewServer(http.FileServer(http.Dir(filepath.Dir(dist))))
	t.Cleanup(server.Close)
	build(t, dist, server.URL+"/dist")

	p := read(t, filepath.Join(dist, "krew-manifest.yaml"))
	validate(t, p)
	chosen := choose(t, p)
	store := filepath.Join(t.TempDir(), "store", p.Metadata.Name, p.Spec.Version)
	install(t, chosen, store)
	if _, err := os.Stat(filepath.Join(store, "LICENSE")); err != nil {
		t.Errorf("the license is not installed: %v", err)
	}
	bin := t.TempDir()
	link(t, p.Metadata.Name, filepath.Join(store, chosen.Bin), bin)

	t.Setenv("PATH", bin)
	out := kubectl(t, "karmada", "version")
	if !strings.HasPrefix(out, "kubectl karmada version: ") || !strings.Contains(out, `GitVersion:"`+release+`"`) {
		t.Errorf("kubectl karmada version says %q", out)
	}
	if out := kubectl(t, "karmada", "get", "--help"); !strings.Contains(out, "kubectl karmada get") {
		t.Errorf("the help does not speak of the plugin:\n%s", out)
	}
}

// build makes a release for this platform.
func build(t *testing.T, dist, url string) {
	t.Helper()
	cmd := exec.Command("../../hack/release.sh")
	cmd.Env = append(os.Environ(),
		"VERSION="+release, "PLATFORMS="+runtime.GOOS+"/"+runtime.GOARCH, "OUT="+dist, "WORK="+t.TempDir(), "URL="+url,
		"LDFLAGS=-s -w -X github.com/karmada-toolkit/karmada/internal/version.gitVersion="+release)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("making a release: %v\n%s", err, out)
	}
}

func read(t *testing.T, path string) plugin {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var p plugin
	if err := yaml.UnmarshalStrict(data, &p); err != nil {
		t.Fatal(err)
	}
	return p
}

// validate applies the rules by which krew accepts a manifest.
func validate(t *testing.T, p plugin) {
	t.Helper()
	if p.APIVersion != "krew.googlecontainertools.github.com/v1alpha2" || p.Kind != "Plugin" {
		t.Errorf("the manifest is of %s %s", p.APIVersion, p.Kind)
	}
	if !regexp.MustCompile(`^[\w-]+$`).MatchString(p.Metadata.Name) {
		t.Errorf("the name %q is not safe", p.Metadata.Name)
	}
	if !strings.HasPrefix(p.Spec.Version, "v") {
		t.Errorf("version %q does not begin with v", p.Spec.Version)
	}
	if _, err := version.ParseSemantic(p.Spec.Version); err != nil {
		t.Errorf("version %q: %v", p.Spec.Version, err)
	}
	if p.Spec.ShortDescription == "" || strings.ContainsAny(p.Spec.ShortDescription, "\r\n") {
		t.Errorf("the short description is %q", p.Spec.ShortDescription)
	}
	if len(p.Spec.Platforms) == 0 {
		t.Error("there are no platforms")
	}
	for _, one := range p.Spec.Platforms {
		if one.URI == "" || one.Bin == "" || one.Selector == nil || one.Files == nil || len(one.Files) == 0 {
			t.Errorf("platform %+v lacks something", one)
		}
		if !regexp.MustCompile(`^[a-f0-9]{64}$`).MatchString(one.SHA256) {
			t.Errorf("checksum %q", one.SHA256)
		}
	}
}

// choose returns the platform that this machine is.
func choose(t *testing.T, p plugin) platform {
	t.Helper()
	here := labels.Set{"os": runtime.GOOS, "arch": runtime.GOARCH}
	for _, one := range p.Spec.Platforms {
		selector, err := metav1.LabelSelectorAsSelector(one.Selector)
		if err != nil {
			t.Fatal(err)
		}
		if selector.Matches(here) {
			return one
		}
	}
	t.Fatalf("no platform for %v", here)
	return platform{}
}

// install downloads and unpacks the archive, checks it, and moves the files that the
// platform names.
func install(t *testing.T, p platform, store string) {
	t.Helper()
	resp, err := http.Get(p.URI)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // only read
	data, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("downloading %s: %s %v", p.URI, resp.Status, err)
	}
	if got := fmt.Sprintf("%x", sha256.Sum256(data)); got != p.SHA256 {
		t.Fatalf("the checksum of %s is %s, not %s", p.URI, got, p.SHA256)
	}
	files := unpack(t, p.URI, data)
	if err := os.MkdirAll(store, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, f := range p.Files {
		name := f.From
		content, ok := files[name]
		if !ok {
			t.Fatalf("the archive has no %s", name)
		}
		if err := os.WriteFile(filepath.Join(store, f.To, name), content.data, content.mode); err != nil {
			t.Fatal(err)
		}
	}
}

type content struct {
	data []byte
	mode os.FileMode
}

func unpack(t *testing.T, uri string, data []byte) map[string]content {
	t.Helper()
	out := map[string]content{}
	if strings.HasSuffix(uri, ".zip") {
		archive, err := zip.NewReader(strings.NewReader(string(data)), int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range archive.File {
			r, err := f.Open()
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			out[f.Name] = content{body, f.Mode()}
		}
		return out
	}
	compressed, err := gzip.NewReader(strings.NewReader(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	for archive := tar.NewReader(compressed); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		out[header.Name] = content{body, os.FileMode(header.Mode)}
	}
}

// link makes the plugin found: dashes in the names of plugins would be read as
// words of the command.
func link(t *testing.T, name, target, bin string) {
	t.Helper()
	file := "kubectl-" + strings.ReplaceAll(name, "-", "_")
	if runtime.GOOS == "windows" {
		file += ".exe"
	}
	if err := os.Symlink(target, filepath.Join(bin, file)); err != nil {
		t.Fatal(err)
	}
}

// kubectl runs a plugin as kubectl finds it: the longest name on the PATH that the
// words of the command make, with the words that are left as its arguments.
func kubectl(t *testing.T, words ...string) string {
	t.Helper()
	var name []string
	for _, w := range words {
		if strings.HasPrefix(w, "-") {
			break
		}
		name = append(name, strings.ReplaceAll(w, "-", "_"))
	}
	for n := len(name); n > 0; n-- {
		path, err := exec.LookPath("kubectl-" + strings.Join(name[:n], "-"))
		if err != nil {
			continue
		}
		out, err := exec.Command(path, slices.Clone(words[n:])...).CombinedOutput()
		if err != nil {
			t.Fatalf("kubectl %s: %v\n%s", strings.Join(words, " "), err, out)
		}
		return string(out)
	}
	t.Fatalf("kubectl finds no plugin for %v", words)
	return ""
}
