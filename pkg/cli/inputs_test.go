package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/karmada-toolkit/karmada/internal/build"
)

// bomb is YAML of 159 KB whose aliases repeat gigabytes of text.
func bomb() string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\nx: &x " + strings.Repeat("x", 100_000) + "\ny: [" + strings.Repeat("*x,", 19_500) + "]\n"
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// snapshotFile is a federation without a server.
const snapshotFile = "--from=plan/testdata/federation.json"

// readers are the command lines that read a manifest, with %s for its name.
func readers(root *cobra.Command) []string {
	out := []string{
		"plan " + snapshotFile + " -f %s", "patch deploy x --patch-file=%s", "interpret --operation=InterpretReplica --desired-file=%s x",
		"interpret --operation=AggregateStatus --status-file=%s x", "interpret --operation=InterpretHealth --observed-file=%s x",
	}
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		if f := cmd.Flags().Lookup("filename"); f != nil && cmd.Name() != "plan" {
			out = append(out, strings.TrimPrefix(cmd.CommandPath(), root.Name()+" ")+" --filename=%s")
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(root)
	return out
}

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func fifo(t *testing.T, path string) string {
	t.Helper()
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// cancelWhenRead calls cancel when somebody opens a FIFO, which has a writer until the test ends.
func cancelWhenRead(t *testing.T, path string, cancel func()) {
	t.Helper()
	ended := make(chan struct{})
	go func() {
		w, err := os.OpenFile(path, os.O_WRONLY, 0)
		cancel()
		<-ended
		if err == nil {
			_ = w.Close()
		}
	}()
	t.Cleanup(func() {
		close(ended)
		if both, err := os.OpenFile(path, os.O_RDWR, 0); err == nil { // the writer does not wait any more
			_ = both.Close()
		}
	})
}

func TestRun_RefusesWhatHasNoLimit(t *testing.T) {
	stdin, transport := os.Stdin, http.DefaultClient.Transport
	t.Cleanup(func() { os.Stdin, http.DefaultClient.Transport = stdin, transport })
	dir, top := t.TempDir(), t.TempDir()
	kustomization, base := filepath.Join(top, "overlay"), filepath.Join(top, "base")
	for _, d := range []string{kustomization, base} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	file := write(t, filepath.Join(dir, "bomb.yaml"), bomb())
	write(t, filepath.Join(base, "kustomization.yaml"), "resources: [bomb.yaml]\n")
	write(t, filepath.Join(base, "bomb.yaml"), bomb())
	write(t, filepath.Join(kustomization, "kustomization.yaml"), "resources: [../base]\n")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/bomb" {
			_, _ = io.WriteString(w, bomb())
			return
		}
		_, _ = io.Copy(w, zeros{})
	}))
	t.Cleanup(server.Close)
	pipe := fifo(t, filepath.Join(t.TempDir(), "fifo"))
	const aliases, size = "its aliases repeat more than 262144 values", "it has more than 64 MiB"
	lines := readers(NewCommand(testEnv(t).Env))
	if len(lines) < 15 {
		t.Errorf("only %d commands read manifests: %q", len(lines), lines)
	}
	check := func(line string, in io.Reader, want ...string) {
		t.Run(line, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if strings.Contains(line, pipe) { // its own: what reads it does so until the writer ends
				own := fifo(t, filepath.Join(t.TempDir(), "fifo"))
				line = strings.ReplaceAll(line, pipe, own)
				want = slices.Clone(want)
				for i := range want {
					want[i] = strings.ReplaceAll(want[i], pipe, own)
				}
				cancelWhenRead(t, own, cancel)
			}
			p := testEnv(t)
			p.In = in
			build.Bounded(t, 30*time.Second, 1<<30, func() {
				if code := p.runIn(ctx, strings.Fields(line)...); code == 0 {
					t.Error("the exit code is 0")
				}
			})
			for _, w := range want {
				if !strings.Contains(p.errOut.String(), w) {
					t.Errorf("%q is not in:\n%.2000s", w, p.errOut)
				}
			}
		})
	}
	for _, line := range lines {
		check(fmt.Sprintf(line, file), nil, file, aliases)
		check(fmt.Sprintf(line, "-"), strings.NewReader(bomb()), "standard input", aliases)
		check(fmt.Sprintf(line, "/dev/zero"), nil, "/dev/zero", size)
		check(fmt.Sprintf(line, "-"), zeros{}, "standard input", size)
		check(fmt.Sprintf(line, pipe), nil, pipe, context.Canceled.Error())
		if strings.Contains(line, "filename") && !strings.Contains(line, "exec") {
			check(fmt.Sprintf(line, dir), nil, file, aliases)
		}
	}
	check("plan "+snapshotFile+" -f "+server.URL+"/endless", nil, server.URL, size)
	check("annotate --local a=b -f "+server.URL+"/bomb", nil, server.URL, aliases)
	check("interpret --operation=AggregateStatus -f interpret/testdata/customization.yaml --desired-file=interpret/testdata/desired.yaml --status-file="+server.URL+"/bomb", nil, server.URL, aliases)
	for _, line := range []string{"apply -k ", "plan " + snapshotFile + " -k ", "delete -k "} {
		check(line+kustomization, nil, filepath.Join(base, "bomb.yaml"), aliases)
	}
	for _, line := range []string{"init --config=%s", "init images list --config=%s", "init --crds=%s", "plan --cordon member1 --from=%s"} {
		if !strings.Contains(line, "crds") && !strings.Contains(line, "from") {
			check(fmt.Sprintf(line, file), nil, file, aliases)
		}
		if !strings.Contains(line, "--crds") {
			if !strings.Contains(line, "list") { // a signal ends it
				check(fmt.Sprintf(line, pipe), nil, pipe, context.Canceled.Error())
			}
			check(fmt.Sprintf(line, "/dev/zero"), nil, "/dev/zero")
		}
	}
	check("register 192.0.2.1:6443 --token-file="+pipe, nil, "the token", context.Canceled.Error())
	check("init images list --load-images="+pipe, nil)
	p := testEnv(t)
	if code := p.run(t, "patch", "deploy", "x", "-p", bomb()); code == 0 || !strings.Contains(p.errOut.String(), "--patch: "+aliases) {
		t.Errorf("patch -p: %.2000s", p.errOut)
	}
}

// TestRun_ReadsInputs has manifests with a few aliases, and large ones, from every kind of source.
func TestRun_ReadsInputs(t *testing.T) {
	stdin, transport := os.Stdin, http.DefaultClient.Transport
	t.Cleanup(func() { os.Stdin, http.DefaultClient.Transport = stdin, transport })
	const text = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: with-aliases\n  labels: &labels {app: web}\n  annotations: {<<: *labels}\ndata: {a: &a b, c: *a}\n"
	dir := t.TempDir()
	file := write(t, filepath.Join(dir, "a.yaml"), text)
	large := write(t, filepath.Join(t.TempDir(), "large.yaml"), text+"---\n"+strings.Repeat("# "+strings.Repeat("&x *x ", 20)+"\n", 50_000))
	write(t, filepath.Join(dir, "ignored.txt"), bomb())
	kustomization := t.TempDir()
	write(t, filepath.Join(kustomization, "kustomization.yaml"), "resources: [a.yaml]\n")
	write(t, filepath.Join(kustomization, "a.yaml"), text)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }))
	t.Cleanup(server.Close)
	pipe := fifo(t, filepath.Join(t.TempDir(), "fifo"))
	for _, source := range []string{"-f " + file, "-f " + large, "-f " + dir, "-f " + filepath.Join(dir, "*.yaml"), "-f " + server.URL, "-f -", "-f " + pipe, "-k " + kustomization} {
		for _, line := range []string{"plan " + snapshotFile, "annotate --local -o yaml a=b"} {
			t.Run(line+" "+source, func(t *testing.T) {
				if strings.HasSuffix(source, pipe) {
					go func() { _ = os.WriteFile(pipe, []byte(text), 0) }()
				}
				p := testEnv(t)
				p.In = strings.NewReader(text)
				if code := p.runIn(t.Context(), strings.Fields(line+" "+source)...); !slices.Contains([]int{0, 2}, code) || !strings.Contains(p.out.String(), "with-aliases") {
					t.Errorf("exit code %d:\n%s%s", code, p.out, p.errOut)
				}
			})
		}
	}
}
