package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// all are the platforms of a release.
func all() []platform {
	var out []platform
	for _, goos := range []string{"darwin", "linux", "windows"} {
		for _, arch := range []string{"amd64", "arm64"} {
			out = append(out, platform{goos, arch})
		}
	}
	return out
}

// fixture returns a release whose programs are a small one of this platform.
func fixture(t *testing.T, platforms ...platform) release {
	t.Helper()
	dir := t.TempDir()
	source, program := filepath.Join(dir, "main.go"), filepath.Join(dir, "program")
	if err := os.WriteFile(source, []byte("package main\n\nfunc main() {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", "build", "-ldflags", "-s -w", "-o", program, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, p := range platforms {
		if err := os.MkdirAll(filepath.Join(dir, p.String()), 0o700); err != nil {
			t.Fatal(err)
		}
		for _, name := range programs() {
			if err := os.Symlink(program, filepath.Join(dir, p.String(), p.executable(name))); err != nil {
				t.Fatal(err)
			}
		}
	}
	return release{
		programs: dir, license: "../../LICENSE", manifest: "../../krew-manifest.yaml", out: filepath.Join(t.TempDir(), "dist"),
		version: "v1.2.3", url: "https://example.com/v1.2.3", time: time.Unix(1700000000, 0).UTC(),
	}
}

// A release of every platform is built once: it takes long with the race detector.
func TestBuild_EveryPlatform(t *testing.T) {
	r := fixture(t, all()...)
	if err := r.build(); err != nil {
		t.Fatal(err)
	}
	t.Run("every file has its checksum", func(t *testing.T) { checkSums(t, r) })
	t.Run("the manifest has a platform for each archive", func(t *testing.T) { checkManifest(t, r) })
}

func checkSums(t *testing.T, r release) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(r.out, "checksums.txt"))
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string]string{}
	for line := range strings.Lines(string(data)) {
		sum, name, ok := strings.Cut(strings.TrimSpace(line), "  ")
		if !ok {
			t.Fatalf("line %q", line)
		}
		sums[name] = sum
	}
	entries, err := os.ReadDir(r.out)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() == "checksums.txt" {
			continue
		}
		content, err := os.ReadFile(filepath.Join(r.out, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if sums[e.Name()] != digest(content) {
			t.Errorf("%s has checksum %q", e.Name(), sums[e.Name()])
		}
	}
	for _, want := range []string{
		"karmadactl-darwin-arm64.tar.gz", "kubectl-karmada-linux-amd64.tar.gz", "kubectl-karmada-windows-arm64.zip",
		"kubectl-karmada-linux-amd64.cdx.json", "krew-manifest.yaml",
	} {
		if sums[want] == "" {
			t.Errorf("there is no %s", want)
		}
	}
}

func TestBuild_SameInputGivesSameFiles(t *testing.T) {
	r := fixture(t, platform{"linux", "amd64"}, platform{"windows", "amd64"})
	var sums []string
	for range 2 {
		if err := r.build(); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(filepath.Join(r.out, "checksums.txt"))
		if err != nil {
			t.Fatal(err)
		}
		sums = append(sums, string(data))
	}
	if diff := cmp.Diff(sums[0], sums[1]); diff != "" {
		t.Error(diff)
	}
}

func checkManifest(t *testing.T, r release) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(r.out, "krew-manifest.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var manifest struct {
		APIVersion, Kind string
		Metadata         struct{ Name string }
		Spec             struct {
			Version, ShortDescription, Description, Homepage string
			Platforms                                        []krewPlatform
		}
	}
	if err := yaml.Unmarshal(data, &manifest); err != nil {
		t.Fatal(err)
	}
	if manifest.Metadata.Name != "karmada" || manifest.Spec.Version != "v1.2.3" || manifest.Spec.ShortDescription == "" || manifest.Spec.Description == "" {
		t.Errorf("the manifest is %+v", manifest)
	}
	if len(manifest.Spec.Platforms) != 6 {
		t.Fatalf("the manifest has %d platforms", len(manifest.Spec.Platforms))
	}
	for _, p := range manifest.Spec.Platforms {
		name, ok := strings.CutPrefix(p.URI, r.url+"/")
		if !ok {
			t.Errorf("%s is not below %s", p.URI, r.url)
		}
		content, err := os.ReadFile(filepath.Join(r.out, name))
		if err != nil {
			t.Fatal(err)
		}
		if p.SHA256 != digest(content) {
			t.Errorf("%s has another checksum than its archive", name)
		}
		windows := p.Selector.MatchLabels["os"] == "windows"
		if windows != strings.HasSuffix(p.Bin, ".exe") || windows != strings.HasSuffix(name, ".zip") {
			t.Errorf("%v is installed from %s as %s", p.Selector, name, p.Bin)
		}
	}
}

func TestBillOfMaterials_ListsTheModules(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	data, err := billOfMaterials(self, "kubectl-karmada", "v1.2.3", time.Unix(0, 0).UTC())
	if err != nil {
		t.Fatal(err)
	}
	var got bill
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	has := func(name string) bool {
		return slices.ContainsFunc(got.Components, func(c component) bool {
			return c.Name == name && c.Version != "" && strings.HasPrefix(c.PURL, "pkg:golang/"+name+"@")
		})
	}
	for _, want := range []string{"std", "sigs.k8s.io/yaml"} {
		if !has(want) {
			t.Errorf("%s is not listed", want)
		}
	}
	if got.Format != "CycloneDX" || got.Metadata.Component.Version != "v1.2.3" || len(got.Dependencies[0].DependsOn) != len(got.Components) {
		t.Errorf("the bill is of %+v", got.Metadata.Component)
	}
}

func TestBuild_RefusesWhatKrewWouldRefuse(t *testing.T) {
	for _, version := range []string{"", "1.2.3", "v1.2", "0123abc", "v1.2.3+build"} {
		r := fixture(t, platform{"linux", "amd64"})
		r.version = version
		if err := r.build(); err == nil || !strings.Contains(err.Error(), "VERSION") {
			t.Errorf("version %q: %v", version, err)
		}
	}
	r := fixture(t, platform{"windows", "arm64"})
	if err := os.Remove(filepath.Join(r.programs, "windows-arm64", "kubectl-karmada.exe")); err != nil {
		t.Fatal(err)
	}
	if err := r.build(); err == nil || !strings.Contains(err.Error(), "windows-arm64") {
		t.Errorf("a missing program: %v", err)
	}
}
