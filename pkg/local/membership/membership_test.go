package membership

import (
	"testing"

	"github.com/karmada-toolkit/karmada/internal/progress"
	"github.com/karmada-toolkit/karmada/pkg/local/federation"
)

type lastReport struct {
	progress.Discard

	what string
}

func (l *lastReport) Waiting(_, what string)  { l.what = what }
func (l *lastReport) Failed(step, how string) { l.what = step + ": " + how }

func TestReporter_NamesWhatItWaitsForOnce(t *testing.T) {
	p := &lastReport{}
	Reporter(p, "register member2")("waiting for the control plane to sign")
	if p.what != "the control plane to sign" {
		t.Errorf("it waits for %q", p.what)
	}
}

func TestJoin_ReportsTheStepThatFails(t *testing.T) {
	p := &lastReport{}
	m := Member{Name: "member1", ControlPlane: t.TempDir() + "/none"}
	if err := Join(t.Context(), federation.Deps{Progress: p}, m); err == nil || p.what != "join member1: failed" {
		t.Errorf("%v, reported %q", err, p.what)
	}
	if err := Register(t.Context(), federation.Deps{Progress: p}, m, nil); err == nil || p.what != "register member1: failed" {
		t.Errorf("%v, reported %q", err, p.what)
	}
}
