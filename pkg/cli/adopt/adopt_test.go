package adopt

import (
	"bytes"
	"strings"
	"testing"

	"github.com/karmada-toolkit/karmada/internal/build"
	"github.com/karmada-toolkit/karmada/internal/version"
	"github.com/karmada-toolkit/karmada/pkg/cli/env"
	"github.com/karmada-toolkit/karmada/pkg/init/adopt"
)

func TestPrint(t *testing.T) {
	p := &adopt.Plan{
		Namespace: "karmada-system", Installer: adopt.ByInit, Version: "v1.18.0", Agents: []adopt.Agent{{Cluster: "member2", Rights: adopt.RightsOfRegistration}, {Cluster: "member3", Rights: adopt.RightsUnknown}}, Kept: []string{"karmada-apiserver", "etcd"}, Purges: []string{"PropagationPolicy ns/a"},
		Components: []adopt.Component{
			{Name: "karmada-webhook", Image: "docker.io/karmada/karmada-webhook:v1.18.0", Target: "ours.example/karmada-webhook:v9", Notes: []string{"without --client-ca-file it answers every client"}},
			{Name: "karmada-scheduler", Image: "ours.example/karmada-scheduler:v9", Target: "ours.example/karmada-scheduler:v9"},
		},
	}
	var out bytes.Buffer
	if err := print(&out, p); err != nil {
		t.Fatal(err)
	}
	build.AssertGolden(t, "plan", out.String())
}

func TestImages(t *testing.T) {
	for _, tc := range []struct {
		flags flags
		want  string
	}{
		{flags{}, "docker.io/karmada/karmada-scheduler:" + version.Get().Release()},
		{flags{registry: "r.example"}, "r.example/karmada-scheduler:" + version.Get().Release()},
		{flags{registry: "r.example", image: "one.example/karmada:v1"}, "one.example/karmada:v1"},
	} {
		if got := tc.flags.images()("karmada-scheduler"); got != tc.want {
			t.Errorf("got %q, want %q", got, tc.want)
		}
	}
}

func TestRun_Flags(t *testing.T) {
	for _, tc := range []struct {
		flags flags
		want  string
	}{
		{flags{dryRun: true, rollback: true, timeout: 1}, "cannot be used together"},
		{flags{prepare: true, finish: true, timeout: 1}, "cannot be used together"},
		{flags{}, "--timeout 0s must be greater than 0"},
	} {
		if err := run(t.Context(), &env.Env{}, tc.flags); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%+v: %v", tc.flags, err)
		}
	}
}
