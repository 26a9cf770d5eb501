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
