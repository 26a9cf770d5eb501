package process

import (
	"context"
	"crypto/x509"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/karmada-toolkit/karmada/internal/pki"
	"github.com/karmada-toolkit/karmada/pkg/local/federation"
	"github.com/karmada-toolkit/karmada/pkg/local/federation/federationtest"
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

func TestDiskFull(t *testing.T) {
	for name, tc := range map[string]struct{ log, want string }{
		"cut off":       {"W1123 watchers from cacher ingresses.networking.k8error: etcd gave up: failed to commit tx: write /d/db: no space left on device", "the disk was full"},
		"long ago":      {"error: write /d/db: no space left on device\n" + strings.Repeat("a line of a later start\n", 100), ""},
		"another cause": {"error: no port is free\n", ""},
	} {
		path := filepath.Join(t.TempDir(), "log")
		if err := os.WriteFile(path, []byte(tc.log), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := diskFull(path); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
	if got := diskFull(filepath.Join(t.TempDir(), "none")); got != "" {
		t.Errorf("no log: %q", got)
	}
}

func TestLastError(t *testing.T) {
	const probe = `I1123 07:00:00.000000 1 healthz.go:58] "healthz check failed" logger="controller-runtime.healthz" statuses=[{},{}]`
	for name, tc := range map[string]struct{ log, want string }{
		"only failed health checks":    {"old line\n--- start\n" + probe + "\n" + probe + "\n", "the API server of its cluster is unreachable"},
		"health checks after a cause":  {"--- start\nconnection refused\n" + probe + "\n", "the API server of its cluster is unreachable"},
		"an error before other lines":  {"--- start\nerror: no disk\nbye\n" + probe + "\n", "no disk"},
		"the last line of a long log":  {strings.Repeat("line\n", 60) + "bye\n" + probe + "\n", "bye"},
		"nothing since it was started": {"error: old\n--- start\n", ""},
	} {
		path := filepath.Join(t.TempDir(), "log")
		if err := os.WriteFile(path, []byte(tc.log), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := lastError(path); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// A process that was sent a signal to end counts as running until it ends; the step that found it runs again then.
func TestRetryEnded_FoundProcessEnds(t *testing.T) {
	p := process{"sleeper", federation.Dir(t.TempDir())}
	if _, err := p.start(time.Now(), "sleep", "60"); err != nil {
		t.Fatal(err)
	}
	var found []bool
	err := retryEnded(func() error {
		r, alive := p.running()
		found = append(found, alive)
		if !alive {
			return nil
		}
		ctx, stop := p.during(t.Context(), r)
		defer stop()
		if err := terminate(r.PID); err != nil {
			return err
		}
		<-ctx.Done()
		return context.Cause(ctx)
	})
	if err != nil || !slices.Equal(found, []bool{true, false}) {
		t.Errorf("got %v, %v", found, err)
	}
}

// A start that fails leaves what is ready running, stops the rest, and starts what it stopped for it as it was.
func TestLauncher_UndoRestoresWhatRan(t *testing.T) {
	dir := federation.Dir(t.TempDir())
	changed, finished, fresh := process{"changed", dir}, process{"finished", dir}, process{"fresh", dir}
	if _, err := changed.start(time.Now(), "sleep", "60"); err != nil {
		t.Fatal(err)
	}
	l := &launcher{now: time.Now}
	if _, alive, err := l.running(t.Context(), changed, []string{"61"}); alive || err != nil {
		t.Fatalf("it runs with other arguments: %v", err)
	}
	for _, p := range []process{changed, finished, fresh} {
		if _, err := l.start(t.Context(), p, "sleep", []string{"61"}); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = p.stop(context.WithoutCancel(t.Context())) }()
	}
	l.done(finished.name)
	if got := l.undo(t.Context()); !slices.Equal(got, []string{"changed"}) {
		t.Errorf("restarted %v", got)
	}
	for p, args := range map[process][]string{changed: {"60"}, finished: {"61"}, fresh: nil} {
		r, alive := p.running()
		if alive != (args != nil) || (alive && !r.runsWith(args)) {
			t.Errorf("%s: running %t, %v", p.name, alive, r.Command)
		}
	}
}

// After an interruption at any point what ran before runs as before: before its end was seen, between its end and the next start, and
// while the next one is not ready.
func TestLauncher_InterruptionsLeaveWhatRan(t *testing.T) {
	// It takes a moment to end, as servers do.
	slow := []string{"-c", "trap 'sleep 0.2; exit 0' TERM; while :; do sleep 0.05; done", "slow"}
	for name, proceed := range map[string]func(context.Context, *launcher, process){
		"while it ends":                  func(context.Context, *launcher, process) {},
		"while the next one starts":      func(ctx context.Context, l *launcher, p process) { _, _ = l.start(ctx, p, "sleep", []string{"60"}) },
		"while the next one ends itself": func(ctx context.Context, l *launcher, p process) { _, _ = l.start(ctx, p, "false", nil) },
	} {
		t.Run(name, func(t *testing.T) {
			p := process{"roles", federation.Dir(t.TempDir())}
			if _, err := p.start(time.Now(), "sh", slow...); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = p.stop(context.WithoutCancel(t.Context())) })
			ctx, interrupt := context.WithCancel(t.Context())
			l := &launcher{now: time.Now}
			interrupt()
			if _, alive, err := l.running(ctx, p, []string{"other"}); alive || err != nil {
				t.Fatalf("alive %t, %v", alive, err)
			}
			proceed(ctx, l, p)
			if got := l.undo(t.Context()); !slices.Equal(got, []string{"roles"}) {
				t.Errorf("restarted %v", got)
			}
			if r, alive := p.running(); !alive || !r.runsWith(slow) {
				t.Errorf("running %t, %v", alive, r.Command)
			}
		})
	}
}

func TestAgents_UseACertificateOnlyWhileItIsValid(t *testing.T) {
	f := federationtest.Saved(t)
	now := federationtest.Deps().Now()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	for name, tc := range map[string]struct {
		made     time.Time
		validity time.Duration
		server   string
		want     bool
	}{
		"valid":                     {now, time.Hour, "https://a", true},
		"of another control plane":  {now, time.Hour, "https://b", false},
		"ended":                     {now.Add(-2 * time.Hour), time.Hour, "https://a", false},
		"ends at once":              {now.Add(-2 * time.Hour), 2*time.Hour + time.Second, "https://a", false},
		"the clock was set back":    {now.Add(time.Hour), 24 * time.Hour, "https://a", false},
		"the clock was set forward": {now.Add(-time.Hour), 24 * time.Hour, "https://a", true},
	} {
		ca, err := pki.NewCA(pki.CAConfig{CommonName: "ca"}, nil, tc.made)
		if err != nil {
			t.Fatal(err)
		}
		leaf, err := pki.NewLeaf(pki.LeafConfig{CommonName: "agent", Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, Validity: tc.validity}, ca, tc.made)
		if err != nil {
			t.Fatal(err)
		}
		config, err := pki.NewKubeconfig(pki.KubeconfigEntry{Context: "c", Server: tc.server, CA: ca.CertPEM(), Client: leaf})
		if err != nil {
			t.Fatal(err)
		}
		if err := pki.WriteKubeconfig(path, config); err != nil {
			t.Fatal(err)
		}
		s := &agents{Deps: federationtest.Deps(), f: f}
		if got := s.valid(path, "https://a"); got != tc.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
	if (&agents{Deps: federationtest.Deps(), f: f}).valid(path+"-none", "https://a") {
		t.Error("a kubeconfig that does not exist is used")
	}
}
