// Command image builds the image of the control plane as an archive that docker,
// podman, kind and containerd load. The image holds one program and a link to it
// for each role, so that manifests written for one image per role keep working.
package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"runtime"
	"time"
)

// roles are the names under which the program is found in /bin.
var roles = []string{
	"karmada-agent", "karmada-aggregated-apiserver", "karmada-controller-manager", "karmada-descheduler",
	"karmada-metrics-adapter", "karmada-operator", "karmada-scheduler", "karmada-scheduler-estimator",
	"karmada-search", "karmada-webhook",
}

// nonRoot is the user of the image.
const nonRoot = "65532"

func main() {
	program := flag.String("program", "bin/karmada", "the static program")
	out := flag.String("out", "_output/karmada.tar", "the archive to write")
	tag := flag.String("tag", "karmada/karmada:latest", "the name of the image")
	release := flag.String("version", "v0.0.0-master", "the version, for the labels")
	commit := flag.String("commit", "", "the commit, for the labels")
	arch := flag.String("arch", runtime.GOARCH, "the architecture of the program")
	flag.Parse()
	if err := build(*program, *out, *tag, *release, *commit, *arch); err != nil {
		log.Fatal(err)
	}
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

func build(program, out, tag, version, commit, arch string) error {
	content, err := layer(program)
	if err != nil {
		return err
	}
	var cfg configuration
	cfg.OS, cfg.Architecture, cfg.Created = "linux", arch, epoch
	cfg.Config.User = nonRoot
	cfg.Config.Env = []string{"PATH=/bin"}
	cfg.Config.Entrypoint = []string{"/bin/karmada"}
	cfg.Config.Labels = map[string]string{
		"org.opencontainers.image.title":    "karmada",
		"org.opencontainers.image.version":  version,
		"org.opencontainers.image.revision": commit,
		"org.opencontainers.image.licenses": "Apache-2.0",
		"org.opencontainers.image.source":   "https://github.com/karmada-toolkit/karmada",
	}
	cfg.RootFS.Type = "layers"
	cfg.RootFS.DiffIDs = []string{"sha256:" + digest(content)}
	encoded, err := json.Marshal(cfg)
	if err != nil {
		return fmt.Errorf("encoding the configuration: %w", err)
	}
	configName, layerName := digest(encoded)+".json", digest(content)+"/layer.tar"
	manifest, err := json.Marshal([]map[string]any{{"Config": configName, "RepoTags": []string{tag}, "Layers": []string{layerName}}})
	if err != nil {
		return fmt.Errorf("encoding the manifest: %w", err)
	}
	archive, err := pack([]entry{
		{&tar.Header{Name: configName, Mode: 0o644}, encoded},
		{&tar.Header{Name: layerName, Mode: 0o644}, content},
		{&tar.Header{Name: "manifest.json", Mode: 0o644}, manifest},
	})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(out), 0o750); err != nil {
		return fmt.Errorf("writing %s: %w", out, err)
	}
	if err := os.WriteFile(out, archive, 0o600); err != nil {
		return fmt.Errorf("writing %s: %w", out, err)
	}
	fmt.Printf("%s: %s, linux/%s, %.1f MB\n", out, tag, arch, float64(len(archive))/1e6)
	return nil
}

func digest(data []byte) string { return fmt.Sprintf("%x", sha256.Sum256(data)) }

// epoch is the time of everything in the image, so that the same program gives
// the same image.
var epoch = time.Unix(0, 0).UTC()

// layer returns the files of the image.
func layer(program string) ([]byte, error) {
	data, err := os.ReadFile(program)
	if err != nil {
		return nil, fmt.Errorf("reading the program: %w", err)
	}
	entries := []entry{
		{&tar.Header{Name: "bin/", Typeflag: tar.TypeDir, Mode: 0o755}, nil},
		{&tar.Header{Name: "tmp/", Typeflag: tar.TypeDir, Mode: 0o1777}, nil},
		{&tar.Header{Name: "bin/karmada", Mode: 0o755}, data},
	}
	for _, role := range roles {
		entries = append(entries, entry{&tar.Header{Name: "bin/" + role, Typeflag: tar.TypeSymlink, Linkname: "karmada", Mode: 0o777}, nil})
	}
	return pack(entries)
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
