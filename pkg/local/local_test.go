package local

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func testDeps() Deps {
	return Deps{Program: "karmadactl", Getenv: func(string) string { return "" }, Now: time.Now, Progress: quiet{}}
}

type quiet struct{}

func (quiet) Begin(string)           {}
func (quiet) Waiting(string, string) {}
func (quiet) Done(string, string)    {}

func TestGrow(t *testing.T) {
	f := &Federation{Name: "f"}
	if err := f.grow(testDeps(), 2); err != nil || !slices.Equal(f.Members, []string{"member1", "member2"}) {
		t.Fatalf("two members: %v, %v", f.Members, err)
	}
	if err := f.grow(testDeps(), 3); err != nil || !slices.Equal(f.Members, []string{"member1", "member2", "member3"}) {
		t.Fatalf("three members: %v, %v", f.Members, err)
	}
	if err := f.grow(testDeps(), 1); err == nil || !strings.Contains(err.Error(), "karmadactl local down --name f --member member2,member3") {
		t.Errorf("shrinking is refused with the next step, got %v", err)
	}
}

func TestPrepare(t *testing.T) {
	root := t.TempDir()
	f, err := prepare(testDeps(), UpRequest{Root: root, Name: "a", Members: -1, Nodes: -1})
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Members) != defaultMembers || f.Nodes != defaultNodes {
		t.Errorf("a new federation has %d members and %d nodes", len(f.Members), f.Nodes)
	}
	if err := f.save(); err != nil {
		t.Fatal(err)
	}
	again, err := prepare(testDeps(), UpRequest{Root: root, Name: "a", Members: 3, Nodes: -1})
	if err != nil || len(again.Members) != 3 || again.Nodes != defaultNodes {
		t.Errorf("growing: %+v, %v", again, err)
	}
	for _, bad := range []UpRequest{
		{Root: root, Name: "Not A Name"},
		{Root: root, Name: "a", Members: maxMembers + 1},
	} {
		if _, err := prepare(testDeps(), bad); err == nil {
			t.Errorf("%+v is accepted", bad)
		}
	}
}

func TestLoad_SaysWhatIsMissingOrDamaged(t *testing.T) {
	root := t.TempDir()
	if _, err := Load(root, "a"); !errors.Is(err, ErrNoFederation) {
		t.Errorf("a missing federation: %v", err)
	}
	if err := os.MkdirAll(filepath.Join(root, "a"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "a", stateFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(root, "a"); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("a damaged federation: %v", err)
	}
	if names, err := List(root); err != nil || !slices.Equal(names, []string{"a"}) {
		t.Errorf("List() = %v, %v", names, err)
	}
}

func TestDefaultRoot_FollowsXDG(t *testing.T) {
	got, err := DefaultRoot(func(string) string { return "/state" })
	if err != nil || got != "/state/karmada/local" {
		t.Errorf("got %q, %v", got, err)
	}
	got, err = DefaultRoot(func(string) string { return "relative" })
	if err != nil || !strings.HasSuffix(got, ".local/state/karmada/local") {
		t.Errorf("a relative directory does not count: %q, %v", got, err)
	}
}

func TestFindBinary_BesideThenVariableThenPath(t *testing.T) {
	beside, variable := t.TempDir(), t.TempDir()
	for _, dir := range []string{beside, variable} {
		if err := os.WriteFile(filepath.Join(dir, "kubelite"), nil, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", "")
	if got, err := findBinary("kubelite", filepath.Join(beside, "karmadactl"), variable); err != nil || got != filepath.Join(beside, "kubelite") {
		t.Errorf("beside: %q, %v", got, err)
	}
	if got, err := findBinary("kubelite", "", variable); err != nil || got != filepath.Join(variable, "kubelite") {
		t.Errorf("variable: %q, %v", got, err)
	}
	if _, err := findBinary("karmada", "", variable); err == nil || !strings.Contains(err.Error(), binDirVariable) {
		t.Errorf("nowhere: %v", err)
	}
}

func TestProcess_IsStoppedAndNobodyElse(t *testing.T) {
	f := &Federation{Name: "f", dir: t.TempDir()}
	p := f.process("sleeper")
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
	if err := os.WriteFile(p.recordPath(), []byte(other), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, alive := p.running(); alive {
		t.Error("a stranger is taken for ours")
	}
}

func TestProcess_OneThatWasKilledDoesNotRun(t *testing.T) {
	f := &Federation{Name: "f", dir: t.TempDir()}
	for range 20 {
		p := f.process("sleeper")
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
		p.settle(t.Context())
		if _, present := p.present(); present {
			t.Fatal("something is left of it")
		}
	}
}

func TestProcess_FailureTellsTheLastWords(t *testing.T) {
	f := &Federation{Name: "f", dir: t.TempDir()}
	c, err := f.process("broken").start(time.Now(), "sh", "-c", "sleep 0.2; echo 'error: no disk' >&2; exit 3")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := c.during(t.Context())
	defer stop()
	<-ctx.Done()
	err = context.Cause(ctx)
	for _, want := range []string{"broken", "exit status 3", "no disk", f.log("broken")} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not mention %q", err, want)
		}
	}
}

func TestLock_KeepsOthersOff(t *testing.T) {
	f := &Federation{Name: "f", dir: t.TempDir()}
	unlock, err := f.lock()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.lock(); !errors.Is(err, errLocked) {
		t.Errorf("a second lock: %v", err)
	}
	unlock()
	again, err := f.lock()
	if err != nil {
		t.Fatal(err)
	}
	again()
}

func TestChoosePorts_AreKeptAndDiffer(t *testing.T) {
	f := &Federation{Name: "f"}
	if err := f.choosePorts(); err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{}
	before := map[string]int{}
	for name, port := range f.Ports {
		if seen[port] {
			t.Errorf("port %d is given twice", port)
		}
		seen[port], before[name] = true, port
	}
	if err := f.choosePorts(); err != nil {
		t.Fatal(err)
	}
	for name, port := range before {
		if f.Ports[name] != port {
			t.Errorf("%s moved from %d to %d", name, port, f.Ports[name])
		}
	}
}

type lastWait struct {
	quiet

	what string
}

func (l *lastWait) Waiting(_, what string) { l.what = what }

func TestReporter_SaysOnceThatItWaits(t *testing.T) {
	p := &lastWait{}
	Deps{Progress: p}.reporter("register member2")("waiting for the control plane to sign")
	if p.what != "the control plane to sign" {
		t.Errorf("it waits for %q", p.what)
	}
}
