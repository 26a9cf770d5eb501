package gates

import "testing"

func TestGates_DefaultsAndSettings(t *testing.T) {
	g := New(ControllerManager()...)
	if g.Enabled(Failover) || !g.Enabled(PropagateDeps) {
		t.Error("the defaults are wrong")
	}
	if err := g.Set("Failover=true,PropagateDeps=false"); err != nil {
		t.Fatal(err)
	}
	if !g.Enabled(Failover) || g.Enabled(PropagateDeps) {
		t.Error("settings do not count")
	}
	if err := g.Set("NoSuchGate=true"); err == nil {
		t.Error("an unknown gate is accepted")
	}
	if New(Failover).Enabled(PropagateDeps) {
		t.Error("a gate outside the set is on")
	}
}

func TestGates_LaterValueOverrides(t *testing.T) {
	for _, tt := range []struct {
		values []string
		want   bool
	}{
		{[]string{"Failover=true", "Failover=false"}, false},
		{[]string{"Failover=false", "PropagateDeps=false,Failover=true"}, true},
		{[]string{"AllBeta=true", "AllBeta=false"}, false},
		{[]string{"Failover=true", "AllBeta=false"}, true}, // a name takes precedence over its stage
		{[]string{"Failover=true", "Failover=maybe"}, true},
	} {
		g := New(ControllerManager()...)
		for _, value := range tt.values {
			_ = g.Set(value)
		}
		if g.Enabled(Failover) != tt.want {
			t.Errorf("%q: Failover is %v", tt.values, !tt.want)
		}
	}
}
