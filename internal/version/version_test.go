package version

import (
	"runtime/debug"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestInfo_String(t *testing.T) {
	info := Info{GitVersion: "v1.2.3", GitCommit: "0123456789ab", GitShortCommit: "01234567", GitTreeState: "clean", BuildDate: "2025-01-01T00:00:00Z", GoVersion: "go1.26", Compiler: "gc", Platform: "linux/amd64"}
	want := `version.Info{GitVersion:"v1.2.3", GitCommit:"0123456789ab", GitShortCommit:"01234567", GitTreeState:"clean", BuildDate:"2025-01-01T00:00:00Z", GoVersion:"go1.26", Compiler:"gc", Platform:"linux/amd64"}`
	if diff := cmp.Diff(want, info.String()); diff != "" {
		t.Error(diff)
	}
}

func TestInfo_Release(t *testing.T) {
	for version, want := range map[string]string{
		"v1.2.3":             "v1.2.3",
		"v1.2.3-12-g0123abc": "v1.2.3",
		"v1.2.3-rc.1":        "v1.2.3-rc.1",
		"v0.0.0-master":      "v0.0.0-master",
	} {
		if got := (Info{GitVersion: version}).Release(); got != want {
			t.Errorf("release of %s: got %s, want %s", version, got, want)
		}
	}
}

func TestInfo_complete(t *testing.T) {
	got := Info{BuildDate: "set"}
	got.complete([]debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.time", Value: "then"}, {Key: "vcs.modified", Value: "true"}})
	want := Info{GitCommit: "abc", BuildDate: "set", GitTreeState: "dirty"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestGet_UnversionedBuild(t *testing.T) {
	if got := Get().GitVersion; got != unversioned {
		t.Errorf("got %s, want %s", got, unversioned)
	}
}

func TestInfo_Released(t *testing.T) {
	for version, want := range map[string]bool{
		"v1.2.3": true, "v1.2.3-rc.1": true, "v1.2.3-12-g0123abc": false, "v1.2.3-dirty": false, "54f6029": false, unversioned: false, "": false,
	} {
		if got := (Info{GitVersion: version}).Released(); got != want {
			t.Errorf("%q is a release: %t", version, got)
		}
	}
}
