// Command image builds the image of the control plane as an archive that docker,
// podman, kind and containerd load. The image holds one program and a link to it
// for each role, and has a name for each role, so that what was written for one
// image per role keeps working.
package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/karmada-toolkit/karmada/internal/version"
)

// roles are the names under which the program is found in /bin.
var roles = []string{
	"karmada-agent", "karmada-aggregated-apiserver", "karmada-cluster-problem-detector", "karmada-controller-manager",
	"karmada-descheduler",
	"karmada-metrics-adapter", "karmada-operator", "karmada-scheduler", "karmada-scheduler-estimator",
	"karmada-search", "karmada-webhook",
}

// nonRoot is the user of the image. A role that serves a port below 1024 can do
// so where the container runtime allows it to every user, as containerd 2 and
// Docker do.
const nonRoot = "65532"

// image is what an image is built from.
type image struct {
	// program is the path of the static program, out that of the archive.
	program, out string
	// repository is the name of the image without its tag.
	repository string
	// version of the program, commit it was built from, arch it runs on.
	version, commit, arch string
	// created is the time of the image in seconds since 1970.
	created int64
}

func main() {
	var i image
	flag.StringVar(&i.program, "program", "bin/karmada", "the static program")
	flag.StringVar(&i.out, "out", "_output/karmada.tar", "the archive to write")
	flag.StringVar(&i.repository, "repository", "karmada/karmada", "the name of the image without its tag; the images of the roles are its neighbours")
	flag.StringVar(&i.version, "version", "v0.0.0-master", "the version, for the tag and the labels")
	flag.StringVar(&i.commit, "commit", "", "the commit, for the labels")
	flag.StringVar(&i.arch, "arch", runtime.GOARCH, "the architecture of the program")
	flag.Int64Var(&i.created, "created", 0, "the time of the image in seconds since 1970; that of the commit gives the same image again")
	flag.Parse()
	if err := i.build(); err != nil {
		log.Fatal(err)
	}
}

// names of the image: its own with the version, and those of the roles with the
// release, under which an installation pulls them.
func (i image) names() []string {
	tag := func(text string) string { return ":" + strings.ReplaceAll(text, "+", "-") }
	out := []string{i.repository + tag(i.version)}
	neighbours := ""
	if at := strings.LastIndexByte(i.repository, '/'); at >= 0 {
		neighbours = i.repository[:at+1]
	}
	for _, role := range roles {
		out = append(out, neighbours+role+tag(version.Info{GitVersion: i.version}.Release()))
	}
	return out
}

// configuration is the part of the image specification that this image uses.
type configuration struct {
	Architecture string    `json:"architecture"`
	OS           string    `json:"os"`
	Created      time.Time `json:"created"`
	Config       struct {
		User       string            `json:"User"`
		Env        []string          `json:"Env"`
		Entrypoint []string          `json:"Entrypoint"`
		Labels     map[string]string `json:"Labels"`
	} `json:"config"`
	RootFS struct {
		Type    string   `json:"type"`
		DiffIDs []string `json:"diff_ids"`
	} `json:"rootfs"`
}

func (i image) build() error {
	content, err := layer(i.program)
	if err != nil {
		return err
	}
	encoded, err := json.Marshal(i.configuration(digest(content)))
	if err != nil {
		return fmt.Errorf("encoding the configuration: %w", err)
	}
	configName, layerName := digest(encoded)+".json", digest(content)+"/layer.tar"
	manifest, err := json.Marshal([]map[string]any{{"Config": configName, "RepoTags": i.names(), "Layers": []string{layerName}}})
	if err != nil {
		return fmt.Errorf("encoding the manifest: %w", err)
	}
	archive, err := pack([]entry{
		{&tar.Header{Name: "manifest.json", Mode: 0o644}, manifest},
		{&tar.Header{Name: configName, Mode: 0o644}, encoded},
		{&tar.Header{Name: layerName, Mode: 0o644}, content},
	})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(i.out), 0o750); err != nil {
		return fmt.Errorf("writing %s: %w", i.out, err)
	}
	if err := os.WriteFile(i.out, archive, 0o600); err != nil {
		return fmt.Errorf("writing %s: %w", i.out, err)
	}
	fmt.Printf("%s: %s, linux/%s, %.1f MB\n", i.out, i.names()[0], i.arch, float64(len(archive))/1e6)
	return nil
}

func (i image) configuration(layer string) configuration {
	var cfg configuration
	cfg.OS, cfg.Architecture, cfg.Created = "linux", i.arch, time.Unix(i.created, 0).UTC()
	cfg.Config.User = nonRoot
	cfg.Config.Env = []string{"PATH=/bin"}
	cfg.Config.Entrypoint = []string{"/bin/karmada"}
	cfg.Config.Labels = map[string]string{
		"org.opencontainers.image.title":       "karmada",
		"org.opencontainers.image.description": "Every role of a federation's control plane in one program",
		"org.opencontainers.image.version":     i.version,
		"org.opencontainers.image.revision":    i.commit,
		"org.opencontainers.image.licenses":    "Apache-2.0",
		"org.opencontainers.image.source":      "https://github.com/karmada-toolkit/karmada",
	}
	cfg.RootFS.Type = "layers"
	cfg.RootFS.DiffIDs = []string{"sha256:" + layer}
	return cfg
}

func digest(data []byte) string { return fmt.Sprintf("%x", sha256.Sum256(data)) }

// epoch is the time of every file in the image, so that the same program gives the
// same layer.
var epoch = time.Unix(0, 0).UTC()

// layer returns the files of the image.
func layer(program string) ([]byte, error) {
	data, err := os.ReadFile(program)
	if err != nil {
		return nil, fmt.Errorf("reading the program: %w", err)
	}
	if err := static(data); err != nil {
		return nil, fmt.Errorf("%s: %w", program, err)
	}
	entries := []entry{
		{&tar.Header{Name: "bin/", Typeflag: tar.TypeDir, Mode: 0o755}, nil},
		{&tar.Header{Name: "tmp/", Typeflag: tar.TypeDir, Mode: 0o1777}, nil},
		{&tar.Header{Name: "etc/", Typeflag: tar.TypeDir, Mode: 0o755}, nil},
		{&tar.Header{Name: "etc/passwd", Mode: 0o644}, []byte("root:x:0:0:root:/:/none\nnonroot:x:" + nonRoot + ":" + nonRoot + ":nonroot:/tmp:/none\n")},
		{&tar.Header{Name: "bin/karmada", Mode: 0o755}, data},
	}
	for _, role := range roles {
		entries = append(entries, entry{&tar.Header{Name: "bin/" + role, Typeflag: tar.TypeSymlink, Linkname: "karmada", Mode: 0o777}, nil})
	}
	return pack(entries)
}

// static returns why a program needs more than itself to run.
func static(program []byte) error {
	file, err := elf.NewFile(bytes.NewReader(program))
	if err != nil {
		return fmt.Errorf("it is no program for Linux: %w", err)
	}
	for _, p := range file.Progs {
		if p.Type == elf.PT_INTERP {
			return errors.New("it needs shared libraries; build it with CGO_ENABLED=0")
		}
	}
	return nil
}

// entry is a file of an archive.
type entry struct {
	*tar.Header
	data []byte
}

func pack(entries []entry) ([]byte, error) {
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, e := range entries {
		e.ModTime, e.Size = epoch, int64(len(e.data))
		if err := w.WriteHeader(e.Header); err != nil {
			return nil, fmt.Errorf("packing %s: %w", e.Name, err)
		}
		if _, err := w.Write(e.data); err != nil {
			return nil, fmt.Errorf("packing %s: %w", e.Name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("packing: %w", err)
	}
	return buf.Bytes(), nil
}
