package process

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/karmada-toolkit/karmada/pkg/local/federation"
)

func TestProcess_StopEndsNoOtherProcess(t *testing.T) {
	dir := federation.Dir(t.TempDir())
	p := process{"sleeper", dir}
	c, err := p.start(time.Now(), "sleep", "60")
	if err != nil {
		t.Fatal(err)
	}
	if r, alive := p.running(); !alive || r.PID != c.PID {
		t.Fatalf("running() = %+v, %t", r, alive)
	}
	if err := p.stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, alive := p.running(); alive {
		t.Error("it is still alive")
	}
	// A record whose process number now belongs to another program.
	other := `{"pid": 1, "started": "long ago"}`
	if err := os.WriteFile(dir.Record(p.name), []byte(other), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, alive := p.running(); alive {
		t.Error("another process counts as this one")
	}
}

func TestProcess_OneThatWasKilledDoesNotRun(t *testing.T) {
	dir := federation.Dir(t.TempDir())
	for range 20 {
		p := process{"sleeper", dir}
		c, err := p.start(time.Now(), "sleep", "60")
		if err != nil {
			t.Fatal(err)
		}
		if err := kill(c.PID); err != nil {
			t.Fatal(err)
		}
		if _, alive := p.running(); alive {
			t.Fatal("it still counts as running")
		}
		p.awaitEnd(t.Context())
		if _, present := p.present(); present {
			t.Fatal("something is left of it")
		}
	}
}

func TestProcess_FailureHasTheLastError(t *testing.T) {
	dir := federation.Dir(t.TempDir())
	c, err := process{"broken", dir}.start(time.Now(), "sh", "-c", "sleep 0.2; echo 'error: no disk' >&2; exit 3")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := c.during(t.Context())
	defer stop()
	<-ctx.Done()
	err = context.Cause(ctx)
	for _, want := range []string{"broken", "exit status 3", "no disk", dir.Log("broken")} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not mention %q", err, want)
		}
	}
}
