package installer

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karmada-toolkit/karmada/pkg/init/config"
	"github.com/karmada-toolkit/karmada/pkg/init/phases"
)

func TestChosen(t *testing.T) {
	names := func(change func(*config.Configuration)) (out []string) {
		o := config.New()
		change(&o)
		if err := o.Complete(nil, "karmadactl", phases.Names()); err != nil {
			t.Fatal(err)
		}
		chosen, err := phases.Chosen(&o)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range chosen {
			out = append(out, p.Name)
		}
		return out
	}
	if diff := cmp.Diff([]string{"certs", "kubeconfig"}, names(func(o *config.Configuration) { o.Phases.Only = []string{"kubeconfig", "certs"} })); diff != "" {
		t.Error(diff)
	}
	if got := names(func(o *config.Configuration) { o.Phases.Skip = []string{"preflight"} }); len(got) != len(phases.All())-2 || slices.Contains(got, "preflight") {
		t.Errorf("got %v", got)
	}
	o := config.New()
	o.Phases.Only = []string{phases.AllInOne}
	if _, err := phases.Chosen(&o); err == nil || !strings.Contains(err.Error(), `the phase "all-in-one" installs karmada-all-in-one, which this configuration does not have`) {
		t.Errorf("got %v", err)
	}
	compact := names(func(o *config.Configuration) { o.Compact = true })
	for _, name := range []string{phases.Aggregated, phases.Webhook, phases.Scheduler, phases.ControllerManager} {
		if slices.Contains(compact, name) {
			t.Errorf("%s runs beside the pods with all roles", name)
		}
	}
	if !slices.Contains(compact, phases.AllInOne) || len(compact) != len(phases.All())-4 {
		t.Errorf("got %v", compact)
	}
}
