package kindcluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/kind/pkg/cluster"
	"sigs.k8s.io/kind/pkg/cluster/nodes"
	"sigs.k8s.io/kind/pkg/cluster/nodeutils"
	"sigs.k8s.io/kind/pkg/exec"
	"sigs.k8s.io/kind/pkg/log"

	"github.com/karmada-toolkit/karmada/internal/imagearchive"
	"github.com/karmada-toolkit/karmada/internal/progress"
	"github.com/karmada-toolkit/karmada/internal/wait"
	"github.com/karmada-toolkit/karmada/pkg/local/federation"
)

// imageRepository is the name of the image of the control plane, without its tag.
const imageRepository = "karmada/karmada"

// archiveTag returns the name of the image in an archive.
func archiveTag(path string) (string, error) {
	names, err := imagearchive.Names(path)
	if err != nil {
		return "", err
	}
	return names[0], nil
}

// images loads the image of the control plane into nodes.
type images struct {
	record *record
	engine engine
	// archive is the path of an archive with the image, as the user gave it.
	archive string
	// version of this program.
	version string
}

// load makes sure that nodes have the image of the control plane and returns its
// name. It is that of the archive that the user gave, else what the nodes have from
// before, else the image of this version that the engine has.
func (s *images) load(ctx context.Context, hosts []nodes.Node) (string, error) {
	archive := s.archive
	if archive == "" {
		if has := s.record.image(); has != "" && haveImage(ctx, hosts, has) {
			return has, nil
		}
		saved, remove, err := s.save(ctx)
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
			return "", newLibraryLog().explain(fmt.Errorf("loading image %s into node %s: %w", tag, node, err))
		}
	}
	return tag, s.record.update(func(k *federation.Kind) { k.Image = tag })
}

func loadArchive(node nodes.Node, archive string) error {
	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // only read
	return nodeutils.LoadImageArchive(node, file)
}

// haveImage reports whether all nodes have an image.
func haveImage(ctx context.Context, hosts []nodes.Node, image string) bool {
	for _, node := range hosts {
		if images, err := imagesOf(ctx, node); err != nil || !slices.Contains(images, imagearchive.Canonical(image)) {
			return false
		}
	}
	return true
}

// checkImages makes sure that the images exist that new clusters are made from, before anything is created.
func (r *Runtime) checkImages(ctx context.Context) error {
	var missing []string
	for _, short := range r.record.clusters() {
		if complete, _ := r.record.state(short); !complete {
			missing = append(missing, short)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	runsImage := func(short string) bool { return short == hostCluster || r.record.f.Pulls(short) }
	if r.request.Image == "" && slices.ContainsFunc(missing, runsImage) {
		if err := r.images.available(ctx); err != nil {
			return err
		}
	}
	wanted, err := nodeImages(r.record.f.Kind.Config, r.record.f.Kind.NodeImage)
	if err != nil {
		return err
	}
	for _, image := range wanted {
		if err := r.pull(ctx, image); err != nil {
			return err
		}
	}
	return nil
}

// pull makes sure that the engine has the image of nodes.
func (r *Runtime) pull(ctx context.Context, image string) (err error) {
	if r.engine.has(ctx, image) {
		return nil
	}
	const step = "node image"
	defer progress.Begin(ctx, r.Progress, step, &err)()
	defer wait.Publish(ctx, func() { r.Progress.Waiting(step, r.engine.name+" to pull "+image) })()
	if _, err := r.engine.run(ctx, "pull", image); err != nil {
		return fmt.Errorf("%s has no image %s for the nodes: %w; name one that it has with --node-image", r.engine.name, image, federation.Cause(ctx, err))
	}
	r.Progress.Done(step, image)
	return nil
}

// nodeImages returns the images of the nodes of new clusters. chosen is for all nodes, empty means those of the configuration.
func nodeImages(config, chosen string) ([]string, error) {
	if chosen != "" {
		return []string{chosen}, nil
	}
	cfg, err := template(config)
	if err != nil {
		return nil, err
	}
	var out []string
	for i := range cfg.Nodes {
		out = append(out, cfg.Nodes[i].Image)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// available returns an error if the engine does not have the image of this version.
func (s *images) available(ctx context.Context) error {
	image := imageRepository + ":" + imageTag(s.version)
	if s.engine.has(ctx, image) {
		return nil
	}
	return fmt.Errorf("%s has no image %s, from which the control plane runs: name an archive of it with --image, or build it with \"make image\"", s.engine.name, image)
}

// save writes the image of this version that the engine has to a file.
func (s *images) save(ctx context.Context) (path string, remove func(), err error) {
	image := imageRepository + ":" + imageTag(s.version)
	if err := s.available(ctx); err != nil {
		return "", nil, err
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

// imageTag returns the tag of a version: tags have no plus sign.
func imageTag(version string) string { return strings.ReplaceAll(version, "+", "-") }

// imagesOf returns the names of the images that a node has.
func imagesOf(ctx context.Context, node nodes.Node) ([]string, error) {
	lines, err := exec.OutputLines(node.CommandContext(ctx, "ctr", "--namespace=k8s.io", "images", "list", "-q"))
	if err != nil {
		return nil, fmt.Errorf("listing the images of node %s: %w", node, err)
	}
	return lines, nil
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

// LoadImages loads the images of an archive into every node of the kind cluster
// whose API server is at server, and returns the name of the cluster. Clusters that
// are not of kind, or not of this machine, are an error.
func LoadImages(ctx context.Context, getenv func(string) string, server, archive string) (string, error) {
	e, err := findEngine(ctx, getenv)
	if err != nil {
		return "", err
	}
	return loadImages(ctx, cluster.NewProvider(e.option, cluster.ProviderWithLogger(log.NoopLogger{})), server, archive)
}

func loadImages(ctx context.Context, lib library, server, archive string) (string, error) {
	name, err := kindClusterAt(lib, server)
	if err != nil {
		return "", err
	}
	hosts, err := internalNodes(lib, name)
	if err != nil {
		return "", err
	}
	for _, node := range hosts {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		if err := loadArchive(node, archive); err != nil {
			return "", newLibraryLog().explain(fmt.Errorf("loading %s into node %s: %w", archive, node, err))
		}
	}
	return name, nil
}

// kindClusterAt returns the name of the kind cluster with an API server at a URL.
func kindClusterAt(lib library, server string) (string, error) {
	names, err := lib.List()
	if err != nil {
		return "", fmt.Errorf("listing kind clusters: %w", err)
	}
	for _, name := range names {
		for _, internal := range []bool{false, true} {
			text, err := lib.KubeConfig(name, internal)
			if err != nil {
				continue // it is being removed
			}
			cfg, err := clientcmd.RESTConfigFromKubeConfig([]byte(text))
			if err == nil && cfg.Host == server {
				return name, nil
			}
		}
	}
	return "", fmt.Errorf("the cluster at %s is not a kind cluster of this machine: bring the images to its nodes in another way, or leave out --load-images", server)
}
