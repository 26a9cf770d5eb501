package addons

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/karmada-toolkit/karmada/pkg/cli/env"
	"github.com/karmada-toolkit/karmada/pkg/init/addons"
)

// What is wrong with the arguments is reported whether or not a cluster can be reached.
func TestNewCommand_ChecksArgumentsFirst(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	for args, want := range map[string]string{
		"enable":                                   "addonNames must be not be null",
		"enable foo":                               "addon foo is not be supported now",
		"enable karmada-scheduler-estimator":       "--cluster",
		"enable karmada-descheduler -C m1":         "cluster is needed only when",
		"disable foo -f":                           "addon foo is not be supported now",
		"disable karmada-scheduler-estimator -f":   "--cluster",
		"disable all -C m1 --all-clusters --force": "cannot be used together",
	} {
		cmd := NewCommand(&env.Env{Name: "karmadactl", IOStreams: genericiooptions.NewTestIOStreamsDiscard(), Interruptible: context.WithCancel})
		cmd.SetArgs(strings.Fields(args))
		cmd.SilenceUsage, cmd.SilenceErrors = true, true
		if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("addons %s: %v, want %q", args, err, want)
		}
	}
}

func TestTable(t *testing.T) {
	got := table([]addons.Addon{{Name: "karmada-descheduler", Status: addons.Disabled}, {Name: "karmada-search", Status: addons.Enabled}})
	want := "" +
		"+---------------------+----------+\n" +
		"| ADDON NAME          | STATUS   |\n" +
		"|---------------------|----------|\n" +
		"| karmada-descheduler | disabled |\n" +
		"| karmada-search      | enabled  |\n" +
		"+---------------------+----------+\n"
	if got != want {
		t.Errorf("got:\n%s", got)
	}
}

// TestDocument pins the names of fields: scripts rely on them.
func TestDocument(t *testing.T) {
	got, err := json.Marshal(newDocument([]addons.Addon{{Name: "karmada-search", Status: addons.Enabled}, {Name: "karmada-descheduler", Status: addons.Unknown, Err: errors.New("boom")}}))
	want := `{"addons":[{"name":"karmada-search","status":"enabled"},{"name":"karmada-descheduler","status":"unknown","error":"boom"}]}`
	if err != nil || string(got) != want {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestFlags_ControlPlane(t *testing.T) {
	file := func(context string) string {
		path := filepath.Join(t.TempDir(), "config")
		text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","contexts":[{"name":%q,"context":{"cluster":"k"}}],"clusters":[{"name":"k","cluster":{"server":"https://k"}}]}`, context)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	both, host := file("karmada-apiserver"), file("host")
	for name, tt := range map[string]struct {
		edit          func(*flags)
		path, context string
		said, err     string
	}{
		"a file that is named":                   {edit: func(f *flags) { f.karmada.Path, f.karmada.Context = "x", "c" }, path: "x", context: "c"},
		"the kubeconfig of the host has both":    {edit: func(f *flags) { f.host.Path = both }, path: both, context: "karmada-apiserver", said: `the control plane is that of context "karmada-apiserver"`},
		"the kubeconfig of the host has no such": {edit: func(f *flags) { f.host.Path = host }, err: "/nowhere/x does not exist; name the kubeconfig of the control plane with --karmada-kubeconfig"},
		"a context that is named":                {edit: func(f *flags) { f.host.Path, f.karmada.Context = host, "host" }, path: host, context: "host", said: `context "host"`},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFlags()
			f.byDefault, f.karmada.Path = "/nowhere/x", "/nowhere/x"
			tt.edit(&f)
			var errOut bytes.Buffer
			got, err := f.controlPlane(&env.Env{IOStreams: genericiooptions.IOStreams{ErrOut: &errOut}})
			if got.Path != tt.path || got.Context != tt.context {
				t.Errorf("got %+v", got)
			}
			if !strings.Contains(errOut.String(), tt.said) || tt.said == "" && errOut.Len() > 0 {
				t.Errorf("said %q", errOut.String())
			}
			if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("got %v, want %q", err, tt.err)
			}
		})
	}
}
