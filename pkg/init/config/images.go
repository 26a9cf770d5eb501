package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/karmada-toolkit/karmada/internal/version"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
)

// DefaultImage returns the image of a program of a release when none is chosen.
func DefaultImage(program, release string) string {
	return karmadaRegistry + "/" + program + ":" + release
}

// kubeRegistry returns where Kubernetes' own images come from.
func (i *ImageOptions) kubeRegistry() string {
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

// ImageSet is the images of the workloads of an installation.
type ImageSet struct {
	options ImageOptions
	// chosen are the images by workload; empty means the default.
	chosen map[string]string
}

// ImageSet returns the images that the options choose.
func (o *Options) ImageSet() ImageSet {
	s := ImageSet{options: o.Images, chosen: map[string]string{}}
	for _, c := range o.components() {
		if c.name != components.Etcd || !o.Etcd.External.used() {
			s.chosen[c.name] = c.Image
		}
	}
	return s
}

// NewImageSet returns the images of workloads, chosen by name; an empty one means the default. A private registry
// replaces the default one.
func NewImageSet(chosen map[string]string, privateRegistry string) ImageSet {
	return ImageSet{options: ImageOptions{RegistryOptions: RegistryOptions{PrivateRegistry: privateRegistry}}, chosen: maps.Clone(chosen)}
}

// Image returns the image of a workload.
func (s ImageSet) Image(workload string) string {
	chosen, release := s.chosen[workload], version.Get().Release()
	switch {
	case workload == components.Etcd && chosen == "":
		return s.options.kubeRegistry() + "/etcd:" + etcdTag
	case workload == components.APIServer && chosen == "":
		return s.options.kubeRegistry() + "/kube-apiserver:" + s.options.KubeTag
	case workload == components.KubeControllerManager && chosen == "":
		return s.options.kubeRegistry() + "/kube-controller-manager:" + s.options.KubeTag
	case chosen == "", chosen == DefaultImage(workload, release) && s.options.PrivateRegistry != "":
		if s.options.PrivateRegistry != "" {
			return s.options.PrivateRegistry + "/" + workload + ":" + release
		}
		return DefaultImage(workload, release)
	}
	return chosen
}

// List returns the images that an installation needs, each once, sorted.
func (s ImageSet) List() []string {
	var out []string
	for workload := range s.chosen {
		out = append(out, s.Image(workload))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// WithBuild replaces the images of the control plane that were left at their defaults, which no registry has for a
// build without a release, by the image of this build if it is among the available ones. It returns the defaults for
// which there is no other, sorted.
func (s ImageSet) WithBuild(build version.Info, available []string) (out ImageSet, missing []string) {
	out = ImageSet{options: s.options, chosen: maps.Clone(s.chosen)}
	if build.Released() || s.options.PrivateRegistry != "" {
		return out, nil
	}
	available = canonicalNames(available)
	own := hasOwn(build, available)
	for workload := range s.chosen {
		if components.OfKubernetes(workload) {
			continue
		}
		unchanged := DefaultImage(workload, build.Release())
		switch {
		case s.chosen[workload] != "" && s.chosen[workload] != unchanged:
		case own:
			out.chosen[workload] = OwnImage(build)
		case !slices.Contains(available, unchanged):
			missing = append(missing, unchanged)
		}
	}
	slices.Sort(missing)
	return out, missing
}

// ImageHint returns the next step for images that no registry has.
func ImageHint(program string, missing []string) string {
	if len(missing) == 0 {
		return ""
	}
	return fmt.Sprintf("this build has no release, so no registry has %s; build the image with \"make image\", bring it to the nodes (for kind with \"%s init --load-images=_output/karmada.tar\"), or name others, for example with --private-image-registry", strings.Join(missing, ", "), program)
}
