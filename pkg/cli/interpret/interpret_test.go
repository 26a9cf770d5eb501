package interpret

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"github.com/karmada-toolkit/karmada/internal/build"
	"github.com/karmada-toolkit/karmada/pkg/cli/env"
)

type outcome struct {
	out, errOut string
	err         error
}

// text is all that a user sees.
func (o outcome) text() string {
	text := o.out
	if o.errOut != "" {
		text += "[stderr]\n" + o.errOut
	}
	switch {
	case errors.Is(o.err, cmdutil.ErrExit):
		text += "[exit code 1]\n"
	case o.err != nil:
		text += "[error] " + o.err.Error() + "\n"
	}
	return text
}

func run(t *testing.T, stdin string, args ...string) outcome {
	t.Helper()
	t.Setenv("KUBECONFIG", "/nowhere/config")
	var out, errOut bytes.Buffer
	cmd := NewCommand(&env.Env{
		IOStreams: genericiooptions.IOStreams{In: strings.NewReader(stdin), Out: &out, ErrOut: &errOut},
		Root:      "karmadactl", Name: "karmadactl",
		Now:           func() time.Time { return time.Unix(1_700_000_000, 0) },
		Exit:          func(int) {},
		Interruptible: context.WithCancel,
	})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	cmd.SetOut(io.Discard)
	err := cmd.ExecuteContext(t.Context())
	return outcome{out.String(), errOut.String(), err}
}

func TestInterpret(t *testing.T) {
	for name, args := range map[string]string{
		"check":               "-f testdata/customization.yaml --check",
		"check-bad":           "-f testdata/bad.yaml --check",
		"check-conflict":      "-f testdata/customization.yaml,testdata/bad.yaml --check",
		"retain":              "-f testdata/customization.yaml --operation retain --desired-file testdata/desired.yaml --observed-file testdata/deployment.yaml",
		"replica":             "-f testdata/customization.yaml --operation InterpretReplica --desired-file testdata/deployment.yaml",
		"revise":              "-f testdata/customization.yaml --operation reviseReplica --desired-file testdata/desired.yaml --desired-replica 5",
		"status":              "-f testdata/customization.yaml --operation interpretstatus --observed-file testdata/deployment.yaml",
		"aggregate":           "-f testdata/customization.yaml --operation AggregateStatus --desired-file testdata/desired.yaml --status-file testdata/status.yaml",
		"aggregate-nothing":   "-f testdata/customization.yaml --operation AggregateStatus --desired-file testdata/desired.yaml",
		"health":              "-f testdata/customization.yaml --operation InterpretHealth --observed-file testdata/deployment.yaml",
		"dependency":          "-f testdata/customization.yaml --operation InterpretDependency --desired-file testdata/deployment.yaml",
		"dependency-none":     "-f testdata/customization.yaml --operation InterpretDependency --desired-file testdata/desired.yaml",
		"script-fails":        "-f testdata/customization.yaml --operation InterpretHealth --observed-file testdata/desired.yaml",
		"script-loops":        "-f testdata/bad.yaml --operation ReviseReplica --observed-file testdata/desired.yaml",
		"not-enabled":         "-f testdata/customization.yaml --operation InterpretComponent --desired-file testdata/desired.yaml",
		"another-kind":        "-f testdata/customization.yaml --operation InterpretHealth --desired-file testdata/customization.yaml",
		"retain-no-desired":   "-f testdata/customization.yaml --operation Retain",
		"retain-no-observed":  "-f testdata/customization.yaml --operation Retain --desired-file testdata/desired.yaml",
		"no-object":           "-f testdata/customization.yaml --operation InterpretHealth",
		"both-objects":        "-f testdata/customization.yaml --operation InterpretHealth --desired-file testdata/desired.yaml --observed-file testdata/desired.yaml",
		"two-objects":         "-f testdata/customization.yaml --operation InterpretHealth --desired-file testdata/two.yaml",
		"empty-object":        "-f testdata/customization.yaml --operation InterpretHealth --desired-file testdata/empty.yaml",
		"missing-object":      "-f testdata/customization.yaml --operation InterpretHealth --desired-file testdata/none.yaml",
		"bad-status":          "-f testdata/customization.yaml --operation AggregateStatus --desired-file testdata/desired.yaml --status-file testdata/desired.yaml",
		"unknown-operation":   "-f testdata/customization.yaml --operation Prune",
		"no-operation":        "-f testdata/customization.yaml",
		"nothing":             "",
		"check-and-edit":      "-f testdata/customization.yaml --check --edit",
		"list-and-check":      "--list --check",
		"stdin-twice":         "-f - --desired-file - --operation Retain",
		"not-a-customization": "-f testdata/desired.yaml --check",
		"check-empty":         "-f testdata/empty.yaml --check",
		"edit-two":            "-f testdata/customization.yaml,testdata/bad.yaml --edit",
		"list":                "--list",
		"list-kind":           "--list cloneset BroadcastJob.apps.kruise.io",
		"list-overrides":      "--list -f testdata/customization.yaml",
	} {
		t.Run(name, func(t *testing.T) {
			build.AssertGolden(t, name, run(t, "", strings.Fields(args)...).text())
		})
	}
}

// TestInterpret_Documents pins what each operation prints for scripts.
func TestInterpret_Documents(t *testing.T) {
	var all strings.Builder
	for _, args := range []string{
		"--operation Retain --desired-file testdata/desired.yaml --observed-file testdata/deployment.yaml",
		"--operation InterpretReplica --desired-file testdata/deployment.yaml",
		"--operation ReviseReplica --desired-file testdata/desired.yaml --desired-replica 5",
		"--operation InterpretStatus --observed-file testdata/deployment.yaml",
		"--operation AggregateStatus --desired-file testdata/desired.yaml --status-file testdata/status.yaml",
		"--operation InterpretHealth --observed-file testdata/deployment.yaml",
		"--operation InterpretDependency --desired-file testdata/deployment.yaml",
		"--operation InterpretDependency --desired-file testdata/desired.yaml",
		"--operation InterpretHealth --observed-file testdata/desired.yaml",   // the script fails
		"--operation InterpretComponent --desired-file testdata/desired.yaml", // there is no script
	} {
		for _, output := range []string{"json", "yaml", "nope"} {
			line := "-f testdata/customization.yaml " + args + " -o " + output
			all.WriteString("$ interpret " + line + "\n" + run(t, "", strings.Fields(line)...).text())
		}
	}
	build.AssertGolden(t, "documents-operations", all.String())
}

func TestInterpret_ReadsTheStandardInput(t *testing.T) {
	text, err := os.ReadFile("testdata/customization.yaml")
	if err != nil {
		t.Fatal(err)
	}
	got := run(t, string(text), "-f", "-", "--check")
	if want := run(t, "", "-f", "testdata/customization.yaml", "--check"); got != want {
		t.Errorf("from the standard input:\n%s\nfrom the file:\n%s", got.text(), want.text())
	}
	items, err := os.ReadFile("testdata/status.yaml")
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"-f", "testdata/customization.yaml", "--operation", "AggregateStatus", "--desired-file", "testdata/desired.yaml", "--status-file"}
	got = run(t, string(items), append(args, "-")...)
	if want := run(t, "", append(args, "testdata/status.yaml")...); got != want {
		t.Errorf("from the standard input:\n%s\nfrom the file:\n%s", got.text(), want.text())
	}
}

func TestInterpret_ReadsURLsAndDirectories(t *testing.T) {
	s := httptest.NewServer(http.FileServer(http.Dir("testdata")))
	defer s.Close()
	dir := t.TempDir()
	for _, name := range []string{"customization.yaml", "desired.yaml", "status.yaml"} {
		text, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(dir, strings.TrimSuffix(name, ".yaml")), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, strings.TrimSuffix(name, ".yaml"), name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	args := func(c, d, s string) []string {
		return []string{"-f", c, "--operation", "AggregateStatus", "--desired-file", d, "--status-file", s}
	}
	want := run(t, "", args("testdata/customization.yaml", "testdata/desired.yaml", "testdata/status.yaml")...)
	for where, got := range map[string]outcome{
		"URLs":        run(t, "", args(s.URL+"/customization.yaml", s.URL+"/desired.yaml", s.URL+"/status.yaml")...),
		"directories": run(t, "", args(dir+"/customization", dir+"/desired", dir+"/status")...),
		"patterns":    run(t, "", args("testdata/customiz*", "testdata/desire?.yaml", "testdata/stat*.yaml")...),
	} {
		if got != want {
			t.Errorf("from %s:\n%s\nwant:\n%s", where, got.text(), want.text())
		}
	}
	if got := run(t, "", args("testdata/customization.yaml", "testdata/desired.yaml", s.URL+"/none.yaml")...); !strings.Contains(got.errOut, "status code=404") {
		t.Errorf("a URL that is not there: %s", got.text())
	}
}

func TestInterpret_RefusesMisspeltRules(t *testing.T) {
	text, err := os.ReadFile("testdata/customization.yaml")
	if err != nil {
		t.Fatal(err)
	}
	got := run(t, strings.Replace(string(text), "retention:", "retain:", 1), "-f", "-", "--check")
	if got.err == nil || !strings.Contains(got.err.Error(), `unknown field "spec.customizations.retain"`) {
		t.Errorf("got %s", got.text())
	}
}

func TestList_PrintsWholeCustomizations(t *testing.T) {
	if one := run(t, "", "--list", "CloneSet", "-o", "yaml"); strings.Count(one.out, "kind: ResourceInterpreterCustomization") != 1 || !strings.Contains(one.out, "kind: CloneSet") {
		t.Errorf("one kind: %.200s", one.out)
	}
	got := run(t, "", "--list", "-o", "yaml")
	if got.err != nil || strings.Count(got.out, "kind: ResourceInterpreterCustomization") < 27 {
		t.Fatalf("%v\n%s", got.err, got.out)
	}
	// What is printed can be checked again.
	if checked := run(t, got.out, "-f", "-", "--check"); checked.err != nil || strings.Contains(checked.out, "ERROR") {
		t.Errorf("%v\n%s", checked.err, checked.out)
	}
}
