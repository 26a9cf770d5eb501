package controllermanager

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karmada-toolkit/karmada/pkg/controlplane/env"
)

func TestSetupControllers(t *testing.T) {
	var ran []string
	row := func(name string, always bool, err error) controller {
		return controller{name, always, func(context.Context, *env.Env) error {
			ran = append(ran, name)
			return err
		}}
	}
	o := NewOptions()
	o.Controllers = []string{"binding"}
	err := setupControllers(t.Context(), nil, o, []controller{
		row("binding", false, nil), row("cluster", false, nil), row("detector", true, errors.New("no index")), row("agentRights", true, nil),
	})
	if want := `setting up controller "detector": no index`; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	if len(ran) != 2 || ran[0] != "binding" || ran[1] != "detector" {
		t.Errorf("ran %v", ran)
	}
}

// Each name of --controllers selects a row of the table, and each row that can be selected has a name.
func TestControllerNames_AreTheTable(t *testing.T) {
	// The controllers of Works and of collected slices run within others, which run always or under another name.
	want := []string{"endpointsliceCollect", "endpointsliceDispatch", "workStatus"}
	for _, c := range new(setup).controllers() {
		if !c.always {
			want = append(want, c.name)
		}
	}
	slices.Sort(want)
	got := slices.Sorted(slices.Values(ControllerNames()))
	if diff := cmp.Diff(slices.Compact(want), got); diff != "" {
		t.Error(diff)
	}
}
