package membership

import (
	"testing"

	"github.com/karmada-toolkit/karmada/internal/progress"
)

type lastWait struct {
	progress.Discard

	what string
}

func (l *lastWait) Waiting(_, what string) { l.what = what }

func TestReporter_NamesWhatItWaitsForOnce(t *testing.T) {
	p := &lastWait{}
	Reporter(p, "register member2")("waiting for the control plane to sign")
	if p.what != "the control plane to sign" {
		t.Errorf("it waits for %q", p.what)
	}
}
