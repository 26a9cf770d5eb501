package config

import (
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
// have the tag of the release; where that is not of this build alone they do
// not identify it.
func hasOwn(build version.Info, available []string) bool {
	return slices.ContainsFunc(available, func(image string) bool {
		return image == OwnImage(build) ||
			build.Release() == build.GitVersion && strings.HasPrefix(image, karmadaRegistry+"/karmada-") && strings.HasSuffix(image, ":"+build.Release())
	})
}
