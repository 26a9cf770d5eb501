package proxy

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
)

func TestForward_SendsWhatTheUserAsked(t *testing.T) {
	f := newFederation(t, http.NotFoundHandler())
	c := f.add(t, "m1", func(w http.ResponseWriter, req *http.Request) {
		if req.Method == http.MethodHead {
			return
		}
		w.Header().Set("Set-Cookie", "session=stolen")
		reply200(w, http.StatusTeapot, map[string]any{
			"cookie": req.Header.Get("Cookie"), "method": req.Method, "uri": req.RequestURI, "auth": req.Header.Get("Authorization"), "user": req.Header.Get("Impersonate-User"),
			"groups": strings.Join(req.Header.Values("Impersonate-Group"), ","), "uid": req.Header.Get("Impersonate-Uid"),
			"extra": req.Header.Get("Impersonate-Extra-X"), "agent": req.Header.Get("User-Agent"), "body": read(req),
		})
	})
	want := func(change map[string]any) map[string]any {
		m := map[string]any{
			"method": "GET", "uri": "/api", "auth": "bearer token-m1", "user": "alice", "groups": "dev,ops",
			"uid": "", "extra": "", "agent": "kubectl", "body": "", "cookie": "",
		}
		maps.Copy(m, change)
		return m
	}
	cases := []struct {
		name, method, endpoint, path string
		want                         map[string]any
	}{
		{name: "a simple path", path: "m1/proxy/api", want: want(nil)},
		{name: "the slash at the end stays", path: "m1/proxy/api/", want: want(map[string]any{"uri": "/api/"})},
		{name: "the query stays", path: "m1/proxy/api?x=%2F&dryRun=All&watch=1", want: want(map[string]any{"uri": "/api?x=%2F&dryRun=All&watch=1"})},
		{name: "escaped characters stay", path: "m1/proxy/a%2Fb%20c/d", want: want(map[string]any{"uri": "/a%2Fb%20c/d"})},
		{name: "no path", path: "m1/proxy", want: want(map[string]any{"uri": "/"})},
		{name: "the root", path: "m1/proxy/", want: want(map[string]any{"uri": "/"})},
		{name: "a path in the endpoint comes first", endpoint: "/base/", path: "m1/proxy/api/v1", want: want(map[string]any{"uri": "/base/api/v1"})},
		{name: "a path in the endpoint cannot be left", endpoint: "/base", path: "m1/proxy/%2e%2e/%2e%2e/x", want: want(map[string]any{"uri": "/base/x"})},
		{name: "other methods", method: http.MethodDelete, path: "m1/proxy/api", want: want(map[string]any{"method": "DELETE"})},
	}
	plain := c.Spec.APIEndpoint
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			c.Spec.APIEndpoint = plain + tc.endpoint
			if tc.method == "" {
				tc.method = http.MethodGet
			}
			header := http.Header{
				"Authorization": {"Bearer own"}, "Impersonate-User": {"root"}, "Impersonate-Uid": {"0"},
				"Impersonate-Extra-X": {"z"}, "User-Agent": {"kubectl"}, "Cookie": {"session=of-the-control-plane"},
			}
			code, got, answer := f.do(t, tc.method, tc.path, header)
			if code != http.StatusTeapot {
				t.Fatalf("code %d: %v", code, got)
			}
			if cookie := answer.Get("Set-Cookie"); cookie != "" {
				t.Errorf("the member sets the cookie %s", cookie)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A ServiceAccount with the groups that follow from its name is named without them. Whatever else somebody has is named, so that
// a member gives nobody groups that the requester does not have.
func TestImpersonate_Groups(t *testing.T) {
	const account = "system:serviceaccount:ns:robot"
	own := []string{"system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"}
	for name, tc := range map[string]struct {
		user              string
		groups            []string
		want, constrained []string
	}{
		"a user":                                 {"alice", []string{"dev", "system:authenticated"}, []string{"dev"}, []string{"dev"}},
		"a user without groups":                  {"alice", []string{"system:authenticated"}, nil, nil},
		"a user in the groups of an account":     {"alice", own, own[:2], own[:2]},
		"an administrator":                       {"admin", []string{"system:masters"}, []string{"system:masters"}, nil},
		"an account":                             {account, own, nil, nil},
		"an account with another group":          {account, append([]string{"dev"}, own...), []string{"dev", own[0], own[1]}, []string{"dev", own[0], own[1]}},
		"an account with another group only":     {account, []string{"dev"}, []string{"dev"}, []string{"dev"}},
		"an account of another namespace":        {"system:serviceaccount:other:robot", own, own[:2], own[:2]},
		"a name that is no account":              {"system:serviceaccount:ns", own, own[:2], own[:2]},
		"an account that is in system:masters":   {account, append([]string{"system:masters"}, own...), []string{"system:masters", own[0], own[1]}, own[:2]},
		"an account without the one of all":      {account, own[1:], own[1:2], own[1:2]},
		"a user who may be nobody in particular": {"system:anonymous", []string{"system:unauthenticated"}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			requester := &user.DefaultInfo{Name: tc.user, Groups: tc.groups}
			for _, mode := range []struct {
				set  func(http.Header, user.Info)
				want []string
			}{{impersonate, tc.want}, {impersonateConstrained, tc.constrained}} {
				header := http.Header{"Impersonate-Group": {"system:masters"}, "Impersonate-User": {"root"}}
				mode.set(header, requester)
				got := header.Values("Impersonate-Group")
				slices.Sort(got)
				want := slices.Sorted(slices.Values(mode.want))
				if !slices.Equal(got, want) || header.Get("Impersonate-User") != tc.user {
					t.Errorf("got %q as %q, want %q", got, header.Get("Impersonate-User"), want)
				}
			}
		})
	}
}

func read(req *http.Request) string {
	data, _ := io.ReadAll(req.Body)
	return string(data)
}

func TestForward_Errors(t *testing.T) {
	f := newFederation(t, http.NotFoundHandler())
	ok := func(w http.ResponseWriter, _ *http.Request) { reply200(w, http.StatusOK, map[string]any{}) }
	f.add(t, "no-endpoint", ok).Spec.APIEndpoint = ""
	f.add(t, "no-impersonator", ok).Spec.ImpersonatorSecretRef = nil
	f.add(t, "no-secret", ok).Spec.SecretRef = &clusterv1alpha1.LocalSecretReference{Namespace: "ns", Name: "gone"}
	f.add(t, "no-token", ok)
	delete(f.secrets["ns/no-token"].Data, "token")
	f.add(t, "not-filled", ok)
	f.secrets["ns/not-filled"].Data = nil
	f.add(t, "no-ca", ok)
	delete(f.secrets["ns/no-ca"].Data, "caBundle")
	f.add(t, "insecure", ok).Spec.InsecureSkipTLSVerification = true
	delete(f.secrets["ns/insecure"].Data, "caBundle")
	f.add(t, "dead", ok).Spec.APIEndpoint = "https://127.0.0.1:1"
	cases := []struct {
		cluster string
		code    int
		message string
	}{
		{"unknown", 404, `clusters.cluster.karmada.io "unknown" not found`},
		{"no-endpoint", 500, "API endpoint of cluster no-endpoint should not be empty"},
		{"no-impersonator", 500, "the impersonatorSecretRef of cluster no-impersonator is nil"},
		{"no-secret", 404, `secrets "gone" not found`},
		{"no-token", 500, "failed to get impresonateToken for cluster no-token: the impresonate token of cluster no-token is empty"},
		{"not-filled", 500, "the impersonatorSecretRef of cluster not-filled is nil, in effect: Secret ns/not-filled is empty, because the agent of the cluster does not report a token for users; run it with --report-secrets=KubeImpersonator, or fill in \"token\""},
		{"no-ca", 503, "reaching cluster no-ca: tls: failed to verify certificate: x509: certificate signed by unknown authority"},
		{"dead", 503, "reaching cluster dead: dial tcp 127.0.0.1:1: connect: connection refused"},
		{"insecure", 200, ""},
	}
	for _, tc := range cases {
		t.Run(tc.cluster, func(t *testing.T) {
			code, got, _ := f.do(t, http.MethodGet, tc.cluster+"/proxy/api", nil)
			message, _ := got["message"].(string)
			if code != tc.code || message != tc.message {
				t.Errorf("got %d %s", code, message)
			}
		})
	}
}

func TestForward_PullClusterThatHasNotReported(t *testing.T) {
	f := newFederation(t, http.NotFoundHandler())
	ok := func(w http.ResponseWriter, _ *http.Request) { reply200(w, http.StatusOK, map[string]any{}) }
	pull := func(name string) *clusterv1alpha1.Cluster {
		c := f.add(t, name, ok)
		c.Spec.SyncMode = clusterv1alpha1.Pull
		return c
	}
	pull("no-endpoint").Spec.APIEndpoint = ""
	pull("no-impersonator").Spec.ImpersonatorSecretRef = nil
	pull("no-token")
	f.secrets["ns/no-token"].Data["token"] = nil
	never := pull("never-updated")
	never.Spec.APIEndpoint = ""
	never.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionUnknown, Reason: "ClusterStatusNeverUpdated"}}
	reported := pull("reported")
	reported.Spec.ImpersonatorSecretRef = nil
	reported.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Reason: "ClusterReady"}}
	pull("complete")
	for _, tc := range []struct {
		cluster, message string
		code             int
	}{
		{"no-endpoint", "cluster no-endpoint has not reported yet: API endpoint of cluster no-endpoint should not be empty", 503},
		{"no-impersonator", "cluster no-impersonator has not reported yet: the impersonatorSecretRef of cluster no-impersonator is nil", 503},
		{"no-token", "cluster no-token has not reported yet: failed to get impresonateToken for cluster no-token: the impresonate token of cluster no-token is empty", 503},
		{"never-updated", "cluster never-updated has not reported yet: API endpoint of cluster never-updated should not be empty", 503},
		{"reported", "the impersonatorSecretRef of cluster reported is nil", 500},
		{"complete", "", 200},
	} {
		t.Run(tc.cluster, func(t *testing.T) {
			code, got, _ := f.do(t, http.MethodGet, tc.cluster+"/proxy/api", nil)
			message, _ := got["message"].(string)
			if code != tc.code || message != tc.message {
				t.Errorf("got %d %s", code, message)
			}
		})
	}
}

// switching is a member that changes the protocol and sends back what it gets.
func switching(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		if code != http.StatusSwitchingProtocols {
			w.WriteHeader(code)
			_, _ = fmt.Fprint(w, "no")
			return
		}
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		defer func() { _ = conn.Close() }()
		_, _ = fmt.Fprintf(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\nX-User: %s\r\n\r\n", req.Header.Get("Upgrade"), req.Header.Get("Impersonate-User"))
		_ = rw.Flush()
		line, _ := rw.ReadString('\n')
		_, _ = fmt.Fprintf(rw, "echo %s", line)
		_ = rw.Flush()
	}
}

// upgrade asks for another protocol and returns the status, a header and what
// comes back for a line.
func (f *federation) upgrade(t *testing.T, path string) (code int, header http.Header, line string) {
	t.Helper()
	conn, err := net.Dial("tcp", f.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_, _ = fmt.Fprintf(conn, "POST %s%s HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n", base, path)
	r := bufio.NewReader(conn)
	answer, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	if answer.StatusCode != http.StatusSwitchingProtocols {
		data, _ := io.ReadAll(answer.Body)
		return answer.StatusCode, answer.Header, string(data)
	}
	_, _ = fmt.Fprint(conn, "hello\n")
	line, _ = r.ReadString('\n')
	return answer.StatusCode, answer.Header, line
}

func TestForward_Upgrades(t *testing.T) {
	f := newFederation(t, http.NotFoundHandler())
	f.add(t, "m1", switching(http.StatusSwitchingProtocols))
	f.add(t, "forbids", switching(http.StatusForbidden))
	f.add(t, "ignores", switching(http.StatusOK))
	const exec = "/proxy/api/v1/namespaces/n/pods/p/exec?command=sh"

	if code, header, line := f.upgrade(t, "m1"+exec); code != 101 || line != "echo hello\n" || header.Get("X-User") != "alice" {
		t.Errorf("got %d %v %q", code, header, line)
	}
	if code, _, line := f.upgrade(t, "forbids"+exec); code != 403 || line != "no" {
		t.Errorf("a refusal: got %d %q", code, line)
	}
	if code, _, line := f.upgrade(t, "ignores"+exec); code != 500 || !strings.Contains(line, "invalid upgrade response: status code 200") {
		t.Errorf("no answer to the upgrade: got %d %q", code, line)
	}
}

// upstream is a proxy that tunnels and remembers what it was asked with.
type upstream struct {
	*httptest.Server
	mu   sync.Mutex
	seen []http.Header
}

func newUpstream(t *testing.T) *upstream {
	t.Helper()
	u := &upstream{}
	u.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		u.mu.Lock()
		u.seen = append(u.seen, req.Header.Clone())
		u.mu.Unlock()
		target, err := net.Dial("tcp", req.Host)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		_, _ = fmt.Fprint(conn, "HTTP/1.1 200 OK\r\n\r\n")
		go func() { _, _ = io.Copy(target, conn); _ = target.Close() }()
		_, _ = io.Copy(conn, target)
		_ = conn.Close()
	}))
	t.Cleanup(u.Close)
	return u
}

func TestForward_GoesThroughTheUpstreamProxy(t *testing.T) {
	f := newFederation(t, http.NotFoundHandler())
	u := newUpstream(t)
	plain := f.add(t, "plain", func(w http.ResponseWriter, _ *http.Request) { reply200(w, 200, map[string]any{}) })
	upgrade := f.add(t, "upgrade", switching(http.StatusSwitchingProtocols))
	for _, c := range []*clusterv1alpha1.Cluster{plain, upgrade} {
		c.Spec.ProxyURL = strings.Replace(u.URL, "http://", "http://me:pass@", 1)
		c.Spec.ProxyHeader = map[string]string{"X-Route": "a,b"}
	}
	if code, got, _ := f.do(t, http.MethodGet, "plain/proxy/api", nil); code != 200 {
		t.Fatalf("got %d %v", code, got)
	}
	if code, _, line := f.upgrade(t, "upgrade/proxy/api/v1/namespaces/n/pods/p/exec"); code != 101 || line != "echo hello\n" {
		t.Fatalf("got %d %q", code, line)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.seen) != 2 {
		t.Fatalf("%d tunnels", len(u.seen))
	}
	for _, h := range u.seen {
		if diff := cmp.Diff([]string{"a", "b"}, h.Values("X-Route")); diff != "" || h.Get("Proxy-Authorization") != "Basic bWU6cGFzcw==" {
			t.Errorf("got %v", h)
		}
	}
}

func TestPool_KeepsConnections(t *testing.T) {
	var connections atomic.Int32
	f := newFederation(t, http.NotFoundHandler())
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { reply200(w, 200, map[string]any{}) }))
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			connections.Add(1)
		}
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	c := f.add(t, "m1", nil)
	c.Spec.APIEndpoint, c.Spec.InsecureSkipTLSVerification = server.URL, true
	for range 5 {
		f.do(t, http.MethodGet, "m1/proxy/api", nil)
	}
	if n := connections.Load(); n != 1 {
		t.Errorf("%d connections for five requests", n)
	}
	f.secrets["ns/m1"].Data["token"] = []byte("new")
	f.do(t, http.MethodGet, "m1/proxy/api", nil)
	if n := connections.Load(); n != 1 {
		t.Errorf("a new token made a new connection")
	}
	c.Spec.ProxyHeader = map[string]string{"a": "b"}
	f.do(t, http.MethodGet, "m1/proxy/api", nil)
	if n := connections.Load(); n != 2 {
		t.Errorf("%d connections after the way changed", n)
	}
}
