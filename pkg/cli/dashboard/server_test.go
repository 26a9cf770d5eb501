package dashboard

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/karmada-toolkit/karmada/internal/build"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/insight/snapshot"
	"github.com/karmada-toolkit/karmada/pkg/insight/status"
)

// testServer returns a server of a federation.
func testServer(t testing.TB, facts *snapshot.Federation) *server {
	t.Helper()
	templates, err := parse()
	if err != nil {
		t.Fatal(err)
	}
	l := &live{mirror: &mirror{}, program: "karmadactl", next: make(chan struct{})}
	l.set(facts, nil, false)
	reader := &snapshot.Reader{Now: func() time.Time { return facts.Now }}
	return newServer(&pages{program: "karmadactl", live: l, reader: reader, templates: templates}, 7340)
}

// binding is that of a Deployment in m1 and m2.
func binding(namespace, name string, items ...workv1alpha2.AggregatedStatusItem) *workv1alpha2.ResourceBinding {
	b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + "-deployment", ResourceVersion: "1"}}
	b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "Deployment", Namespace: namespace, Name: name}
	b.Spec.Replicas, b.Spec.Clusters = 3, []workv1alpha2.TargetCluster{{Name: "m1", Replicas: 2}, {Name: "m2", Replicas: 1}}
	b.Status.AggregatedStatus = items
	return b
}

func item(cluster, health, status string) workv1alpha2.AggregatedStatusItem {
	return workv1alpha2.AggregatedStatusItem{ClusterName: cluster, Applied: true, Health: workv1alpha2.ResourceHealth(health), Status: &runtime.RawExtension{Raw: []byte(status)}}
}

// federation has two clusters, m2 of which is not Ready, and three workloads.
func federation() *snapshot.Federation {
	refused := workv1alpha2.AggregatedStatusItem{ClusterName: "m1", AppliedMessage: `<script>alert("x")</script>`}
	return &snapshot.Federation{
		Now:      time.Unix(1000, 0),
		Clusters: []*clusterv1alpha1.Cluster{build.Cluster("m1", build.Ready(metav1.ConditionTrue)), build.Cluster("m2")},
		Bindings: []workv1alpha2.Binding{
			binding("shop", "web", item("m1", "Healthy", `{"readyReplicas":2}`), item("m2", "Healthy", `{"readyReplicas":1}`)),
			binding("shop", "api", item("m1", "Unhealthy", `{"readyReplicas":"many"}`)), binding("default", "worker", refused),
		},
	}
}

// TestServer_Admission sends requests from a browser that has the cookie, and from others.
func TestServer_Admission(t *testing.T) {
	s := testServer(t, federation())
	token := strings.TrimPrefix(s.url(), "http://127.0.0.1:7340"+s.base)
	ask := func(method, host, path string, change func(*http.Request)) *http.Response {
		t.Helper()
		r := httptest.NewRequest(method, "http://"+host+path, nil)
		if change != nil {
			change(r)
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		return w.Result()
	}
	const own = "127.0.0.1:7340"
	admitted := ask("GET", own, s.base+token, nil)
	cookies := admitted.Cookies()
	if len(cookies) != 1 || cookies[0].Name != "karmada-dashboard-7340" || !cookies[0].HttpOnly || cookies[0].SameSite != http.SameSiteStrictMode || cookies[0].Path != s.base {
		t.Fatalf("the token gives %d, %v", admitted.StatusCode, cookies)
	}
	with := func(change func(*http.Request)) func(*http.Request) {
		return func(r *http.Request) {
			r.AddCookie(&http.Cookie{Name: cookies[0].Name, Value: cookies[0].Value})
			if change != nil {
				change(r)
			}
		}
	}
	origin := func(o string) func(*http.Request) { return with(func(r *http.Request) { r.Header.Set("Origin", o) }) }
	for _, tc := range []struct {
		name, method, host, path string
		change                   func(*http.Request)
		want                     int
	}{
		{"the cookie", "GET", own, s.base, with(nil), 200},
		{"the cookie at localhost", "GET", "localhost:7340", s.base, with(nil), 200},
		{"no cookie", "GET", own, s.base, nil, 401},
		{"no cookie for a stream", "GET", own, s.base + "events", nil, 401},
		{"no cookie for an asset", "GET", own, s.base + "assets/page.js", nil, 401},
		{"another cookie", "GET", own, s.base, func(r *http.Request) { r.AddCookie(&http.Cookie{Name: cookies[0].Name, Value: "x"}) }, 401},
		{"another cookie beside it", "GET", own, s.base, with(func(r *http.Request) { r.AddCookie(&http.Cookie{Name: cookies[0].Name, Value: "x"}) }), 200},
		{"the cookie of another dashboard", "GET", own, s.base, func(r *http.Request) {
			r.AddCookie(&http.Cookie{Name: "karmada-dashboard-7341", Value: cookies[0].Value})
		}, 401},
		{"the token for the second time", "GET", own, s.base + token, nil, 401},
		{"the token for the second time in the same browser", "GET", own, s.base + token, with(nil), 200},
		{"a wrong token", "GET", own, s.base + "?token=x", nil, 401},
		{"another path", "GET", own, "/", with(nil), 401},
		{"a foreign host", "GET", "attacker.example:7340", s.base, with(nil), 403},
		{"a foreign host with the token", "GET", "attacker.example:7340", s.base + token, nil, 403},
		{"another port", "GET", "127.0.0.1:7341", s.base, with(nil), 403},
		{"a host without port", "GET", "127.0.0.1", s.base, with(nil), 403},
		{"a foreign origin", "POST", own, s.base + "plan", origin("http://attacker.example"), 403},
		{"the origin of another port", "POST", own, s.base + "plan", origin("http://127.0.0.1:7341"), 403},
		{"no origin", "POST", own, s.base + "plan", origin("null"), 403},
		{"its own origin", "GET", own, s.base, origin("http://" + own), 200},
		{"another method", "DELETE", own, s.base, with(nil), 405},
		{"a POST of a page that only shows", "POST", own, s.base, with(nil), 404},
		{"no such page", "GET", own, s.base + "none", with(nil), 404},
		{"a template", "GET", own, s.base + "assets/layout.html", with(nil), 404},
		{"a path out of the assets", "GET", own, s.base + "assets/../server.go", with(nil), 404},
		{"an asset", "GET", own, s.base + "assets/page.js", with(nil), 200},
	} {
		got := ask(tc.method, tc.host, tc.path, tc.change)
		if got.StatusCode != tc.want {
			t.Errorf("%s: %d, want %d", tc.name, got.StatusCode, tc.want)
		}
		if csp := got.Header.Get("Content-Security-Policy"); csp != contentPolicy || got.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: no protection: %q", tc.name, csp)
		}
		if tc.want == 401 && len(got.Cookies()) > 0 {
			t.Errorf("%s: a cookie", tc.name)
		}
	}
}

// page returns an address below the base for a browser with the cookie.
func (s *server) page(t testing.TB, path string) (int, string) {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1:7340"+s.base+path, nil)
	r.AddCookie(&http.Cookie{Name: s.cookie(), Value: s.session})
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	body, err := io.ReadAll(w.Result().Body)
	if err != nil {
		t.Fatal(err)
	}
	return w.Code, string(body)
}

// TestOverview_States shows each state with its shape and words, and texts of members as texts.
func TestOverview_States(t *testing.T) {
	s := testServer(t, federation())
	code, body := s.page(t, "")
	for _, want := range []string{
		"m1: healthy, 2 of 2 ready", "● 2/2", "m2: cluster not Ready, 1 of 1 ready", "◇ 1/1",
		"m1: unhealthy, 0 of 2 ready", "▲ 0/2", "m1: refused by the cluster, 0 of 2 ready: &lt;script&gt;alert(&#34;x&#34;)&lt;/script&gt;", "✖ not Ready", "3 problems",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q in the page (%d)", want, code)
		}
	}
	if strings.Contains(body, "<script>alert") || strings.Contains(body, " style=") || strings.Contains(body, "onclick") {
		t.Error("the page has text of a member as code, or inline code")
	}
	if t.Failed() {
		t.Log(body)
	}
}

// TestOverview_Filter selects rows.
func TestOverview_Filter(t *testing.T) {
	facts := federation()
	for i := range 100 {
		facts.Bindings = append(facts.Bindings, binding("many", fmt.Sprintf("w%02d", i)))
	}
	s := testServer(t, facts)
	for query, want := range map[string]string{
		"":                        "103 workloads",
		"?q=API":                  "1 of 103 workloads",
		"?q=deployment+shop":      "2 of 103 workloads",
		"?namespace=many":         "100 of 103 workloads",
		"?namespace=many&from=95": `aria-rowindex="41"`,
		"?from=-1":                `aria-rowindex="1"`,
		"?from=x":                 `aria-rowindex="60"`,
		"?q=none":                 "No workload is selected",
		"?problems=1":             "2 of 103 workloads",
		"?label=%3D%3D":           "is no label selector: write KEY=VALUE",
	} {
		code, body := s.page(t, query)
		if code != http.StatusOK || !strings.Contains(body, want) || strings.Count(body, "aria-rowindex=") > rowsShown {
			t.Errorf("%s: %d, no %q in\n%s", query, code, want, body)
		}
	}
	empty := testServer(t, &snapshot.Federation{Now: time.Unix(1000, 0)})
	if _, body := empty.page(t, ""); !strings.Contains(body, "No policy has a workload yet") || !strings.Contains(body, "karmadactl join") {
		t.Error("an empty federation says not what to do:\n" + body)
	}
}

// TestPages_Lost names why what is shown is not current.
func TestPages_Lost(t *testing.T) {
	s := testServer(t, federation())
	s.live.set(s.live.state().Federation, errors.New("connection refused"), false)
	for _, path := range []string{"", "plan"} {
		if _, body := s.page(t, path); !strings.Contains(body, "The control plane does not answer") || !strings.Contains(body, "connection refused") {
			t.Errorf("%q does not name the failure:\n%s", path, body)
		}
	}
}

// TestPages_Reading shows no page while the federation is read.
func TestPages_Reading(t *testing.T) {
	s := testServer(t, federation())
	s.live.set(&snapshot.Federation{Now: time.Unix(1000, 0)}, nil, true)
	if code, body := s.page(t, ""); code != http.StatusOK || !strings.Contains(body, "Reading the federation") || !strings.Contains(body, "data-live") || strings.Contains(body, "problem") {
		t.Errorf("%d:\n%s", code, body)
	}
}

// TestTopic_Differs reports when a page is read again.
func TestTopic_Differs(t *testing.T) {
	at := func(change func(*snapshot.Federation)) *state {
		f := federation()
		if change != nil {
			change(f)
		}
		return newState(f, status.Federation(f, "karmadactl"))
	}
	shown := at(nil)
	for _, tc := range []struct {
		name, query string
		now         *state
		want        bool
	}{
		{"all", "", at(nil), true},
		{"no change of the binding", "binding=shop/web-deployment", at(nil), false},
		{"another binding", "binding=shop/web-deployment", at(func(f *snapshot.Federation) { f.Bindings[1].SetResourceVersion("2") }), false},
		{"the binding", "binding=shop/web-deployment", at(func(f *snapshot.Federation) { f.Bindings[0].SetResourceVersion("2") }), true},
		{"the binding is gone", "binding=shop/web-deployment", at(func(f *snapshot.Federation) { f.Bindings = f.Bindings[1:] }), true},
		{"a cluster is lost", "binding=shop/web-deployment", at(func(f *snapshot.Federation) { f.Clusters[0] = build.Cluster("m1") }), true},
		{"no binding", "binding=", at(func(f *snapshot.Federation) { f.Bindings[0].SetResourceVersion("2") }), false},
		{"some time", "binding=shop/web-deployment", at(func(f *snapshot.Federation) { f.Now = f.Now.Add(refreshInterval) }), true},
	} {
		q, _ := url.ParseQuery(tc.query)
		if got := topicOf(q).differs(shown, tc.now); got != tc.want {
			t.Errorf("%s: %v", tc.name, got)
		}
	}
}

// TestVendor_IsInTheNotice compares the files of others with their notice.
func TestVendor_IsInTheNotice(t *testing.T) {
	const dir = "assets/vendor"
	notice, err := embedded.ReadFile(dir + "/NOTICE.md")
	if err != nil {
		t.Fatal(err)
	}
	entries, err := embedded.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		body, err := embedded.ReadFile(dir + "/" + e.Name())
		if err != nil {
			t.Fatal(err)
		}
		line := fmt.Sprintf("| 0BSD | `%x` |", sha256.Sum256(body))
		if e.Name() != "NOTICE.md" && (!strings.Contains(string(notice), line) || !strings.Contains(string(notice), "`"+e.Name()+"`")) {
			t.Errorf("%s is not in the notice, or not as it is there: %s", e.Name(), line)
		}
	}
}

// TestFailed_Next shows an error with what to do.
func TestFailed_Next(t *testing.T) {
	resource := schema.GroupResource{Resource: "deployments"}
	for _, tc := range []struct {
		err  error
		code int
		next string
	}{
		{apierrors.NewNotFound(resource, "x"), 404, "overview"},
		{apierrors.NewForbidden(resource, "x", errors.New("no")), 403, "karmada-insight"},
		{&badRequest{"bad", "Go back"}, 400, "Go back"},
		{fmt.Errorf("reading: %w", os.ErrDeadlineExceeded), 500, "again"},
	} {
		if v := failed(tc.err); v.code != tc.code || !strings.Contains(v.Next, tc.next) {
			t.Errorf("%v: %d %q", tc.err, v.code, v.Next)
		}
	}
}

// TestListen_PortInUse takes the next port.
func TestListen_PortInUse(t *testing.T) {
	first, port, err := listen(t.Context(), 20000)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = first.Close() }()
	second, next, err := listen(t.Context(), port)
	if err != nil || next <= port {
		t.Fatalf("got port %d after %d, %v", next, port, err)
	}
	_ = second.Close()
	if _, _, err := listen(t.Context(), 65535); err != nil && !strings.Contains(err.Error(), "name another one") {
		t.Errorf("got %v", err)
	}
}
