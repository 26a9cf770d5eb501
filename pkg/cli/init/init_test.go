package initcmd

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/karmada-toolkit/karmada/internal/build"
	"github.com/karmada-toolkit/karmada/pkg/cli/env"
	installer "github.com/karmada-toolkit/karmada/pkg/init"
)

func testEnv() (e *env.Env, out, errOut *bytes.Buffer) {
	out, errOut = &bytes.Buffer{}, &bytes.Buffer{}
	return &env.Env{
		IOStreams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: out, ErrOut: errOut},
		Root:      "karmadactl", Name: "karmadactl",
		Now: time.Now,
		Interruptible: func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithCancel(ctx)
		},
	}, out, errOut
}

func execute(t *testing.T, args ...string) (stdout string, err error) {
	t.Helper()
	e, out, _ := testEnv()
	cmd := NewCommand(e)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	err = cmd.ExecuteContext(t.Context())
	return out.String(), err
}

func TestFinish(t *testing.T) {
	e, out, _ := testEnv()
	err := finish(e, &installer.Result{
		Kubeconfig: "/etc/karmada/karmada-apiserver.config", Server: "https://10.0.0.1:32443", Token: "abcdef.0123456789abcdef", CAHash: "sha256:00", FilesChanged: true,
	}, 12*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	build.AssertGolden(t, "finish", out.String())
}

func TestPhases(t *testing.T) {
	out, err := execute(t, "phases")
	if err != nil {
		t.Fatal(err)
	}
	build.AssertGolden(t, "phases", out)
}

func TestImagesList(t *testing.T) {
	config := filepath.Join(t.TempDir(), "init.yaml")
	text := "apiVersion: config.karmada.io/v1alpha1\nkind: KarmadaInitConfig\nspec: {images: {kubeImageTag: v9}, components: {karmadaWebhook: {repository: mine, tag: v1}}}\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := execute(t, "images", "list", "--config", config, "--kube-image-registry=kube")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"kube/kube-apiserver:v9\n", "kube/etcd:3.6.8-0\n", "mine:v1\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("lacks %q:\n%s", want, out)
		}
	}
}

func TestImagesSave_NamesWhatIsMissing(t *testing.T) {
	dir := t.TempDir()
	engine := filepath.Join(dir, "engine")
	script := "#!/bin/sh\nif [ \"$1\" = save ]; then shift 2; echo saved > \"$1\"; exit; fi\ncase \"$5\" in *etcd*) echo 'Error: No such image' >&2; exit 1;; esac\n"
	if err := os.WriteFile(engine, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := execute(t, "images", "save", "--engine", engine, "--output", filepath.Join(dir, "out.tar"))
	if err == nil || !strings.Contains(err.Error(), "pull registry.k8s.io/etcd:3.6.8-0") || strings.Contains(err.Error(), "kube-apiserver") {
		t.Errorf("got %v", err)
	}
	out, err := execute(t, "images", "save", "--engine", engine, "--output", filepath.Join(dir, "out.tar"), "--etcd-image=mine")
	if err != nil || !strings.Contains(out, "7 images saved") {
		t.Errorf("got %q, %v", out, err)
	}
	if _, err := execute(t, "images", "save", "--engine", "no-such-engine"); err == nil || !strings.Contains(err.Error(), "--engine") {
		t.Errorf("got %v", err)
	}
}

func TestArguments(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"foo"}, `"init" does not take any arguments, got ["foo"]`},
		{[]string{"--dry-run", "--export=x"}, "cannot be used together"},
		{[]string{"--etcd-replicas=3"}, "etcd-replicas can only be 1"},
		{[]string{"--karmada-webhook-extra-args=x"}, `invalid argument "x" for "--karmada-webhook-extra-args" flag: argument "x" is invalid: no preceding --key found`},
		{[]string{"--kubeconfig=/nowhere"}, `reading the kubeconfig of --kubeconfig "/nowhere"`},
	} {
		if _, err := execute(t, tc.args...); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%v: got %v, want %s", tc.args, err, tc.want)
		}
	}
}
