package local

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/kind/pkg/cluster/nodes"
	"sigs.k8s.io/kind/pkg/cluster/nodeutils"
	"sigs.k8s.io/kind/pkg/exec"
)

// imageRepository is the name of the image of the control plane, without its tag.
const imageRepository = "karmada/karmada"

// archiveTag returns the name of the image in an archive.
func archiveTag(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("reading the image: %w; \"make image\" builds one", err)
	}
	defer file.Close() //nolint:errcheck // only read
	tag, err := tagIn(file)
	if err != nil {
		return "", fmt.Errorf("reading image archive %s: %w; \"docker save\" and \"make image\" write such archives", path, err)
	}
	return tag, nil
}

// tagIn returns the first name of the first image in an archive.
func tagIn(r io.Reader) (string, error) {
	archive := tar.NewReader(r)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return "", errors.New("it has no manifest.json")
		}
		if err != nil {
			return "", fmt.Errorf("it is no tar archive: %w", err)
		}
		if header.Name != "manifest.json" {
			continue
		}
		var images []struct{ RepoTags []string }
		if err := json.NewDecoder(archive).Decode(&images); err != nil {
			return "", fmt.Errorf("manifest.json: %w", err)
		}
		if len(images) == 0 || len(images[0].RepoTags) == 0 {
			return "", errors.New("its image has no name")
		}
		return images[0].RepoTags[0], nil
	}
}

// sideload brings the image of the control plane to nodes and returns its name. It
// is the archive that the user named, else what the nodes have from before, else the
// image of this version that the engine has.
func (s *kindStarter) sideload(ctx context.Context, hosts []nodes.Node) (string, error) {
	archive := s.image
	if archive == "" {
		if has := s.f.Kind.Image; has != "" && haveImage(ctx, hosts, has) {
			return has, nil
		}
		saved, remove, err := s.saveImage(ctx)
		if err != nil {
			return "", err
		}
		defer remove()
		archive = saved
	}
	tag, err := archiveTag(archive)
	if err != nil {
		return "", err
	}
	for _, node := range hosts {
		if err := loadArchive(node, archive); err != nil {
			return "", newSayings().explain(fmt.Errorf("loading image %s into node %s: %w", tag, node, err))
		}
	}
	return tag, s.save(func(k *kindState) { k.Image = tag })
}

func loadArchive(node nodes.Node, archive string) error {
	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // only read
	return nodeutils.LoadImageArchive(node, file)
}

// haveImage says whether all nodes have an image.
func haveImage(ctx context.Context, hosts []nodes.Node, image string) bool {
	for _, node := range hosts {
		if images, err := imagesOf(ctx, node); err != nil || !slices.Contains(images, canonical(image)) {
			return false
		}
	}
	return true
}

// saveImage writes the image of this version that the engine has to a file.
func (s *kindStarter) saveImage(ctx context.Context) (path string, remove func(), err error) {
	image := imageRepository + ":" + imageTag(s.Version)
	if !s.engine.has(ctx, image) {
		return "", nil, fmt.Errorf("%s has no image %s, from which the control plane runs: name an archive of it with --image, or build it with \"make image\"", s.engine.name, image)
	}
	dir, err := os.MkdirTemp("", "karmada-image-")
	if err != nil {
		return "", nil, fmt.Errorf("saving image %s: %w", image, err)
	}
	remove = func() { _ = os.RemoveAll(dir) }
	path = filepath.Join(dir, "image.tar")
	if _, err := s.engine.run(ctx, "save", "-o", path, image); err != nil {
		remove()
		return "", nil, fmt.Errorf("saving image %s: %w", image, err)
	}
	return path, remove, nil
}

// imageTag makes a version a tag: tags have no plus sign.
func imageTag(version string) string { return strings.ReplaceAll(version, "+", "-") }

// imagesOf returns the names of the images that a node has.
func imagesOf(ctx context.Context, node nodes.Node) ([]string, error) {
	lines, err := exec.OutputLines(node.CommandContext(ctx, "ctr", "--namespace=k8s.io", "images", "list", "-q"))
	if err != nil {
		return nil, fmt.Errorf("listing the images of node %s: %w", node, err)
	}
	return lines, nil
}

// canonical is the name under which containerd keeps an image.
func canonical(image string) string {
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

// withRepository returns the first image with a name that ends in a repository, such
// as "/etcd".
func withRepository(images []string, repository string) (string, bool) {
	for _, image := range images {
		if strings.Contains(image, "@") {
			continue
		}
		if name, _, ok := cutTag(image); ok && strings.HasSuffix(name, repository) {
			return image, true
		}
	}
	return "", false
}

// cutTag cuts an image into name and tag.
func cutTag(image string) (name, tag string, ok bool) {
	i := strings.LastIndexByte(image, ':')
	if i < 0 || strings.Contains(image[i:], "/") {
		return image, "", false
	}
	return image[:i], image[i+1:], true
}
