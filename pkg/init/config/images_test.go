package config

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karmada-toolkit/karmada/internal/version"
)

func TestUseBuild(t *testing.T) {
	build := version.Info{GitVersion: "v1.2.3-4-g0123456"}
	own := "docker.io/karmada/karmada:v1.2.3-4-g0123456"
	fresh := func(build version.Info) *Configuration {
		o := New()
		for _, c := range o.Parts() {
			if c.Image != "" {
				c.Image = DefaultImage(c.Name, build.Release())
			}
		}
		return &o
	}
	images := func(o *Configuration) []string {
		return []string{o.Aggregated.Image, o.Scheduler.Image, o.ControllerManager.Image, o.Webhook.Image}
	}
	defaults := images(fresh(build))
	all := slices.Repeat([]string{own}, 4)
	for name, tc := range map[string]struct {
		build     string
		available []string
		change    func(*Configuration)
		want      []string
		missing   int
	}{
		"the nodes have this build":        {available: []string{"karmada/karmada:v1.2.3-4-g0123456"}, want: all},
		"one name of many is reported":     {build: "54f6029", available: []string{"docker.io/karmada/karmada-agent:54f6029"}, want: slices.Repeat([]string{"docker.io/karmada/karmada:54f6029"}, 4)},
		"the nodes have another build":     {available: []string{"docker.io/karmada/karmada:v1.2.2"}, want: defaults, missing: 4},
		"the nodes have nothing":           {want: defaults, missing: 4},
		"the nodes have the defaults":      {available: defaults, want: defaults},
		"an image that was chosen is kept": {available: []string{own}, change: func(o *Configuration) { o.Webhook.Image = "example.org/w:1" }, want: []string{own, own, own, "example.org/w:1"}},
		"a registry of the user's":         {available: []string{own}, change: func(o *Configuration) { o.Images.PrivateRegistry = "example.org" }, want: defaults},
		"a release":                        {build: "v1.2.3", available: []string{own}, want: defaults},
	} {
		t.Run(name, func(t *testing.T) {
			b := build
			if tc.build != "" {
				b.GitVersion = tc.build
			}
			o := fresh(b)
			if tc.change != nil {
				tc.change(o)
			}
			missing := o.UseBuild(b, tc.available, o.Parts())
			if diff := cmp.Diff(tc.want, images(o)); diff != "" {
				t.Error(diff)
			}
			if len(missing) != tc.missing || !slices.IsSorted(missing) {
				t.Errorf("missing: %v", missing)
			}
			if hint := ImageHint("karmadactl", missing); (hint == "") != (tc.missing == 0) || !strings.Contains(hint, "") {
				t.Errorf("hint: %q", hint)
			}
		})
	}
}
