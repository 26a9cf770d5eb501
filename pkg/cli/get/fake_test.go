package get

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"github.com/karmada-toolkit/karmada/pkg/cli/env"
)

// federation is a control plane, and members behind its proxy, made of a few
// objects.
type federation struct {
	*httptest.Server
	// clusters by name; the control plane is "".
	clusters map[string]*fakeCluster
	// search answers for the members, if there is such a role; uncached are resources that no registry selects.
	search   *fakeCluster
	uncached []string

	mu       sync.Mutex
	requests []string
}

// fakeCluster answers with objects, or not at all.
type fakeCluster struct {
	objects []object
	// status, if set, is answered to everything.
	status int
	reason string
	text   string
	// cause is the type of the cause in the details of the status.
	cause string
	// hangs never answers.
	hangs bool
	// without are resources that the cluster does not have.
	without []string
	// plain answers with lists instead of tables.
	plain bool
	// events are sent to watches, one watch after the other.
	events [][]string
	// idle receives when a watch is opened after all events. Optional.
	idle chan struct{}
	// extraColumn is one that only this cluster's tables have.
	extraColumn string
	// merged is set if the objects are of several clusters, which the first column names.
	merged bool
}

type object struct {
	resource, namespace, name string
	managed                   bool
	ready                     string
	size                      int
	// cluster is where an object of several clusters is.
	cluster string
	// spec, status and labels are added to those that every object has.
	spec, status, labels map[string]any
}

// kinds of the fake API by resource.
var kinds = map[string]struct {
	group, version, kind string
	namespaced           bool
}{
	"pods":                    {"", "v1", "Pod", true},
	"services":                {"", "v1", "Service", true},
	"namespaces":              {"", "v1", "Namespace", false},
	"deployments":             {"apps", "v1", "Deployment", true},
	"clusters":                {"cluster.karmada.io", "v1alpha1", "Cluster", false},
	"propagationpolicies":     {"policy.karmada.io", "v1alpha1", "PropagationPolicy", true},
	"resourcebindings":        {"work.karmada.io", "v1alpha2", "ResourceBinding", true},
	"clusterresourcebindings": {"work.karmada.io", "v1alpha2", "ClusterResourceBinding", false},
	"widgets":                 {"example.io", "v1", "Widget", true},
}

func newFederation(t *testing.T, control *fakeCluster, members map[string]*fakeCluster) *federation {
	t.Helper()
	f := &federation{clusters: map[string]*fakeCluster{"": control}}
	for name, m := range members {
		f.clusters[name] = m
		control.objects = append(control.objects, object{resource: "clusters", name: name})
	}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.CloseClientConnections)
	t.Cleanup(f.Close)
	return f
}

func (f *federation) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.requests = append(f.requests, r.URL.Path)
	f.mu.Unlock()
	cluster, path := "", r.URL.Path
	if rest, ok := strings.CutPrefix(path, "/apis/cluster.karmada.io/v1alpha1/clusters/"); ok {
		if name, inner, ok := strings.Cut(rest, "/proxy"); ok {
			cluster, path = name, inner
		}
	}
	if inner, ok := strings.CutPrefix(path, "/apis/search.karmada.io/v1alpha1"); ok {
		f.serveSearch(w, r, inner)
		return
	}
	c := f.clusters[cluster]
	switch {
	case c == nil:
		writeStatus(w, http.StatusNotFound, "NotFound", "no cluster", "clusters", cluster)
	case c.hangs:
		<-r.Context().Done()
	case c.status != 0:
		writeJSON(w, c.status, map[string]any{
			"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": c.status, "reason": c.reason, "message": c.text,
			"details": map[string]any{"causes": []any{map[string]any{"reason": c.cause}}},
		})
	default:
		c.serve(w, r, path)
	}
}

// serveSearch answers as the role search does: for all members, with the cluster of each object.
func (f *federation) serveSearch(w http.ResponseWriter, r *http.Request, path string) {
	inner, ok := strings.CutPrefix(path, "/proxying/karmada/proxy")
	if f.search == nil {
		http.NotFound(w, r)
		return
	}
	if !ok {
		writeJSON(w, http.StatusOK, map[string]any{
			"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "search.karmada.io/v1alpha1",
			"resources": []any{map[string]any{"name": "proxying/proxy", "kind": "Proxying", "namespaced": false, "verbs": []any{}}},
		})
		return
	}
	parts := strings.Split(inner, "/")
	if slices.Contains(f.uncached, parts[len(parts)-1]) {
		f.clusters[""].serve(w, r, inner)
		return
	}
	w.Header().Add("Warning", `299 - "cluster member3: its objects are not cached yet"`)
	var objects []object
	for _, name := range slices.Sorted(maps.Keys(f.clusters)) {
		for _, o := range f.clusters[name].objects {
			if o.cluster = name; name != "" {
				objects = append(objects, o)
			}
		}
	}
	f.search.objects = objects
	f.search.serve(w, r, inner)
}

// hidden replaces the address of the server in a text.
func (f *federation) hidden(text string) string {
	return strings.NewReplacer(f.URL, "URL", strings.TrimPrefix(f.URL, "http://"), "HOST").Replace(text)
}

func (f *federation) count(substring string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, r := range f.requests {
		if strings.Contains(r, substring) {
			n++
		}
	}
	return n
}

func (c *fakeCluster) serve(w http.ResponseWriter, r *http.Request, path string) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	if path == "/api" || path == "/apis" {
		c.discover(w, path)
		return
	}
	if path == "/apis/cluster.karmada.io/v1alpha1" {
		writeJSON(w, http.StatusOK, map[string]any{"kind": "APIResourceList", "apiVersion": "v1"})
		return
	}
	if parts[0] == "api" {
		parts = append([]string{"apis", ""}, parts[1:]...)
	}
	parts = parts[3:] // apis, group, version
	namespace := ""
	if parts[0] == "namespaces" && len(parts) > 2 {
		namespace, parts = parts[1], parts[2:]
	}
	resource := parts[0]
	if _, ok := kinds[resource]; !ok || slices.Contains(c.without, resource) {
		http.NotFound(w, r)
		return
	}
	name := ""
	if len(parts) > 1 {
		name = parts[1]
	}
	if r.URL.Query().Get("watch") != "" {
		c.watch(w, r)
		return
	}
	c.answer(w, r, resource, namespace, name)
}

func (c *fakeCluster) answer(w http.ResponseWriter, r *http.Request, resource, namespace, name string) {
	var found []object
	for _, o := range c.objects {
		if o.resource == resource && (namespace == "" || o.namespace == namespace) && (name == "" || o.name == name) {
			found = append(found, o)
		}
	}
	if field, ok := strings.CutPrefix(r.URL.Query().Get("fieldSelector"), "metadata.name="); ok {
		found = slices.DeleteFunc(found, func(o object) bool { return o.name != field })
	}
	if name != "" && len(found) == 0 {
		k := kinds[resource]
		gr := strings.TrimSuffix(resource+"."+k.group, ".")
		writeStatus(w, http.StatusNotFound, "NotFound", fmt.Sprintf("%s %q not found", gr, name), resource, name)
		return
	}
	switch {
	case strings.Contains(r.Header.Get("Accept"), "as=Table") && !c.plain:
		writeJSON(w, http.StatusOK, c.table(found))
	case name != "":
		writeJSON(w, http.StatusOK, found[0].json())
	default:
		k := kinds[resource]
		items := []any{}
		for _, o := range found {
			items = append(items, o.json())
		}
		writeJSON(w, http.StatusOK, map[string]any{"apiVersion": gv(k.group, k.version), "kind": k.kind + "List", "metadata": map[string]any{"resourceVersion": c.version()}, "items": items})
	}
}

func (c *fakeCluster) table(objects []object) map[string]any {
	columns := []any{
		map[string]any{"name": "Name", "type": "string", "format": "name"},
		map[string]any{"name": "Ready", "type": "string"},
		map[string]any{"name": "Images", "type": "string", "priority": 1},
		map[string]any{"name": "Age", "type": "string"},
	}
	if c.extraColumn != "" {
		columns = slices.Insert(columns, 1, any(map[string]any{"name": c.extraColumn, "type": "string"}))
	}
	if c.merged {
		columns = slices.Insert(columns, 0, any(map[string]any{"name": "Cluster", "type": "string"}))
	}
	rows := []any{}
	for _, o := range objects {
		cells := []any{o.name, o.ready, "img", "5m"}
		if c.merged {
			cells = slices.Insert(cells, 0, any(o.cluster))
		}
		if c.extraColumn != "" {
			cells = slices.Insert(cells, 1, any("x"))
		}
		rows = append(rows, map[string]any{"cells": cells, "object": o.json()})
	}
	return map[string]any{
		"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": map[string]any{"resourceVersion": c.version()},
		"columnDefinitions": columns, "rows": rows,
	}
}

// version is that of lists; of several clusters it is an object of theirs.
func (c *fakeCluster) version() string {
	if c.merged {
		return "eyJtZW1iZXIxIjoiMTAifQ"
	}
	return "10"
}

func (o object) json() map[string]any {
	k := kinds[o.resource]
	meta := map[string]any{"name": o.name, "resourceVersion": "5", "creationTimestamp": "2023-11-14T22:08:20Z"}
	if o.namespace != "" {
		meta["namespace"] = o.namespace
	}
	if o.cluster != "" {
		meta["annotations"] = map[string]any{"resource.karmada.io/cached-from-cluster": o.cluster}
	}
	labels := map[string]any{"app": o.name}
	if o.managed {
		labels["karmada.io/managed"] = "true"
	}
	maps.Copy(labels, o.labels)
	meta["labels"] = labels
	spec := map[string]any{"size": o.size}
	maps.Copy(spec, o.spec)
	out := map[string]any{"apiVersion": gv(k.group, k.version), "kind": k.kind, "metadata": meta, "spec": spec}
	if o.status != nil {
		out["status"] = o.status
	}
	return out
}

// watch sends the next batch of events and ends.
func (c *fakeCluster) watch(w http.ResponseWriter, r *http.Request) {
	if len(c.events) == 0 {
		w.(http.Flusher).Flush()
		select {
		case c.idle <- struct{}{}:
		default:
		}
		<-r.Context().Done()
		return
	}
	batch := c.events[0]
	c.events = c.events[1:]
	field, selects := strings.CutPrefix(r.URL.Query().Get("fieldSelector"), "metadata.name=")
	for _, e := range batch {
		switch {
		case selects && !strings.Contains(e, `"name":"`+field+`"`):
		case strings.Contains(r.Header.Get("Accept"), "as=Table"):
			fmt.Fprintln(w, e)
		default:
			fmt.Fprintln(w, plain(e))
		}
	}
}

// plain returns an event with the object of a table instead of the table.
func plain(event string) string {
	var e struct {
		Type   string `json:"type"`
		Object struct {
			Rows []struct {
				Object json.RawMessage `json:"object"`
			} `json:"rows"`
		} `json:"object"`
	}
	_ = json.Unmarshal([]byte(event), &e)
	body, _ := json.Marshal(map[string]any{"type": e.Type, "object": e.Object.Rows[0].Object})
	return string(body)
}

// event is a line of a watch.
func (c *fakeCluster) event(kind string, o object) string {
	body, _ := json.Marshal(map[string]any{"type": kind, "object": c.table([]object{o})})
	return string(body)
}

func (c *fakeCluster) discover(w http.ResponseWriter, path string) {
	groups := map[string]map[string][]any{}
	for name, k := range kinds {
		if slices.Contains(c.without, name) || (path == "/api") != (k.group == "") {
			continue
		}
		scope := "Cluster"
		if k.namespaced {
			scope = "Namespaced"
		}
		r := map[string]any{
			"resource": name, "singularResource": strings.ToLower(k.kind), "scope": scope, "verbs": []any{"get", "list", "watch"},
			"responseKind": map[string]any{"group": k.group, "version": k.version, "kind": k.kind},
		}
		if name == "deployments" {
			r["shortNames"] = []any{"deploy"}
		}
		if name == "pods" || name == "deployments" || name == "services" {
			r["categories"] = []any{"all"}
		}
		if groups[k.group] == nil {
			groups[k.group] = map[string][]any{}
		}
		groups[k.group][k.version] = append(groups[k.group][k.version], r)
	}
	items := []any{}
	for group, versions := range groups {
		list := []any{}
		for version, resources := range versions {
			list = append(list, map[string]any{"version": version, "resources": resources})
		}
		items = append(items, map[string]any{"metadata": map[string]any{"name": group}, "versions": list})
	}
	w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
	_ = json.NewEncoder(w).Encode(map[string]any{"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": items})
}

func gv(group, version string) string { return strings.TrimPrefix(group+"/"+version, "/") }

func writeJSON(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}

func writeStatus(w http.ResponseWriter, code int, reason, message, kind, name string) {
	writeJSON(w, code, map[string]any{
		"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": message,
		"details": map[string]any{"kind": kind, "name": name},
	})
}

// outcome is what a user sees of a command line.
type outcome struct {
	stdout, stderr string
	err            string
}

// run runs `get` against the federation.
func (f *federation) run(t *testing.T, args ...string) outcome {
	t.Helper()
	return f.runContext(t.Context(), t, args...)
}

func (f *federation) runContext(ctx context.Context, t *testing.T, args ...string) outcome {
	t.Helper()
	t.Setenv("KUBECACHEDIR", t.TempDir())
	kubeconfig := filepath.Join(t.TempDir(), "config")
	text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"k","contexts":[{"name":"k","context":{"cluster":"k","user":"u"}}],
		"clusters":[{"name":"k","cluster":{"server":%q}}],"users":[{"name":"u","user":{}}]}`, f.URL)
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errOut bytes.Buffer
	e := &env.Env{
		IOStreams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut},
		Root:      "karmadactl", Name: "karmadactl",
		Now:           func() time.Time { return time.Date(2023, 11, 14, 22, 13, 20, 0, time.UTC) },
		Exit:          func(code int) { panic(code) },
		Interruptible: context.WithCancel,
	}
	cmd := NewCommand(e)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(append([]string{"--kubeconfig", kubeconfig, "--member-timeout=5m"}, args...))
	err := cmd.ExecuteContext(ctx)
	said := regexp.MustCompile(`(?m)^waiting for .*\n`).ReplaceAllString(errOut.String(), "") // on a slow machine
	o := outcome{stdout: out.String(), stderr: f.hidden(said)}
	if err != nil {
		cmdutil.BehaviorOnFatal(func(m string, _ int) { o.err = f.hidden(m) })
		cmdutil.CheckErr(err)
	}
	return o
}
