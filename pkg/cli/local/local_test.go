package local

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/karmada-toolkit/karmada/internal/build"
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
	parts[2].Cause = "the disk was full"
	err := stopped(parts, "karmadactl local up")
	if want := `not running: member1, member2 (the disk was full); start with "karmadactl local up"`; err == nil || err.Error() != want {
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

// TestListDocument pins the names of fields: scripts rely on them.
func TestListDocument(t *testing.T) {
	got, err := json.Marshal(listDocument{Name: "default", Runtime: "process", Members: []string{"member1"}, Running: 2, Parts: 3, Created: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Kubeconfig: "/k"})
	want := `{"name":"default","runtime":"process","members":["member1"],"running":2,"parts":3,"created":"2026-01-01T00:00:00Z","kubeconfig":"/k"}`
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
	want := "  … member1                    2.1s  waiting for the API server to answer\n" +
		"  ✓ member1                    2.5s  Kubernetes v1.36.3\n"
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
	build.AssertGolden(t, "next", next("karmadactl", " --name b", ", member1 to member2", `Stop it with "karmadactl local down --name b".`))
}

func TestFlapping_Text(t *testing.T) {
	got := flapping("karmadactl", " --name b", "member2", "flapping until 2026-05-01T12:05:00Z")
	want := "member2 is flapping until 2026-05-01T12:05:00Z: its condition Ready changes often, so it has the taint cluster.karmada.io/flapping:NoSchedule " +
		`and gets no new replicas until it is removed. To remove it now: "karmadactl local up --set controller-manager.flap-window=0s --name b"`
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
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

func TestShown_NextStepsOfANewFederationOnATerminal(t *testing.T) {
	for _, tc := range []struct {
		shown           shown
		fresh, terminal bool
		want            bool
	}{
		{shown{}, true, true, true},
		{shown{}, false, true, false},
		{shown{}, true, false, false},
		{shown{quiet: true}, true, true, false},
		{shown{output: "json"}, true, true, false},
	} {
		if got := tc.shown.next(tc.fresh, tc.terminal); got != tc.want {
			t.Errorf("%+v: got %v", tc, got)
		}
	}
}

func TestContexts_NamesMembers(t *testing.T) {
	f := &local.Federation{Members: []string{"member1", "member3", "member2"}}
	if got, want := contexts(f), ", member1, member3, member2"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	f.Members = append(f.Members, "member4", "member5", "member6", "member7")
	if got, want := contexts(f), ", member1, member3, member2, member4, member5 and 2 more"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// execute runs a command on a directory with federations.
func execute(t *testing.T, dir string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	streams, _, out, errOut := genericiooptions.NewTestIOStreams()
	e := &env.Env{
		Name: "karmadactl", IOStreams: streams, Now: time.Now,
		Interruptible: func(ctx context.Context) (context.Context, context.CancelFunc) { return ctx, func() {} },
	}
	cmd := NewCommand(e)
	cmd.SetArgs(append(args, "--dir", dir))
	cmd.SetOut(out)
	cmd.SetErr(errOut)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err = cmd.ExecuteContext(t.Context())
	return out.String(), errOut.String(), err
}

// saved returns a directory with the federation "default" of two members, of which nothing runs.
func saved(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	state := `{"name":"default","members":["member1","member2"],"pull":["member2"],"ports":{},"runtime":"process"}`
	if err := errors.Join(
		os.MkdirAll(filepath.Join(dir, "default", "logs"), 0o700),
		os.WriteFile(filepath.Join(dir, "default", "federation.json"), []byte(state), 0o600),
		os.WriteFile(filepath.Join(dir, "default", "logs", "member1.log"), []byte("one\ntwo\nthree\n"), 0o600),
	); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestParts_Errors(t *testing.T) {
	dir := saved(t)
	const all = `federation "default" has no "member9"; it has karmada-apiserver, karmada, member1, member2, member2-agent`
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"stop"}, `"karmadactl local stop" needs the name of a member or process, as "karmadactl local status" shows them; for the whole federation use "karmadactl local down" or "karmadactl local up"`},
		{[]string{"stop", "member1", "member9"}, all},
		{[]string{"start", "member9"}, all},
		{[]string{"restart", "member9"}, all},
		{[]string{"logs", "member9"}, all},
		{[]string{"logs", "member2"}, "member2 has no log yet; start it with"},
		{[]string{"logs", "member1", "--name", "other"}, "there is no such federation"},
		{[]string{"start", "member1", "--name", "other"}, "there is no such federation"},
	} {
		if _, _, err := execute(t, dir, tc.args...); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%v: got %v, want %q", tc.args, err, tc.want)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "other")); !os.IsNotExist(err) {
		t.Errorf("a federation was made: %v", err)
	}
}

func TestStop_WhatDoesNotRun(t *testing.T) {
	out, _, err := execute(t, saved(t), "stop", "member1", "member2-agent")
	if want := "member1, member2-agent of federation \"default\" stopped\n"; err != nil || out != want {
		t.Errorf("got %q, %v", out, err)
	}
}

func TestLogs(t *testing.T) {
	dir := saved(t)
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"logs", "member1"}, "one\ntwo\nthree\n"},
		{[]string{"logs", "member1", "--tail", "2"}, "two\nthree\n"},
		{[]string{"logs", "member1", "--tail", "0"}, ""},
		{[]string{"logs", "member1", "--tail", "9"}, "one\ntwo\nthree\n"},
		{[]string{"logs"}, strings.ReplaceAll("NAME                STATE     LOG\n"+
			"karmada-apiserver   stopped   DIR/karmada-apiserver.log\n"+
			"karmada             stopped   DIR/karmada.log\n"+
			"member1             stopped   DIR/member1.log\n"+
			"member2             stopped   DIR/member2.log\n"+
			"member2-agent       stopped   DIR/member2-agent.log\n", "DIR", filepath.Join(dir, "default", "logs"))},
	} {
		if out, _, err := execute(t, dir, tc.args...); err != nil || out != tc.want {
			t.Errorf("%v: got %q, %v, want %q", tc.args, out, err, tc.want)
		}
	}
}

func TestDown_PurgeOfNothing(t *testing.T) {
	out, _, err := execute(t, t.TempDir(), "down", "--purge", "--name", "other")
	if want := "there is no federation \"other\": nothing to remove\n"; err != nil || out != want {
		t.Errorf("got %q, %v", out, err)
	}
	if _, _, err := execute(t, t.TempDir(), "down", "--name", "other"); err == nil {
		t.Error("down without --purge of nothing succeeds")
	}
}

func TestCompletion(t *testing.T) {
	dir := saved(t)
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"down", "--name", ""}, "default\n:4\n"},
		{[]string{"down", "--member", ""}, "member1\nmember2\n:4\n"},
		{[]string{"down", "--member", "member1,"}, "member1,member1\nmember1,member2\n:4\n"},
		{[]string{"up", "--runtime", ""}, "process\nkind\n:4\n"},
		{[]string{"stop", "member2"}, "member2\nmember2-agent\n:4\n"},
		{[]string{"restart", "member2", ""}, "karmada-apiserver\nkarmada\nmember1\nmember2-agent\n:4\n"},
		{[]string{"logs", "karm"}, "karmada-apiserver\nkarmada\n:4\n"},
		{[]string{"logs", "karmada", ""}, ":4\n"},
	} {
		last := len(tc.args) - 1
		args := append(append([]string{cobra.ShellCompRequestCmd}, tc.args[:last]...), "--dir", dir, tc.args[last])
		if name := tc.args[last-1]; strings.HasPrefix(name, "--") {
			args = append([]string{cobra.ShellCompRequestCmd, tc.args[0], "--dir", dir}, tc.args[1:]...)
		}
		e := &env.Env{Name: "karmadactl", IOStreams: genericiooptions.NewTestIOStreamsDiscard(), Now: time.Now}
		var out bytes.Buffer
		cmd := NewCommand(e)
		cmd.SetArgs(args)
		cmd.SetOut(&out)
		cmd.SetErr(io.Discard)
		if err := cmd.Execute(); err != nil || out.String() != tc.want {
			t.Errorf("%q: got %q, %v, want %q", tc.args, out.String(), err, tc.want)
		}
	}
}
