package installer

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/karmada-toolkit/karmada/internal/imagearchive"
	"github.com/karmada-toolkit/karmada/internal/version"
)

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
// have the tag of the release; where that is not of this build alone they say
// nothing.
func hasOwn(build version.Info, available []string) bool {
	return slices.ContainsFunc(available, func(image string) bool {
		return image == OwnImage(build) ||
			build.Release() == build.GitVersion && strings.HasPrefix(image, karmadaRegistry+"/"+karmadaPrefix) && strings.HasSuffix(image, ":"+build.Release())
	})
}

// UseOwnImages replaces the images of the control plane that were left at their
// defaults, which nobody serves for a build without a release, by the image of
// this build if it is among the available ones. It returns the defaults for which
// there is no other, sorted.
func (o *Options) UseOwnImages(build version.Info, available []string) (missing []string) {
	if build.Released() || o.Images.PrivateRegistry != "" {
		return nil
	}
	available = canonicalNames(available)
	own := hasOwn(build, available)
	for _, c := range []struct {
		*Component
		name string
	}{
		{&o.Aggregated, aggregatedName}, {&o.Scheduler, karmadaPrefix + phaseScheduler},
		{&o.ControllerManager, karmadaPrefix + phaseControllerManager}, {&o.Webhook, karmadaPrefix + phaseWebhook},
	} {
		unchanged := defaultImage(c.name, build.Release())
		switch {
		case c.Image != "" && c.Image != unchanged:
		case own:
			c.Image = OwnImage(build)
		case !slices.Contains(available, unchanged):
			missing = append(missing, unchanged)
		}
	}
	slices.Sort(missing)
	return missing
}

// ImageHint says what to do about images that nobody serves.
func ImageHint(program string, missing []string) string {
	if len(missing) == 0 {
		return ""
	}
	return fmt.Sprintf("this build has no release, so no registry has %s; build the image with \"make image\", bring it to the nodes (for kind with \"%s init --load-images=_output/karmada.tar\"), or name others, for example with --private-image-registry", strings.Join(missing, ", "), program)
}

// ownImages has the options use the image of this build where the nodes, or the
// archive that was loaded into them, have it.
func (s *state) ownImages() {
	var available []string
	for i := range s.facts.nodes {
		for _, image := range s.facts.nodes[i].Status.Images {
			available = append(available, image.Names...)
		}
	}
	if s.Archive != "" {
		if names, err := imagearchive.Names(s.Archive); err == nil {
			available = append(available, names...)
		}
	}
	if hint := ImageHint(s.Program, s.options.UseOwnImages(version.Get(), available)); hint != "" {
		s.Progress.Waiting(stepHost, hint)
	}
}
