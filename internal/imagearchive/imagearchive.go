// Package imagearchive reads archives of container images, as "docker save" and
// "make image" write them.
package imagearchive

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// maxManifest is the most that is read of the manifest of an archive.
const maxManifest = 4 << 20

// Names returns the names of the images in an archive, in their order; those of
// one image follow each other.
func Names(path string) ([]string, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("reading the image: %s is not a regular file, and an archive is read more than once", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading the image: %w; \"make image\" builds one", err)
	}
	defer file.Close() //nolint:errcheck // only read
	names, err := Read(file)
	if err != nil {
		return nil, fmt.Errorf("reading image archive %s: %w; \"docker save\" and \"make image\" write such archives", path, err)
	}
	return names, nil
}

// Read is Names for a stream.
func Read(r io.Reader) ([]string, error) {
	archive := tar.NewReader(r)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil, errors.New("it has no manifest.json")
		}
		if err != nil {
			return nil, fmt.Errorf("it is no tar archive: %w", err)
		}
		if header.Name != "manifest.json" {
			continue
		}
		var images []struct{ RepoTags []string }
		if err := json.NewDecoder(io.LimitReader(archive, maxManifest)).Decode(&images); err != nil {
			return nil, fmt.Errorf("manifest.json: %w", err)
		}
		var out []string
		for _, image := range images {
			out = append(out, image.RepoTags...)
		}
		if len(out) == 0 {
			return nil, errors.New("its image has no name")
		}
		return out, nil
	}
}

// Canonical returns the name under which container runtimes keep an image: with
// its registry.
func Canonical(image string) string {
	first, rest, ok := strings.Cut(image, "/")
	switch {
	case !ok:
		return "docker.io/library/" + image
	case strings.ContainsAny(first, ".:") || first == "localhost":
		return first + "/" + rest
	default:
		return "docker.io/" + image
	}
}
