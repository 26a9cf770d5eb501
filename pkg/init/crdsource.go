package installer

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/karmada-toolkit/karmada/internal/limit"
	"github.com/karmada-toolkit/karmada/pkg/init/config"
)

const (
	// maxCRDs is how large an archive of CRDs, and what it holds, may be.
	maxCRDs = 64 << 20
	// fetchTimeout is how long the download of an archive may take.
	fetchTimeout = 60 * time.Second

	crdsRoot, crdsBases, crdsPatches = "crds", "crds/bases", "crds/patches"
)

// LoadCRDs reads the definitions that a configuration names, or returns nil for those that are built in.
func LoadCRDs(ctx context.Context, r *config.Configuration) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	return customCRDs(ctx, r.CustomCRDs())
}

// customCRDs reads the definitions that --crds names, or returns nil for those
// that are built in.
func customCRDs(ctx context.Context, source string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	if source == "" {
		return nil, nil
	}
	files, err := limit.Within(ctx, source, func() ([]namedFile, error) { return crdFiles(ctx, source) })
	if err != nil {
		return nil, err
	}
	var out []*apiextensionsv1.CustomResourceDefinition
	for _, f := range files {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(f.content, crd); err != nil {
			return nil, fmt.Errorf("reading %s of --crds %s: %w", f.name, source, err)
		}
		if crd.Kind != "CustomResourceDefinition" || crd.Name == "" {
			return nil, fmt.Errorf("reading %s of --crds %s: it is no CustomResourceDefinition", f.name, source)
		}
		out = append(out, crd)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("--crds %s has no CustomResourceDefinition in %s", source, crdsBases)
	}
	return out, nil
}

type namedFile struct {
	name    string
	content []byte
}

// crdFiles returns the files of a directory, an archive, or the archive at a URL.
func crdFiles(ctx context.Context, source string) ([]namedFile, error) {
	if strings.HasPrefix(source, "http") {
		archive, err := fetch(ctx, source)
		if err != nil {
			return nil, err
		}
		return unpackCRDs(bytes.NewReader(archive))
	}
	info, err := os.Stat(source)
	if err != nil {
		return nil, fmt.Errorf("reading --crds: %w", err)
	}
	if info.IsDir() {
		return crdsInDirectory(source)
	}
	archive, err := limit.Read(source, nil, maxCRDs)
	if err != nil {
		return nil, fmt.Errorf("reading --crds: %w", err)
	}
	return unpackCRDs(bytes.NewReader(archive))
}

func crdsInDirectory(root string) ([]namedFile, error) {
	dir := root
	if info, err := os.Stat(filepath.Join(root, filepath.FromSlash(crdsBases))); err == nil && info.IsDir() {
		dir = filepath.Join(root, filepath.FromSlash(crdsBases))
	}
	var out []namedFile
	err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || filepath.Ext(name) != ".yaml" {
			return err
		}
		content, err := limit.ReadManifest(name, nil)
		out = append(out, namedFile{name, content})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading --crds: %w", err)
	}
	return out, nil
}

// fetch downloads an archive of limited size in limited time.
func fetch(ctx context.Context, url string) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, fetchTimeout, fmt.Errorf("it took longer than %s", fetchTimeout))
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("downloading --crds: %w", err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("downloading --crds: %w", err)
	}
	defer resp.Body.Close() //nolint:errcheck // it was only read
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("failed download file. url: %s code: %d", url, resp.StatusCode)
	}
	content, err := limit.Read("--crds "+url, resp.Body, maxCRDs)
	if err != nil {
		return nil, errors.Join(err, context.Cause(ctx))
	}
	return content, nil
}

// invalidArchive begins the errors about archives.
const invalidArchive = "inValid crd tar, err: "

// unpackCRDs reads an archive without writing it anywhere. All of it must be in
// the directories that are known, under clean names.
func unpackCRDs(r io.Reader) ([]namedFile, error) {
	zip, err := gzip.NewReader(r)
	if err != nil {
		return nil, fmt.Errorf("reading the archive of --crds: %w", err)
	}
	archive := tar.NewReader(zip)
	var out []namedFile
	for left := int64(maxCRDs); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("reading the archive of --crds: %w", err)
		}
		name, err := cleanName(h)
		if err != nil {
			return nil, err
		}
		if left -= h.Size; left < 0 {
			return nil, fmt.Errorf(invalidArchive+"it holds more than %d MiB", maxCRDs>>20)
		}
		if h.Typeflag == tar.TypeDir || !strings.HasPrefix(name, crdsBases+"/") || path.Ext(name) != ".yaml" {
			continue
		}
		content, err := limit.ReadManifest(name, archive)
		if err != nil {
			return nil, fmt.Errorf("reading the archive of --crds: %w", err)
		}
		out = append(out, namedFile{name, content})
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("lacking the necessary file path: %s", crdsBases)
	}
	slices.SortFunc(out, func(a, b namedFile) int { return strings.Compare(a.name, b.name) })
	return out, nil
}

// cleanName returns the name of an entry that belongs into an archive.
func cleanName(h *tar.Header) (string, error) {
	name := cmp.Or(strings.TrimSuffix(strings.TrimPrefix(h.Name, "./"), "/"), ".")
	if name != path.Clean(name) || path.IsAbs(name) || strings.Contains(name, "..") {
		return "", fmt.Errorf(invalidArchive+"the given file contains unclean path: %s", h.Name)
	}
	switch h.Typeflag {
	case tar.TypeDir:
		if !knownCRDDir(name) {
			return "", fmt.Errorf(invalidArchive+"the given file contains unexpected file dir: %s", h.Name)
		}
	case tar.TypeReg:
		if !knownCRDDir(path.Dir(name)) {
			return "", fmt.Errorf(invalidArchive+"the given file contains unexpected path: %s", h.Name)
		}
	default:
		return "", fmt.Errorf(invalidArchive+"unknown type: %c in %s", h.Typeflag, h.Name)
	}
	return name, nil
}

func knownCRDDir(dir string) bool {
	return dir == "." || dir == crdsRoot || dir == crdsBases || strings.HasPrefix(dir, crdsBases+"/") || dir == crdsPatches
}
