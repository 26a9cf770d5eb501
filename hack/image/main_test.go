package main

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karmada-toolkit/karmada/pkg/controlplane/role"
)

func TestNames_OfTheImageAndOfTheRoles(t *testing.T) {
	got := image{repository: "docker.io/karmada/karmada", version: "v1.2.3-4-g0123abc"}.names()
	for _, want := range []string{"docker.io/karmada/karmada:v1.2.3-4-g0123abc", "docker.io/karmada/karmada-scheduler:v1.2.3"} {
		if !slices.Contains(got, want) {
			t.Errorf("%v does not have %s", got, want)
		}
	}
	if got[0] != "docker.io/karmada/karmada:v1.2.3-4-g0123abc" {
		t.Errorf("the first name is %s", got[0])
	}
}

func TestRoles_EveryRoleHasALink(t *testing.T) {
	for _, r := range role.Table() {
		if !slices.Contains(roles, "karmada-"+r.Name) {
			t.Errorf("no link for role %s", r.Name)
		}
	}
}

func TestBuild_HoldsTheProgramAndItsLinks(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "program")
	source := filepath.Join(dir, "main.go")
	if err := os.WriteFile(source, []byte("package main\nfunc main() {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "build", "-o", program, source)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	i := image{program: program, out: filepath.Join(dir, "out", "image.tar"), repository: "karmada/karmada", version: "v1.2.3", arch: "amd64"}
	if err := i.build(); err != nil {
		t.Fatal(err)
	}
	outer := unpack(t, i.out)
	var manifest []struct {
		Config   string
		RepoTags []string
		Layers   []string
	}
	if err := json.Unmarshal(outer["manifest.json"].data, &manifest); err != nil {
		t.Fatal(err)
	}
	var cfg configuration
	if err := json.Unmarshal(outer[manifest[0].Config].data, &cfg); err != nil {
		t.Fatal(err)
	}
	if cfg.Config.User == "" || cfg.Config.User == "0" {
		t.Errorf("the image runs as %q", cfg.Config.User)
	}
	if got := cfg.Config.Labels["org.opencontainers.image.version"]; got != "v1.2.3" {
		t.Errorf("the label has version %q", got)
	}
	layer := filepath.Join(dir, "layer.tar")
	if err := os.WriteFile(layer, outer[manifest[0].Layers[0]].data, 0o600); err != nil {
		t.Fatal(err)
	}
	files := unpack(t, layer)
	var links []string
	for name, f := range files {
		if f.Typeflag == tar.TypeSymlink {
			links = append(links, filepath.Base(name))
			if f.Linkname != "karmada" {
				t.Errorf("%s points at %s", name, f.Linkname)
			}
		}
	}
	slices.Sort(links)
	if diff := cmp.Diff(roles, links); diff != "" {
		t.Error(diff)
	}
	if files["bin/karmada"].Mode&0o111 == 0 {
		t.Error("the program cannot be run")
	}
}

func TestBuild_RefusesWhatIsNoStaticProgram(t *testing.T) {
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := (image{program: program, out: program + ".tar"}).build(); err == nil {
		t.Error("a script is accepted")
	}
}

type file struct {
	*tar.Header
	data []byte
}

func unpack(t *testing.T, path string) map[string]file {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // only read
	out := map[string]file{}
	for r := tar.NewReader(f); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		out[header.Name] = file{header, data}
	}
}
