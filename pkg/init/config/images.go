package config

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/karmada-toolkit/karmada/internal/imagearchive"
	"github.com/karmada-toolkit/karmada/internal/version"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
)

// DefaultImage returns the image of a program of a release when none is chosen.
func DefaultImage(program, release string) string {
	return karmadaRegistry + "/" + program + ":" + release
}

// kubeRegistry returns where Kubernetes' own images come from.
func (i *Images) kubeRegistry() string {
	if i.KubeRegistry != "" {
		return i.KubeRegistry
	}
	switch strings.ToLower(i.MirrorCountry) {
	case "cn":
		return chinaKubeRegistry
	case "global":
		return kubeRegistry
	}
	if i.PrivateRegistry != "" {
		return i.PrivateRegistry
	}
	return kubeRegistry
}

// ImageOf returns the image of a part.
func (c *Configuration) ImageOf(p Part) string {
	switch private := c.Images.PrivateRegistry; {
	case p.Image != "" && (private == "" || p.Image != DefaultImage(p.Name, version.Get().Release())):
		return p.Image
	case p.Name == components.AllInOne:
		return c.ImageOf(Part{Name: components.ControllerManager, Component: &c.ControllerManager})
	case p.Name == components.Etcd:
		return c.Images.kubeRegistry() + "/etcd:" + etcdTag
	case p.Name == components.APIServer:
		return c.Images.kubeRegistry() + "/kube-apiserver:" + c.Images.KubeTag
	case p.Name == components.KubeControllerManager:
		return c.Images.kubeRegistry() + "/kube-controller-manager:" + c.Images.KubeTag
	default:
		return cmp.Or(private, karmadaRegistry) + "/" + p.Name + ":" + version.Get().Release()
	}
}

// ImageList returns the images of the parts of the control plane, each once, sorted.
func (c *Configuration) ImageList() []string {
	var out []string
	for _, p := range c.Parts() {
		if c.Installs(p.Name) {
			out = append(out, c.ImageOf(p))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// UseBuild replaces the images of parts that were left at their defaults, which no registry has for a build without a release, by
// the image of this build if it is among the available ones. It returns the defaults for which there is no other, sorted.
func (c *Configuration) UseBuild(build version.Info, available []string, parts []Part) (missing []string) {
	if build.Released() || c.Images.PrivateRegistry != "" {
		return nil
	}
	available = canonicalNames(available)
	own := hasOwn(build, available)
	for _, p := range parts {
		unchanged := DefaultImage(p.Name, build.Release())
		switch {
		case components.OfKubernetes(p.Name), p.Name == components.AllInOne, p.Image != "" && p.Image != unchanged:
		case own:
			p.Image = OwnImage(build)
		case !slices.Contains(available, unchanged):
			missing = append(missing, unchanged)
		}
	}
	slices.Sort(missing)
	return missing
}

// ImageHint returns the next step for images that no registry has.
func ImageHint(program string, missing []string) string {
	if len(missing) == 0 {
		return ""
	}
	return fmt.Sprintf("this build has no release, so no registry has %s; build the image with \"make image\", bring it to the nodes (for kind with \"%s init --load-images=_output/karmada.tar\"), or name others, for example with --private-image-registry", strings.Join(missing, ", "), program)
}

// ownRepository is the name of the image that "make image" builds, without its tag.
const ownRepository = "karmada/karmada"

// OwnImage returns the name of the image of a build, with its registry.
func OwnImage(build version.Info) string {
	return imagearchive.Canonical(ownRepository + ":" + strings.ReplaceAll(build.GitVersion, "+", "-"))
}

// FindArchive returns the path of the image archive beside a program: karmada.tar
// in the same directory, or where "make image" writes it in a source tree. It is
// empty when there is none, or only that of another build.
func FindArchive(executable string, build version.Info) string {
	dir := filepath.Dir(executable)
	for _, path := range []string{filepath.Join(dir, "karmada.tar"), filepath.Join(dir, "..", "_output", "karmada.tar")} {
		if _, err := os.Stat(path); err != nil {
			continue
		}
		names, err := imagearchive.Names(path)
		if err == nil && slices.Contains(canonicalNames(names), OwnImage(build)) {
			return path
		}
	}
	return ""
}

func canonicalNames(images []string) []string {
	var out []string
	for _, image := range images {
		out = append(out, imagearchive.Canonical(image))
	}
	return out
}

// hasOwn reports whether the image of a build is among the available ones, by any of
// its names: nodes report no more than five of each image. The names of the roles
// have the tag of the release; where that is not of this build alone they do
// not identify it.
func hasOwn(build version.Info, available []string) bool {
	return slices.ContainsFunc(available, func(image string) bool {
		return image == OwnImage(build) ||
			build.Release() == build.GitVersion && strings.HasPrefix(image, karmadaRegistry+"/karmada-") && strings.HasSuffix(image, ":"+build.Release())
	})
}
