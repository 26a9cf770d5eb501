package local

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/karmada-toolkit/karmada/internal/golden"
	"github.com/karmada-toolkit/karmada/pkg/cli/env"
	"github.com/karmada-toolkit/karmada/pkg/local"
)

func TestPrintStatus(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 1, 0, 0, time.UTC)
	var out bytes.Buffer
	err := printStatus(&out, []local.ProcessStatus{
		{Name: "karmada-apiserver", State: "running", PID: 7, Since: now.Add(-time.Minute), Server: "https://127.0.0.1:1", Log: "/l/a.log"},
		{Name: "member1", State: "stopped", Log: "/l/m.log"},
	}, now)
	if err != nil {
		t.Fatal(err)
	}
	want := "NAME                STATE     READY   PID   AGE   SERVER                LOG\n" +
		"karmada-apiserver   running   -       7     60s   https://127.0.0.1:1   /l/a.log\n" +
		"member1             stopped   -       -     -     -                     /l/m.log\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

func TestStopped_NamesWhatDoesNotRun(t *testing.T) {
	parts := []local.ProcessStatus{{Name: "karmada-apiserver", State: "running"}, {Name: "member1", State: "stopped"}, {Name: "member2", State: "missing"}}
	if err := stopped(parts[:1], "karmadactl local up"); err != nil {
		t.Errorf("got %v", err)
	}
	err := stopped(parts, "karmadactl local up")
	if want := `not running: member1, member2; start with "karmadactl local up"`; err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}

func TestStatusDocuments(t *testing.T) {
	since := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	got, err := json.Marshal(statusDocuments([]local.ProcessStatus{{Name: "a", State: "running", PID: 7, Since: since}, {Name: "b", State: "stopped"}}))
	want := `[{"name":"a","state":"running","pid":7,"since":"2026-01-01T00:00:00Z"},{"name":"b","state":"stopped"}]`
	if err != nil || string(got) != want {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestProgress_ShowsHowLongStepsTook(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var out bytes.Buffer
	p := deps(&env.Env{Now: func() time.Time { return now }}, &out).Progress
	p.Begin("member1")
	now = now.Add(2100 * time.Millisecond)
	p.Waiting("member1", "the API server to answer")
	now = now.Add(400 * time.Millisecond)
	p.Done("member1", "Kubernetes v1.36.3")
	want := "  … member1              2.1s  waiting for the API server to answer\n" +
		"  ✓ member1              2.5s  Kubernetes v1.36.3\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

func TestGiven_RepeatsWhatNamesTheFederation(t *testing.T) {
	for _, tc := range []struct {
		flags flags
		want  string
	}{
		{flags{name: local.DefaultName}, ""},
		{flags{name: "b", dir: "/d"}, "--name b --dir /d"},
	} {
		if got := strings.TrimSpace(tc.flags.given()); got != tc.want {
			t.Errorf("%+v gives %q, want %q", tc.flags, got, tc.want)
		}
	}
}

func TestNext_Text(t *testing.T) {
	golden.Assert(t, "next", next("karmadactl", " --name b", ", member1 to member2", `Stop it with "karmadactl local down --name b".`))
}

func TestCommands_SuggestTheFlagForAName(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"up", "ux"}, `"karmadactl local up" takes no arguments; to name a federation use "karmadactl local up --name ux"`},
		{[]string{"down", "ux"}, `use "karmadactl local down --name ux"`},
		{[]string{"status", "ux", "b"}, `"karmadactl local status" takes no arguments, got ["ux" "b"]`},
		{[]string{"up", "--node-pods", "0"}, "use 1 or more"},
	} {
		e := &env.Env{Name: "karmadactl", IOStreams: genericiooptions.NewTestIOStreamsDiscard(), Now: time.Now}
		cmd := NewCommand(e)
		cmd.SetArgs(tt.args)
		cmd.SetOut(io.Discard)
		cmd.SetErr(io.Discard)
		if err := cmd.Execute(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v: got %v, want %q", tt.args, err, tt.want)
		}
	}
}
