package installer

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karmada-toolkit/karmada/pkg/init/config"
	"github.com/karmada-toolkit/karmada/pkg/init/phases"
)

func TestChosen(t *testing.T) {
	names := func(change func(*config.Options)) (out []string) {
		o := config.NewOptions()
		change(&o)
		r, err := NewRequest("karmadactl", o)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range chosen(r) {
			out = append(out, p.Name)
		}
		return out
	}
	if diff := cmp.Diff([]string{"certs", "kubeconfig"}, names(func(o *config.Options) { o.Phases.Only = []string{"kubeconfig", "certs"} })); diff != "" {
		t.Error(diff)
	}
	if got := names(func(o *config.Options) { o.Phases.Skip = []string{"preflight"} }); len(got) != len(phases.All())-1 || slices.Contains(got, "preflight") {
		t.Errorf("got %v", got)
	}
}
