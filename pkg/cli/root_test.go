package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/karmada-toolkit/karmada/internal/build"
	"github.com/karmada-toolkit/karmada/pkg/cli/env"
)

// program is the CLI with its streams in memory.
type program struct {
	*env.Env
	out, errOut *bytes.Buffer
}

func testEnv(t *testing.T) program {
	t.Helper()
	return testProgram(t, "karmadactl", "karmadactl")
}

func testProgram(t *testing.T, root, name string) program {
	t.Helper()
	t.Setenv("KUBECONFIG", "/nowhere/config")
	t.Setenv("KUBECACHEDIR", t.TempDir())
	t.Setenv("COLUMNS", "")
	p := program{out: &bytes.Buffer{}, errOut: &bytes.Buffer{}}
	p.Env = &env.Env{
		IOStreams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: p.out, ErrOut: p.errOut},
		Root:      root, Name: name,
		Now:           func() time.Time { return time.Unix(1_700_000_000, 0) },
		Exit:          func(code int) { panic(exit(code)) },
		Interruptible: context.WithCancel,
	}
	return p
}

// exit is how a command of kubectl ends in a test.
type exit int

// run runs a command line and returns its exit code.
func (p program) run(t *testing.T, args ...string) (code int) {
	t.Helper()
	return p.runIn(t.Context(), args...)
}

// runIn is run with a context.
func (p program) runIn(ctx context.Context, args ...string) (code int) {
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(exit)
			if !ok {
				panic(r)
			}
			code = int(e)
		}
	}()
	return Run(ctx, p.Env, args)
}

func TestHelp(t *testing.T) {
	for _, tt := range []struct {
		name, root, program string
		args                []string
	}{
		{"root", "karmadactl", "karmadactl", nil},
		{"root-plugin", "kubectl-karmada", "kubectl karmada", []string{"--help"}},
		{"get", "karmadactl", "karmadactl", []string{"get", "--help"}},
		{"get-plugin", "kubectl-karmada", "kubectl karmada", []string{"get", "-h"}},
		{"join", "karmadactl", "karmadactl", []string{"help", "join"}},
		{"unjoin", "karmadactl", "karmadactl", []string{"unjoin", "--help"}},
		{"token", "karmadactl", "karmadactl", []string{"token"}},
		{"token-create", "karmadactl", "karmadactl", []string{"token", "create", "--help"}},
		{"register", "karmadactl", "karmadactl", []string{"register", "--help"}},
		{"unregister", "kubectl-karmada", "kubectl karmada", []string{"unregister", "--help"}},
		{"taint", "karmadactl", "karmadactl", []string{"taint", "--help"}},
		{"cordon", "karmadactl", "karmadactl", []string{"cordon", "--help"}},
		{"apply", "karmadactl", "karmadactl", []string{"apply", "--help"}},
		{"options", "karmadactl", "karmadactl", []string{"options"}},
		{"completion", "karmadactl", "karmadactl", []string{"completion", "--help"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := testProgram(t, tt.root, tt.program)
			if code := p.run(t, tt.args...); code != 0 {
				t.Errorf("exit code %d: %s", code, p.errOut)
			}
			build.AssertGolden(t, tt.name, p.out.String())
		})
	}
}

func TestHelp_EveryCommandSpeaksOfTheProgram(t *testing.T) {
	for _, p := range []program{testProgram(t, "karmadactl", "karmadactl"), testProgram(t, "kubectl-karmada", "kubectl karmada")} {
		root := NewCommand(p.Env)
		for _, cmd := range root.Commands() {
			if cmd.Name() == "local" { // works with any kubectl
				continue
			}
			for line := range strings.SplitSeq(cmd.Example, "\n") {
				line = strings.TrimSpace(line)
				if strings.HasPrefix(line, "kubectl ") && !strings.HasPrefix(line, p.Name+" ") {
					t.Errorf("%s: %s", cmd.CommandPath(), line)
				}
			}
			if strings.Contains(cmd.Long+cmd.Example, "{{") {
				t.Errorf("%s: help has an unfilled template", cmd.CommandPath())
			}
		}
	}
}

func TestCommands_AreInTheSectionsOfTheContract(t *testing.T) {
	root := NewCommand(testEnv(t).Env)
	for _, cmd := range root.Commands() {
		group := cmd.Annotations["commandGroup"]
		switch cmd.Name() {
		case "completion", "options", "version", "help":
			if group != "" {
				t.Errorf("%s has commandGroup %q, want none", cmd.Name(), group)
			}
		default:
			if group == "" || strings.HasSuffix(group, ":") {
				t.Errorf("%s has commandGroup %q", cmd.Name(), group)
			}
		}
	}
}

func TestRun_ExtraCommands(t *testing.T) {
	p := testEnv(t)
	extra := Group{Heading: "More Commands", Commands: []Constructor{func(*env.Env) *cobra.Command {
		return &cobra.Command{Use: "more", Short: "Do more", RunE: func(*cobra.Command, []string) error { return errors.New("no more") }}
	}}}
	root := NewCommand(p.Env, extra)
	root.SetArgs(nil)
	if err := root.Execute(); err != nil || !strings.Contains(p.out.String(), "More Commands:\n  more") {
		t.Errorf("help: %v\n%s", err, p.out)
	}
	if code := Run(t.Context(), p.Env, []string{"more"}, extra); code != 1 || !strings.HasSuffix(p.errOut.String(), "error: no more\n") {
		t.Errorf("code %d, stderr %q", code, p.errOut)
	}
}

func TestVersion(t *testing.T) {
	p := testProgram(t, "kubectl-karmada", "kubectl karmada")
	if code := p.run(t, "version"); code != 0 || !strings.HasPrefix(p.out.String(), `kubectl karmada version: version.Info{GitVersion:"`) {
		t.Errorf("code %d: %s", code, p.out)
	}
}

func TestVersion_OfTheProgram(t *testing.T) {
	p := testEnv(t)
	if code := p.run(t, "--version"); code != 0 || !strings.HasPrefix(p.out.String(), `karmadactl version: version.Info{GitVersion:"`) {
		t.Errorf("code %d: %s", code, p.out)
	}
}

func TestVersion_Document(t *testing.T) {
	for format, want := range map[string]string{"json": `    "gitVersion": "`, "yaml": "\ngitVersion: v"} {
		p := testEnv(t)
		if code := p.run(t, "version", "-o", format); code != 0 || !strings.Contains(p.out.String(), want) {
			t.Errorf("%s: code %d: %s", format, code, p.out)
		}
	}
}

func TestWarnings_ArePrintedAsKubectlDoes(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Add("Warning", `299 - "old API"`)
		http.Error(w, "no", http.StatusForbidden)
	}))
	defer server.Close()
	p := testEnv(t)
	kubeconfig := filepath.Join(t.TempDir(), "config")
	text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c"}}],"clusters":[{"name":"c","cluster":{"server":%q}}]}`, server.URL)
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p.run(t, "api-versions", "--kubeconfig", kubeconfig)
	if !strings.HasPrefix(p.errOut.String(), "Warning: old API\n") {
		t.Errorf("got %s", p.errOut)
	}
}

func TestCompletion(t *testing.T) {
	for shell, want := range map[string]string{
		"bash": "__start_kubectl-karmada", "zsh": "#compdef kubectl-karmada\n", "fish": "__kubectl_karmada_perform_completion",
	} {
		p := testProgram(t, "kubectl-karmada", "kubectl karmada")
		if code := p.run(t, "completion", shell); code != 0 || !strings.Contains(p.out.String(), want) {
			t.Errorf("%s: code %d, no %q", shell, code, want)
		}
		if !strings.Contains(p.out.String(), "Licensed under the Apache License") {
			t.Errorf("%s: no licence", shell)
		}
	}
}

func TestCompletion_Dynamic(t *testing.T) {
	dir := t.TempDir()
	kubeconfig := filepath.Join(dir, "config")
	if err := os.WriteFile(kubeconfig, []byte(`{"apiVersion":"v1","kind":"Config","contexts":[{"name":"two","context":{}},{"name":"one","context":{}}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"alpha", "beta"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name, "federation.json"), []byte(`{}`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct{ args, want string }{
		{"get pods --operation-scope ", "karmada\nmembers\nall\n:4\n"},
		{"describe pods -s ", "karmada\nmembers\n:4\n"},
		{"completion ", "bash\nzsh\nfish\npowershell\n:4\n"},
		{"taint ", "cluster\n:4\n"},
		{"join m1 --cluster-context ", "one\ntwo\n:4\n"},
		{"register h:1 --context t", "two\n:4\n"},
		{"get pods --context o", "one\n:4\n"},
		{"unregister m1 --karmada-context o", "one\n:4\n"},
		{"init --etcd-storage-mode ", "hostPath\nemptyDir\nPVC\n:4\n"},
		{"init --only certs,et", "certs,etcd\n:6\n"},
		{"version -o ", "json\nyaml\n:4\n"},
		{"local status --dir DIR --name a", "alpha\n:4\n"},
	} {
		p := testEnv(t)
		t.Setenv("KUBECONFIG", kubeconfig)
		p.run(t, append([]string{"__complete"}, strings.Split(strings.ReplaceAll(tt.args, "DIR", dir), " ")...)...)
		if got := p.out.String(); got != tt.want {
			t.Errorf("%q: got %q, want %q", tt.args, got, tt.want)
		}
	}
}

// TestRun_PluginHasOneName runs command lines of the plugin: its usage, hints and errors name what the user types.
func TestRun_PluginHasOneName(t *testing.T) {
	for _, line := range []string{"--help", "gte", "top foo", "token create extra", "deinit a", "local up -h", "create -h", "init images -h", "options"} {
		p := testProgram(t, "kubectl-karmada", "kubectl karmada")
		p.run(t, strings.Fields(line)...)
		if text := p.out.String() + p.errOut.String(); strings.Contains(text, "kubectl-karmada") || strings.Contains(text, "karmadactl") {
			t.Errorf("%s: %s", line, text)
		}
	}
}

// TestComplete_Workloads completes what commands on workloads take, without a control plane.
func TestComplete_Workloads(t *testing.T) {
	for line, want := range map[string]string{
		"capacity --for dep":            "deployments/\n:2\n",
		"promote dep":                   "_activeHelp_ name the member cluster with -C first: its objects are completed\n:4\n",
		"rebalance dep":                 "deployments\n:4\n",
		"rebalance --output ":           "json\nyaml\n:4\n",
		"capacity --for deployments/ng": ":0\n",
	} {
		p := testEnv(t)
		words := strings.Split(line, " ")
		p.run(t, append([]string{"__complete"}, words...)...)
		if got := p.out.String(); got != want {
			t.Errorf("%s: got %q, want %q", line, got, want)
		}
	}
}
