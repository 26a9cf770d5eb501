package kubelite

import (
	"runtime/debug"
	"strings"

	apiversion "k8s.io/apimachinery/pkg/version"
	basecompatibility "k8s.io/component-base/compatibility"
	utilversion "k8s.io/component-base/version"
)

const kubernetesModule = "k8s.io/kubernetes"

// kubernetesVersion is the version of the Kubernetes module in this program. Kubernetes itself gets its version
// from linker flags, which a plain build does not set.
func kubernetesVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, module := range info.Deps {
			if module.Path == kubernetesModule {
				return module.Version
			}
		}
	}
	return utilversion.Get().GitVersion
}

// reportedVersion is the effective version of a component, which reports the true version to clients.
type reportedVersion struct {
	basecompatibility.EffectiveVersion
	version string
}

// Info returns what /version answers.
func (v reportedVersion) Info() *apiversion.Info {
	info := utilversion.Get()
	if original := v.EffectiveVersion.Info(); original != nil {
		info = *original
	}
	info.GitVersion = v.version
	info.GitCommit, info.GitTreeState, info.BuildDate = "", "", "1970-01-01T00:00:00Z"
	if parts := strings.Split(strings.TrimPrefix(v.version, "v"), "."); len(parts) >= 2 {
		info.Major, info.Minor = parts[0], parts[1]
	}
	return &info
}
