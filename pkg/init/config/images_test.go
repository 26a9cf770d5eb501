package config

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karmada-toolkit/karmada/internal/version"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
)

func TestImageSet_WithBuild(t *testing.T) {
	build := version.Info{GitVersion: "v1.2.3-4-g0123456"}
	own := "docker.io/karmada/karmada:v1.2.3-4-g0123456"
	fresh := func(build version.Info) *Options {
		o := NewOptions()
		for _, c := range o.components() {
			if c.Image != "" {
				c.Image = DefaultImage(c.name, build.Release())
			}
		}
		return &o
	}
	images := func(s ImageSet) []string {
		return []string{s.chosen[components.AggregatedAPIServer], s.chosen[components.Scheduler], s.chosen[components.ControllerManager], s.chosen[components.Webhook]}
	}
	defaults := images(fresh(build).ImageSet())
	all := slices.Repeat([]string{own}, 4)
	for name, tc := range map[string]struct {
		build     string
		available []string
		change    func(*Options)
		want      []string
		missing   int
	}{
		"the nodes have this build":        {available: []string{"karmada/karmada:v1.2.3-4-g0123456"}, want: all},
		"one name of many is reported":     {build: "54f6029", available: []string{"docker.io/karmada/karmada-agent:54f6029"}, want: slices.Repeat([]string{"docker.io/karmada/karmada:54f6029"}, 4)},
		"the nodes have another build":     {available: []string{"docker.io/karmada/karmada:v1.2.2"}, want: defaults, missing: 4},
		"the nodes have nothing":           {want: defaults, missing: 4},
		"the nodes have the defaults":      {available: defaults, want: defaults},
		"an image that was chosen is kept": {available: []string{own}, change: func(o *Options) { o.Webhook.Image = "example.org/w:1" }, want: []string{own, own, own, "example.org/w:1"}},
		"a registry of the user's":         {available: []string{own}, change: func(o *Options) { o.Images.PrivateRegistry = "example.org" }, want: defaults},
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
			before := o.ImageSet()
			got, missing := before.WithBuild(b, tc.available)
			if diff := cmp.Diff(tc.want, images(got)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(images(o.ImageSet()), images(before)); diff != "" {
				t.Errorf("it changed what it was called with: %s", diff)
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
