package cli

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"github.com/karmada-toolkit/karmada/internal/build"
	"github.com/karmada-toolkit/karmada/pkg/cli/env"
)

// commandLines has a command line for each command that talks to the control plane.
func commandLines(manifest string) []string {
	return []string{
		"get pods", "get pods x", "get pods -C m1", "get pods -s members", "get pods -o json", "get clusters", "get cpp", "describe pods x", "describe pods x -C m1", "describe cluster m1",
		"create namespace x", "delete pods x", "delete pods --all", "delete pods -A -l a=b", "delete pods x --ignore-not-found", "edit pods x", "patch pods x -p {}",
		"label pods x a=b", "label pods --all a=b", "annotate pods x a=b", "annotate pods -l a=b c=d", "scale deployment/x --replicas=2", "scale deployment -l a=b --replicas=2", "rollout status deployment/x", "wait pods x --for=delete --timeout=1s", "explain pods", "api-versions", "api-resources",
		"plan -f " + manifest, "snapshot -o " + filepath.Dir(manifest) + "/s", "apply -f " + manifest, "apply -f " + manifest + " -C m1", "logs x", "exec x -- true", "attach x", "logs x -C m1", "exec x -C m1 -- true", "top pods", "top nodes",
		"cordon m1", "uncordon m1", "taint clusters m1 a=b:NoExecute", "join m1 --cluster-kubeconfig=" + filepath.Dir(manifest) + "/kubeconfig",
		"unjoin m1", "capacity", "rebalance deployment/x", "failover status", "status --deadline=50ms", "dashboard --no-open", "why deployment x", "failover resume", "failover cancel m1", "search kubeconfig",
		"promote deployment x -C m1", "token list", "token create", "token delete abcdef",
		"unregister m1 --cluster-kubeconfig=" + filepath.Dir(manifest) + "/kubeconfig --karmada-config=" + filepath.Dir(manifest) + "/kubeconfig",
		"register 127.0.0.1:1 --cluster-name=m1 --token=abcdef.0123456789abcdef --discovery-token-unsafe-skip-ca-verification --discovery-timeout=10ms",
		"init --karmada-data=" + filepath.Dir(manifest), "deinit --force", "addons list --karmada-kubeconfig=" + filepath.Dir(manifest) + "/none", "addons enable karmada-descheduler", "addons disable karmada-descheduler --force",
	}
}

// stubServer is an API server with Pods, Namespaces and Deployments, of which none exists. own answers requests first, and
// reports whether it did.
func stubServer(t *testing.T, own func(http.ResponseWriter, *http.Request) bool) string {
	t.Helper()
	names := map[string]string{
		"/api":          `{"kind":"APIVersions","versions":["v1"]}`,
		"/api/v1":       `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"pods","singularName":"pod","namespaced":true,"kind":"Pod","verbs":["get","list","delete","patch"]},{"name":"namespaces","singularName":"namespace","kind":"Namespace","verbs":["get","list","create"]}]}`,
		"/apis":         `{"kind":"APIGroupList","groups":[{"name":"apps","versions":[{"groupVersion":"apps/v1","version":"v1"}],"preferredVersion":{"groupVersion":"apps/v1","version":"v1"}}]}`,
		"/apis/apps/v1": `{"kind":"APIResourceList","groupVersion":"apps/v1","resources":[{"name":"deployments","singularName":"deployment","namespaced":true,"kind":"Deployment","verbs":["get","list","patch"]},{"name":"deployments/scale","namespaced":true,"kind":"Scale","group":"autoscaling","version":"v1","verbs":["get","update"]}]}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if own(w, r) {
			return
		}
		w.Header().Set("Content-Type", "application/json")
		base := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
		switch {
		case base == "nodes": // init would wait for one
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"nodes is forbidden"}`)
		case names[r.URL.Path] != "":
			_, _ = io.WriteString(w, names[r.URL.Path])
		case r.Method == http.MethodPost:
			w.WriteHeader(http.StatusCreated)
			kind := map[string]string{"namespaces": "Namespace", "secrets": "Secret"}[base]
			_, _ = fmt.Fprintf(w, `{"kind":%q,"apiVersion":"v1","metadata":{"name":"x"}}`, kind)
		case base == "x" || strings.HasPrefix(base, "bootstrap-token-"):
			w.WriteHeader(http.StatusNotFound)
			_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"message":"%s not found","details":{"name":%q}}`, base, base)
		case strings.Contains(r.URL.Path, "karmada.io") || strings.Contains(r.URL.Path, "/openapi"):
			http.NotFound(w, r)
		default:
			_, _ = io.WriteString(w, `{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}`)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// TestRun_Unreached runs every command against servers that do not work as a control plane: one cause has one text.
func TestRun_Unreached(t *testing.T) {
	refusing, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := refusing.Close(); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	cases := map[string]struct {
		server, context, timeout string
		limits                   env.Limits
	}{
		"refused": {server: "http://" + refusing.Addr().String()},
		"context": {server: "http://" + refusing.Addr().String(), context: "other"},
		"silent": {limits: env.Limits{Answer: 30 * time.Millisecond}, server: stubServer(t, func(http.ResponseWriter, *http.Request) bool {
			<-stop
			return true
		})},
		"limited": {timeout: "60ms", server: stubServer(t, func(http.ResponseWriter, *http.Request) bool {
			<-stop
			return true
		})},
		"kubernetes": {server: stubServer(t, func(http.ResponseWriter, *http.Request) bool { return false })},
		"hangs": {limits: env.Limits{Answer: 30 * time.Millisecond, Alive: 10 * time.Second}, server: stubServer(t, func(_ http.ResponseWriter, r *http.Request) bool {
			if strings.HasPrefix(r.URL.Path, "/apis/cluster.karmada.io/") {
				<-stop
				return true
			}
			return false
		})},
		"unserved": {limits: env.Limits{Serve: 10 * time.Millisecond}, server: stubServer(t, func(w http.ResponseWriter, r *http.Request) bool {
			if strings.HasPrefix(r.URL.Path, "/apis/cluster.karmada.io/") {
				http.Error(w, "service unavailable", http.StatusServiceUnavailable)
				return true
			}
			return false
		})},
	}
	t.Cleanup(func() { close(stop) }) // before the servers are closed
	logged := logOf(t)
	for name, tt := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			manifest, kubeconfig := filepath.Join(dir, "x.yaml"), filepath.Join(dir, "kubeconfig")
			writeFile(t, manifest, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"x"}}`)
			writeFile(t, kubeconfig, fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c"}}],"clusters":[{"name":"c","cluster":{"server":%q}}]}`, tt.server))
			u, err := url.Parse(tt.server)
			if err != nil {
				t.Fatal(err)
			}
			var all strings.Builder
			for _, line := range commandLines(manifest) {
				p := testEnv(t)
				t.Setenv("KUBECONFIG", kubeconfig)
				p.Limits = tt.limits
				args := strings.Fields(line)
				timeout := tt.timeout
				// One limit ends it, however busy the machine is.
				if i := slices.Index(args, "--deadline=50ms"); i >= 0 {
					switch name {
					case "silent":
						p.Limits.Answer = time.Minute
					case "limited":
						timeout = "1m"
					case "hangs":
						args[i] = "--deadline=3s" // most of it
					default:
						args[i] = "--deadline=1m"
					}
				}
				if tt.context != "" {
					args = slices.Insert(args, flagsAt(args), contextFlag(args[0])+tt.context)
				}
				if timeout != "" {
					args = slices.Insert(args, flagsAt(args), "--request-timeout="+timeout)
				}
				code := p.run(t, args...)
				fmt.Fprintf(&all, "$ %s\n", strings.NewReplacer(dir, "DIR").Replace(line))
				for text := range strings.Lines(p.errOut.String()) {
					// What init waits for depends on the build, and whether other commands report that they wait on how busy the machine is.
					if strings.HasPrefix(text, "  …") || strings.HasPrefix(text, "waiting for ") {
						continue
					}
					all.WriteString("  " + strings.NewReplacer(dir, "DIR", u.Host, "HOST").Replace(text))
				}
				fmt.Fprintf(&all, "  exit code %d\n", code)
			}
			build.AssertGolden(t, "unreached-"+name, all.String())
		})
	}
	if strings.Contains(logged.String(), "ancel") {
		t.Errorf("logged: %s", logged)
	}
}

// logOf returns what libraries log during a test.
func logOf(t *testing.T) *bytes.Buffer {
	t.Helper()
	t.Cleanup(klog.CaptureState().Restore)
	klog.LogToStderr(false)
	var out bytes.Buffer
	klog.SetOutput(&out)
	return &out
}

// TestRun_NotInstalled has commands about an installation meet a cluster without one, and commands without a kubeconfig.
func TestRun_NotInstalled(t *testing.T) {
	server := stubServer(t, func(w http.ResponseWriter, r *http.Request) bool {
		missing := strings.Contains(r.URL.Path, "/karmada-system")
		if missing {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"message":"not found"}`)
		}
		return missing
	})
	dir := t.TempDir()
	kubeconfig, empty := filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "empty")
	writeFile(t, kubeconfig, fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c"}}],"clusters":[{"name":"c","cluster":{"server":%q}}]}`, server))
	writeFile(t, empty, "")
	for _, line := range []string{"addons list", "addons enable karmada-descheduler", "addons disable karmada-descheduler --force", "deinit --force", "init"} {
		for path, want := range map[string]string{
			kubeconfig: "error: there is no control plane in namespace karmada-system of the host cluster; name its namespace with --namespace, or install one with \"init\"\n",
			empty:      "error: no kubeconfig was found; name one with --kubeconfig or $KUBECONFIG\n",
		} {
			if line == "init" && path == kubeconfig {
				continue // it installs one
			}
			p := testEnv(t)
			t.Setenv("KUBECONFIG", path)
			if code := p.run(t, strings.Fields(line)...); code != 1 || p.errOut.String() != want || p.out.Len() > 0 {
				t.Errorf("%s: exit code %d, %s%s, want %s", line, code, p.out, p.errOut, want)
			}
		}
	}
}

// TestRun_Unadmitted has writes fail because the API server cannot call a webhook: that of the control plane has one text.
func TestRun_Unadmitted(t *testing.T) {
	for webhook, want := range map[string]string{
		"propagationpolicies.policy.karmada.io": "error: the control plane HOST cannot admit the change: its admission webhook is unavailable; see whether the pods of karmada-webhook run in the host cluster\n",
		"example.com":                           `failed calling webhook "example.com"`,
	} {
		server := stubServer(t, func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodGet {
				return false
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"InternalError","code":500,"message":"Internal error occurred: failed calling webhook \"%s\": failed to call webhook: connection refused"}`, webhook)
			return true
		})
		dir := t.TempDir()
		manifest, kubeconfig := filepath.Join(dir, "x.yaml"), filepath.Join(dir, "kubeconfig")
		writeFile(t, manifest, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"x"}}`)
		writeFile(t, kubeconfig, fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c"}}],"clusters":[{"name":"c","cluster":{"server":%q}}]}`, server))
		for _, line := range []string{"apply --validate=false -f " + manifest, "create namespace x", "scale deployment/y --replicas=2"} {
			p := testEnv(t)
			t.Setenv("KUBECONFIG", kubeconfig)
			code, got := p.run(t, strings.Fields(line)...), strings.ReplaceAll(p.errOut.String(), strings.TrimPrefix(server, "http://"), "HOST")
			if code != 1 || !strings.Contains(got, want) {
				t.Errorf("%s: exit code %d, %q, want %q", line, code, got, want)
			}
		}
	}
}

// TestRun_RefusesClusters has commands that work on the control plane say so whichever way a cluster is named.
func TestRun_RefusesClusters(t *testing.T) {
	for _, command := range []string{"edit pods x", "delete pods x", "label pods x a=b", "annotate pods x a=b", "patch pods x -p {}", "scale deployment/x --replicas=2"} {
		for _, flag := range []string{" -C m1", " --cluster=m1", " --clusters=m1"} {
			p := testEnv(t)
			if code := p.run(t, strings.Fields(command+flag)...); code != 1 || !strings.Contains(p.errOut.String(), `works on the control plane`) {
				t.Errorf("%s: exit code %d, %s", command+flag, code, p.errOut)
			}
		}
	}
}

// TestRun_UnservedClusters has commands that read types of the control plane meet an API group that is registered and that
// nothing serves: they say so in one message, or do not need it.
func TestRun_UnservedClusters(t *testing.T) {
	const group = `{"name":"cluster.karmada.io","versions":[{"groupVersion":"cluster.karmada.io/v1alpha1","version":"v1alpha1"}],"preferredVersion":{"groupVersion":"cluster.karmada.io/v1alpha1","version":"v1alpha1"}}`
	server := stubServer(t, func(w http.ResponseWriter, r *http.Request) bool {
		switch {
		case strings.HasPrefix(r.URL.Path, "/apis/cluster.karmada.io/"):
			http.Error(w, "service unavailable", http.StatusServiceUnavailable)
		case r.URL.Path == "/apis":
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"kind":"APIGroupList","groups":[{"name":"apps","versions":[{"groupVersion":"apps/v1","version":"v1"}],"preferredVersion":{"groupVersion":"apps/v1","version":"v1"}},`+group+`]}`)
		default:
			return false
		}
		return true
	})
	dir := t.TempDir()
	manifest, kubeconfig := filepath.Join(dir, "x.yaml"), filepath.Join(dir, "kubeconfig")
	writeFile(t, manifest, `{"apiVersion":"cluster.karmada.io/v1alpha1","kind":"Cluster","metadata":{"name":"m1"}}`)
	writeFile(t, kubeconfig, fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c"}}],"clusters":[{"name":"c","cluster":{"server":%q}}]}`, server))
	for _, line := range []string{"rollout status deployment/x", "explain clusters", "explain clusters.cluster.karmada.io", "apply --validate=false -f " + manifest, "describe cluster m1", "get clusters"} {
		p := testEnv(t)
		t.Setenv("KUBECONFIG", kubeconfig)
		p.Limits = env.Limits{Serve: 10 * time.Millisecond}
		code, got := p.run(t, strings.Fields(line)...), strings.TrimSpace(p.errOut.String())
		want := "its aggregated API server is unavailable"
		if strings.HasPrefix(line, "rollout") {
			want = "Error from server (NotFound)"
		}
		if code != 1 || strings.Count(got, want) != 1 || strings.Contains(got, "\n") {
			t.Errorf("%s: exit code %d, %q, want one line with %q", line, code, got, want)
		}
	}
}

func TestReworded(t *testing.T) {
	const about = "error: unavailable"
	reword := func(line string) string {
		if strings.Contains(line, "cluster.karmada.io") {
			return about
		}
		return ""
	}
	for message, want := range map[string]string{
		"Error from server (ServiceUnavailable): error when retrieving current configuration of:\nResource: \"cluster.karmada.io/v1alpha1\"\nName: \"m1\", Namespace: \"\"\nfrom server for: \"x\": (get clusters.cluster.karmada.io m1)": about,
		"no matches for kind in cluster.karmada.io\nensure CRDs are installed first": about,
		"no matches for kind in example.com\nensure CRDs are installed first":        "no matches for kind in example.com\nensure CRDs are installed first",
		"error: a\ncluster.karmada.io\nerror: b":                                     "error: a\n" + about + "\nerror: b",
	} {
		if got := strings.Join(reworded(message, reword), "\n"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestRun_UnreachedHasEveryCommand fails for a command that talks to the control plane and is not in the table.
func TestRun_UnreachedHasEveryCommand(t *testing.T) {
	lines := commandLines("/x")
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
		path := strings.TrimPrefix(cmd.CommandPath(), "karmadactl ")
		top, _, _ := strings.Cut(path, " ")
		if !cmd.Runnable() || cmd.HasSubCommands() || cmd.Flags().Lookup("karmada-context") == nil && cmd.InheritedFlags().Lookup("karmada-context") == nil {
			return
		}
		if slices.Contains([]string{"create", "rollout", "interpret"}, top) { // subcommands of kubectl; files
			path = top
		}
		if top == "top" {
			path = "top"
		}
		if path == "mcp" { // it runs other commands
			return
		}
		if path != "interpret" && !slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, path) }) {
			t.Errorf("%q is missing", path)
		}
	}
	walk(NewCommand(testEnv(t).Env))
}

// contextFlag returns the flag that names the context of the first server that a command talks to.
func contextFlag(command string) string {
	switch command {
	case "addons", "init", "deinit", "register":
		return "--context="
	case "unregister":
		return "--cluster-context="
	}
	return "--karmada-context="
}

// flagsAt returns where flags can be inserted: after the command and its subcommand.
func flagsAt(args []string) int {
	if len(args) > 1 && slices.Contains([]string{"addons", "rollout", "top", "failover", "token"}, args[0]) {
		return 2
	}
	return 1
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
