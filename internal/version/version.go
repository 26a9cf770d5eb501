// Package version describes the build of this program.
package version

import (
	"fmt"
	"regexp"
	"runtime"
	"runtime/debug"
)

// Set by the linker: -X github.com/karmada-toolkit/karmada/internal/version.gitVersion=v1.2.3
var (
	gitVersion   string
	gitCommit    string
	gitTreeState string
	buildDate    string
)

// unversioned is the version of a build that was given none.
const unversioned = "v0.0.0-master"

// Info describes a build.
type Info struct {
	GitVersion     string `json:"gitVersion"`
	GitCommit      string `json:"gitCommit"`
	GitShortCommit string `json:"gitShortCommit"`
	GitTreeState   string `json:"gitTreeState"`
	BuildDate      string `json:"buildDate"`
	GoVersion      string `json:"goVersion"`
	Compiler       string `json:"compiler"`
	Platform       string `json:"platform"`
}

// Get returns what the linker set, completed by what the Go tool recorded.
func Get() Info {
	info := Info{
		GitVersion:   gitVersion,
		GitCommit:    gitCommit,
		GitTreeState: gitTreeState,
		BuildDate:    buildDate,
		GoVersion:    runtime.Version(),
		Compiler:     runtime.Compiler,
		Platform:     runtime.GOOS + "/" + runtime.GOARCH,
	}
	if build, ok := debug.ReadBuildInfo(); ok {
		info.complete(build.Settings)
	}
	if info.GitVersion == "" {
		info.GitVersion = unversioned
	}
	info.GitShortCommit = info.GitCommit
	if len(info.GitShortCommit) > 8 {
		info.GitShortCommit = info.GitShortCommit[:8]
	}
	return info
}

func (i *Info) complete(settings []debug.BuildSetting) {
	for _, s := range settings {
		switch s.Key {
		case "vcs.revision":
			i.GitCommit = first(i.GitCommit, s.Value)
		case "vcs.time":
			i.BuildDate = first(i.BuildDate, s.Value)
		case "vcs.modified":
			state := "clean"
			if s.Value == "true" {
				state = "dirty"
			}
			i.GitTreeState = first(i.GitTreeState, state)
		}
	}
}

func first(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

// String prints the build the way `version` shows it.
func (i Info) String() string {
	return fmt.Sprintf("version.Info{GitVersion:%q, GitCommit:%q, GitShortCommit:%q, GitTreeState:%q, BuildDate:%q, GoVersion:%q, Compiler:%q, Platform:%q}",
		i.GitVersion, i.GitCommit, i.GitShortCommit, i.GitTreeState, i.BuildDate, i.GoVersion, i.Compiler, i.Platform)
}

// Released reports whether the build is a release, such as v1.2.3 or v1.2.3-rc.1,
// rather than one of a commit.
func (i Info) Released() bool {
	return i.GitVersion != unversioned && regexp.MustCompile(`^v\d+\.\d+\.\d+(-(alpha|beta|rc)\.\d+)?$`).MatchString(i.GitVersion)
}

// Release returns the release that a build belongs to: its version without the
// number of commits since. Images are tagged with it.
func (i Info) Release() string {
	return regexp.MustCompile(`-\d+-g[0-9a-f]{7,}$`).ReplaceAllString(i.GitVersion, "")
}
