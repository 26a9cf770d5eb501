package cli

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/karmada-toolkit/karmada/internal/build"
)

// store is the server of a control plane, of a member through it, and of a host cluster, with the objects of a test by
// path. What is deleted is gone; writes are accepted and recorded.
type store struct {
	sync.Mutex
	objects map[string]string
	writes  []string
}

func (s *store) serve(w http.ResponseWriter, r *http.Request) bool {
	s.Lock()
	defer s.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if r.Method != http.MethodGet && !strings.Contains(r.URL.Path, "accessreviews") {
		s.writes = append(s.writes, r.Method+" "+r.URL.Path)
	}
	body, found := s.objects[r.URL.Path]
	switch {
	case r.Method == http.MethodDelete && found:
		delete(s.objects, r.URL.Path)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Success"}`)
		return true
	case r.Method == http.MethodPost:
		data, _ := io.ReadAll(r.Body)
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write([]byte(strings.Replace(string(data), `"generateName":"rebalance-"`, `"name":"rebalance-x"`, 1)))
		return true
	case r.Method == http.MethodGet && found:
		_, _ = io.WriteString(w, body)
		return true
	}
	base := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	if s.objects[r.URL.Path[:strings.LastIndexByte(r.URL.Path, '/')]] == noItems || r.Method != http.MethodGet {
		w.WriteHeader(http.StatusNotFound)
		_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"message":"%s not found","details":{"name":%q}}`, base, base)
		return true
	}
	return false
}

// resultsStore returns a store with a member, m1, that has the deployments web and db; the control plane has web.
func resultsStore() *store {
	const (
		clusters = "/apis/cluster.karmada.io/v1alpha1/clusters"
		proxy    = clusters + "/m1/proxy"
		web      = `{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":"web","namespace":"default","uid":"u"},"spec":{"replicas":2,"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`
	)
	discovery := func(group string, resources ...string) string {
		var all []string
		for _, r := range resources {
			plural, kind, _ := strings.Cut(r, ":")
			all = append(all, fmt.Sprintf(`{"name":%q,"namespaced":%t,"kind":%q,"verbs":["get","list","create","delete"]}`, plural, plural != "clusters" && plural != "workloadrebalancers", kind))
		}
		return fmt.Sprintf(`{"kind":"APIResourceList","groupVersion":%q,"resources":[%s]}`, group, strings.Join(all, ","))
	}
	const apps = `{"kind":"APIResourceList","groupVersion":"apps/v1","resources":[{"name":"deployments","singularName":"deployment","namespaced":true,"kind":"Deployment","verbs":["get","list","create"]}]}`
	groups := []string{}
	for _, gv := range []string{"apps/v1", "cluster.karmada.io/v1alpha1", "policy.karmada.io/v1alpha1", "work.karmada.io/v1alpha1"} {
		group, version, _ := strings.Cut(gv, "/")
		groups = append(groups, fmt.Sprintf(`{"name":%q,"versions":[{"groupVersion":%q,"version":%q}],"preferredVersion":{"groupVersion":%q,"version":%q}}`, group, gv, version, gv, version))
	}
	apis := fmt.Sprintf(`{"kind":"APIGroupList","groups":[%s]}`, strings.Join(groups, ","))
	return &store{objects: map[string]string{
		"/apis":                            apis,
		"/apis/policy.karmada.io/v1alpha1": discovery("policy.karmada.io/v1alpha1", "propagationpolicies:PropagationPolicy"),
		"/apis/policy.karmada.io/v1alpha1/namespaces/default/propagationpolicies": noItems,
		"/apis/work.karmada.io/v1alpha1":                                          discovery("work.karmada.io/v1alpha1", "works:Work"),
		"/apis/work.karmada.io/v1alpha1/namespaces/karmada-es-m1/works":           noItems,
		proxy + "/apis":                     `{"kind":"APIGroupList","groups":[` + groups[0] + `]}`,
		proxy + "/api":                      `{"kind":"APIVersions","versions":["v1"]}`,
		proxy + "/api/v1":                   `{"kind":"APIResourceList","groupVersion":"v1","resources":[]}`,
		proxy + "/apis/apps/v1":             apps,
		"/api/v1/namespaces/kube-system":    `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"cluster-id"}}`,
		"/api/v1/namespaces":                noItems,
		"/api/v1/nodes":                     noItems,
		"/apis/cluster.karmada.io/v1alpha1": discovery("cluster.karmada.io/v1alpha1", "clusters:Cluster"),
		clusters:                            noItems,
		clusters + "/m1":                    `{"kind":"Cluster","apiVersion":"cluster.karmada.io/v1alpha1","metadata":{"name":"m1"},"spec":{"syncMode":"Push"}}`,
		"/apis/apps/v1/namespaces/default/deployments":                                      noItems,
		"/apis/apps/v1/namespaces/default/deployments/web":                                  web,
		"/apis/work.karmada.io/v1alpha2/namespaces/default/resourcebindings":                noItems,
		"/apis/work.karmada.io/v1alpha2/namespaces/default/resourcebindings/web-deployment": `{"kind":"ResourceBinding","apiVersion":"work.karmada.io/v1alpha2","metadata":{"name":"web-deployment","namespace":"default"},"spec":{"resource":{"apiVersion":"apps/v1","kind":"Deployment","name":"web","namespace":"default"},"clusters":[{"name":"m1","replicas":2}]}}`,
		proxy + "/apis/apps/v1/namespaces/default/deployments":                              noItems,
		proxy + "/apis/apps/v1/namespaces/default/deployments/db":                           strings.Replace(web, `"web"`, `"db"`, 1),
		"/api/v1/namespaces/karmada-system":                                                 `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"karmada-system"}}`,
	}}
}

// noItems is an empty list.
const noItems = `{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}`

// TestRun_Results pins what commands that change a federation print, their exit codes and what they write.
func TestRun_Results(t *testing.T) {
	var all strings.Builder
	for _, line := range []string{
		"rebalance deployment/web", "rebalance deployment/web -o yaml", "rebalance deployment/db", "rebalance",
		"promote deployment db -C m1", "promote deployment db -C m1 --dry-run", "promote deployment none -C m1", "promote deployment db",
		"unjoin m1 --dry-run", "unjoin m1", "unjoin m9",
		"join m1 --cluster-kubeconfig=DIR/kubeconfig", "unregister m9 --cluster-kubeconfig=DIR/kubeconfig --karmada-config=DIR/kubeconfig",
		"deinit --dry-run", "deinit --force", "deinit --force -n none",
	} {
		p, s := testEnv(t), resultsStore()
		url := stubServer(t, s.serve)
		if strings.HasPrefix(line, "deinit") { // of a host cluster
			s.objects["/apis"] = `{"kind":"APIGroupList","groups":[]}`
		}
		dir := t.TempDir()
		writeFile(t, filepath.Join(dir, "kubeconfig"), fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c"}}],"clusters":[{"name":"c","cluster":{"server":%q}}]}`, url))
		t.Setenv("KUBECONFIG", filepath.Join(dir, "kubeconfig"))
		code := p.run(t, strings.Fields(strings.ReplaceAll(line, "DIR", dir))...)
		clean := strings.NewReplacer(dir, "DIR", url, "https://HOST", strings.TrimPrefix(url, "http://"), "HOST")
		fmt.Fprintf(&all, "$ %s\n", line)
		for _, text := range []string{p.out.String(), p.errOut.String(), strings.Join(s.writes, "\n")} {
			for one := range strings.Lines(text) {
				if strings.HasPrefix(one, "waiting for ") { // on a slow machine
					continue
				}
				all.WriteString("  " + strings.TrimRight(clean.Replace(one), "\n") + "\n")
			}
		}
		fmt.Fprintf(&all, "  exit code %d\n", code)
	}
	build.AssertGolden(t, "results", all.String())
}
