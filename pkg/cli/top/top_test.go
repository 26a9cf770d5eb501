package top

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"github.com/karmada-toolkit/karmada/internal/build"
	"github.com/karmada-toolkit/karmada/pkg/cli/env"
)

const proxy = "/apis/cluster.karmada.io/v1alpha1/clusters"

// federation answers by cluster and path. One without answers hangs.
type federation map[string]map[string]any

func (f federation) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Path == proxy {
		var items []any
		for name := range f {
			items = append(items, map[string]any{"metadata": map[string]any{"name": name}})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "items": items})
		return
	}
	name, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, proxy+"/"), "/proxy")
	if r.URL.Path == "/apis/cluster.karmada.io/v1alpha1" {
		_ = json.NewEncoder(w).Encode(map[string]any{"kind": "APIResourceList", "apiVersion": "v1"})
		return
	}
	if f[name] == nil {
		<-r.Context().Done()
		return
	}
	answer, ok := f[name][path]
	switch {
	case name == "plain": // a server without the API
		http.NotFound(w, r)
		return
	case name == "dead":
		w.WriteHeader(http.StatusServiceUnavailable)
		answer = map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 503, "reason": "ServiceUnavailable", "message": "reaching cluster dead: dial tcp 10.0.0.1:6443: connect: connection refused"}
	case name == "late":
		w.WriteHeader(http.StatusGatewayTimeout)
		answer = map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 504, "reason": "Timeout", "message": "too late"}
	case !ok:
		w.WriteHeader(http.StatusNotFound)
		details := map[string]any{}
		if strings.HasPrefix(path, "/apis/metrics") && f[name]["api"] != nil {
			details["name"] = path[strings.LastIndex(path, "/")+1:]
		}
		message := fmt.Sprintf("pods %q not found", details["name"])
		answer = map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404, "reason": "NotFound", "message": message, "details": details}
	}
	_ = json.NewEncoder(w).Encode(answer)
}

func list(items ...any) any {
	return map[string]any{"kind": "List", "apiVersion": "v1", "items": items}
}

func podOf(namespace, name string, usage ...string) any {
	var containers []any
	for i := 0; i+1 < len(usage); i += 2 {
		containers = append(containers, map[string]any{"name": fmt.Sprintf("c%d", i/2), "usage": map[string]any{"cpu": usage[i], "memory": usage[i+1]}})
	}
	return map[string]any{"metadata": map[string]any{"namespace": namespace, "name": name, "creationTimestamp": "2023-11-14T22:03:20Z"}, "containers": containers}
}

func nodeOf(name, cpu, memory string) any {
	return map[string]any{
		"metadata": map[string]any{"name": name}, "usage": map[string]any{"cpu": cpu, "memory": memory},
		"status": map[string]any{"allocatable": map[string]any{"cpu": "4", "memory": "8Gi"}, "capacity": map[string]any{"cpu": "8", "memory": "16Gi"}},
	}
}

const (
	metricsOf  = "/apis/metrics.k8s.io/v1beta1"
	podsOf     = metricsOf + "/namespaces/default/pods"
	allPodsOf  = metricsOf + "/pods"
	nodesUsage = metricsOf + "/nodes"
)

// example is a federation with members that hang, whose server has no answer in time, and without metrics.
func example() federation {
	a, b := podOf("default", "a", "100m", "20Mi", "1n", "1Mi"), podOf("default", "b", "1", "1Mi")
	other := podOf("other", "a", "5m", "100Mi")
	return federation{
		"member1": {podsOf: list(b, a), allPodsOf: list(other, b, a), podsOf + "/a": a, nodesUsage: list(nodeOf("n2", "1", "1Gi"), nodeOf("n1", "3999m", "1Gi")), "/api/v1/nodes": list(nodeOf("n2", "", ""), nodeOf("n1", "", ""), nodeOf("n0", "", "")), "api": true},
		"member2": {podsOf: list(a), allPodsOf: list(a), nodesUsage: list(nodeOf("n1", "2", "7Gi")), "/api/v1/nodes": list(nodeOf("n1", "", "")), "api": true},
		"hanging": nil,
		"late":    {},
		"dead":    {},
		"plain":   {},
		"old":     {},
		"new":     {podsOf: list(), "/api/v1/namespaces/default/pods": list(podOf("default", "late")), nodesUsage: list(), "/api/v1/nodes": list(nodeOf("n", "", "")), "api": true},
		"empty":   {podsOf: list(), allPodsOf: list(), "/api/v1/namespaces/default/pods": list(), "/api/v1/pods": list(), nodesUsage: list(), "/api/v1/nodes": list(), "api": true},
	}
}

// run returns what the command prints.
func run(t *testing.T, f federation, line string) string {
	t.Helper()
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	t.Setenv("KUBECACHEDIR", t.TempDir())
	kubeconfig := filepath.Join(t.TempDir(), "config")
	text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"k","contexts":[{"name":"k","context":{"cluster":"k","user":"u"}}],
		"clusters":[{"name":"k","cluster":{"server":%q}}],"users":[{"name":"u","user":{}}]}`, server.URL)
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errOut bytes.Buffer
	shown := line
	cmd := NewCommand(&env.Env{
		IOStreams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut},
		Root:      "karmadactl", Name: "karmadactl",
		Now:           func() time.Time { return time.Date(2023, 11, 14, 22, 13, 20, 0, time.UTC) },
		Exit:          func(code int) { panic(code) },
		Interruptible: context.WithCancel,
	})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	if !strings.Contains(line, "--member-timeout") {
		line += " --member-timeout=5m"
	}
	cmd.SetArgs(append(strings.Fields(line), "--kubeconfig", kubeconfig))
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		cmdutil.BehaviorOnFatal(func(m string, _ int) { _, _ = fmt.Fprintln(&errOut, strings.TrimSuffix(m, "\n")) })
		cmdutil.CheckErr(err)
	}
	said := regexp.MustCompile(`(?m)^waiting for .*\n`).ReplaceAllString(errOut.String(), "") // on a slow machine
	return "$ top " + shown + "\n" + out.String() + "--- stderr\n" + said
}

func TestTop(t *testing.T) {
	const both = " -C member1,member2"
	for name, lines := range map[string][]string{
		"pods": {
			"pods" + both, "pod -A --sum" + both, "po --containers --sort-by=cpu" + both, "pods -A --sort-by=memory --no-headers" + both,
			"pods -A --containers --sum -C member2",
		},
		"one-pod":   {"pod a -C member1,member2", "pod none" + both},
		"nodes":     {"nodes --clusters member1,member2", "no --clusters member1,member2 --sort-by=cpu --show-capacity --no-headers", "node --clusters member2,old"},
		"failures":  {"pods -C member2,late,old --member-timeout 5m", "nodes --clusters hanging --member-timeout 100ms", "pods -C nowhere", "pods -C dead", "nodes --clusters dead", "pods a -C plain"},
		"nothing":   {"pods -C empty", "pods -A -C empty", "pods -C new", "nodes --clusters new"},
		"documents": {"pods -A -o json" + both, "pods -C empty -o yaml", "pods -C member2,late -o yaml --member-timeout 5m", "nodes --clusters member1,new -o yaml", "nodes --clusters empty -o json"},
		"bad-input": {"pods a -l x=y", "nodes a -l x=y", "pods --sort-by=name", "pods a b", "pods a -A", "pods --member-timeout=-1s"},
	} {
		t.Run(name, func(t *testing.T) {
			var text strings.Builder
			for _, line := range lines {
				text.WriteString(run(t, example(), line))
			}
			build.AssertGolden(t, name, text.String())
		})
	}
}
