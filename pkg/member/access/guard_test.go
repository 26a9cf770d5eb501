package access

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

// endless repeats a text until the client has enough.
func endless(w http.ResponseWriter, text string) {
	chunk := []byte(strings.Repeat(text, 1+(64<<10)/len(text)))
	for {
		if _, err := w.Write(chunk); err != nil {
			return
		}
	}
}

// bomb is an answer that is 1 GiB when it is decompressed.
func bomb(w http.ResponseWriter) {
	w.Header().Set("Content-Encoding", "gzip")
	z := gzip.NewWriter(w)
	chunk := []byte(strings.Repeat(" ", 1<<20))
	for range 1024 {
		if _, err := z.Write(chunk); err != nil {
			return
		}
	}
	_ = z.Close()
}

func guardedClient(t *testing.T, timeout time.Duration, handler http.HandlerFunc) (*http.Client, string) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	transport := &http.Transport{MaxResponseHeaderBytes: maxHeader}
	return &http.Client{Transport: &guarded{guard: newGuard(server.URL, timeout), base: transport}}, server.URL
}

// fetch reads an answer and returns its length.
func fetch(t *testing.T, client *http.Client, target string) (int64, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, target, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer secret")
	resp, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	return io.Copy(io.Discard, resp.Body)
}

func TestGuard_RejectsHostileResponses(t *testing.T) {
	// The identities of objects are checked too, but not in the response to this path.
	const list, discovery, watch = "/api/v1/namespaces/n/pods/p/log", "/apis", "/api/v1/namespaces/n/pods/p/log?watch=1"
	for _, tc := range []struct {
		name, path string
		serve      func(w http.ResponseWriter, r *http.Request)
		want       string
	}{
		{"endless list", list, func(w http.ResponseWriter, _ *http.Request) { endless(w, " ") }, "larger than 16 MiB"},
		{"endless discovery", discovery, func(w http.ResponseWriter, _ *http.Request) { endless(w, " ") }, "larger than 8 MiB"},
		{"endless health", "/readyz", func(w http.ResponseWriter, _ *http.Request) { endless(w, "ok") }, "larger than 8 MiB"},
		{"endless event", watch, func(w http.ResponseWriter, _ *http.Request) { endless(w, `{"a":"`+strings.Repeat("x", 4<<20)) }, "an event is larger than 3 MiB"},
		{"endless space between events", watch, func(w http.ResponseWriter, _ *http.Request) { endless(w, "\n") }, "an event is larger than 3 MiB"},
		{"Content-Length above the limit", list, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "1000000000") }, "larger than 16 MiB"},
		{"gzip bomb", list, func(w http.ResponseWriter, _ *http.Request) { bomb(w) }, "larger than 16 MiB"},
		{"gzip bomb of discovery", discovery, func(w http.ResponseWriter, _ *http.Request) { bomb(w) }, "larger than 8 MiB"},
		{"many empty objects", list, func(w http.ResponseWriter, _ *http.Request) { endless(w, "{},") }, "more than 262144 values"},
		{"deep nesting", list, func(w http.ResponseWriter, _ *http.Request) { endless(w, `{"a":`) }, "nested more than 500 deep"},
		{"event of empty lists", watch, func(w http.ResponseWriter, _ *http.Request) { endless(w, `{"a":[`+strings.Repeat("[],", 300_000)) }, "more than 262144 values"},
		{"protobuf", list, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf")
		}, "is not JSON"},
		{"YAML", list, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Type", "application/yaml") }, "is not JSON"},
		{"large headers", list, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("x", 1<<20)) }, "server response headers exceeded"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			client, base := guardedClient(t, time.Minute, tc.serve)
			if _, err := fetch(t, client, base+tc.path); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestGuard_Redirect(t *testing.T) {
	received := make(chan string, 1)
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { received <- r.Header.Get("Authorization") }))
	t.Cleanup(other.Close)
	for _, code := range []int{http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		client, base := guardedClient(t, time.Minute, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL, code)
		})
		if _, err := fetch(t, client, base+"/version"); !IsLimit(err) || !strings.Contains(err.Error(), "redirect") {
			t.Errorf("%d: got %v", code, err)
		}
	}
	select {
	case token := <-received:
		t.Errorf("the other host received %q", token)
	default:
	}
}

func TestGuard_Slow(t *testing.T) {
	for _, tc := range []struct {
		name    string
		headers bool
	}{{"no headers", false}, {"headers without a body", true}} {
		t.Run(tc.name, func(t *testing.T) {
			client, base := guardedClient(t, 50*time.Millisecond, func(w http.ResponseWriter, r *http.Request) {
				if tc.headers {
					w.WriteHeader(http.StatusOK)
					_ = http.NewResponseController(w).Flush()
				}
				<-r.Context().Done()
			})
			_, err := fetch(t, client, base+"/api/v1/pods")
			if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "no complete answer within 50ms") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestGuard_PassesValidResponses(t *testing.T) {
	event := `{"type":"ADDED","object":{"s":"a\"}]{\\","x":"` + strings.Repeat("y", 1<<20) + `"}}` + "\n"
	for _, tc := range []struct {
		name, path string
		body       string
		repeat     int
	}{
		{"a page", "/api/v1/namespaces/n/pods/p/log", strings.Repeat("x", 1<<20), 16},
		{"discovery", "/apis", strings.Repeat("x", 1<<20), 8},
		{"more events than the limit of one allows", "/api/v1/namespaces/n/pods/p/log?watch=true", event, 20},
		{"more values in events than the limit of one allows", "/api/v1/namespaces/n/pods/p/log?watch=true", `{"a":[` + strings.Repeat("1,", 100_000) + "1]}\n", 10},
	} {
		t.Run(tc.name, func(t *testing.T) {
			client, base := guardedClient(t, time.Minute, func(w http.ResponseWriter, _ *http.Request) {
				for range tc.repeat {
					_, _ = io.WriteString(w, tc.body)
				}
			})
			if n, err := fetch(t, client, base+tc.path); err != nil || n != int64(len(tc.body)*tc.repeat) {
				t.Errorf("got %d bytes, %v", n, err)
			}
		})
	}
}

// TestGuard_ReleasesConcurrencyLimits exceeds every limit more often than there are places.
func TestGuard_ReleasesConcurrencyLimits(t *testing.T) {
	client, base := guardedClient(t, time.Minute, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "small") {
			_, _ = io.WriteString(w, strings.Repeat("x", 2*largeAnswer))
			return
		}
		endless(w, " ")
	})
	for range 3 * discoveryAtOnce {
		for _, path := range []string{"/apis", "/api/v1/pods", "/api/v1/namespaces/n/pods/p/small", "/small"} {
			if _, err := fetch(t, client, base+path); (err != nil) != !strings.HasSuffix(path, "small") {
				t.Fatalf("%s: %v", path, err)
			}
		}
	}
}

func TestGuard_Kinds(t *testing.T) {
	g := newGuard("https://host/prefix/", time.Minute)
	for path, want := range map[string]answerKind{
		"/prefix/api": answerDiscovery, "/prefix/api/v1": answerDiscovery, "/prefix/apis/apps/v1": answerDiscovery,
		"/prefix/version": answerDiscovery, "/prefix/openapi/v2": answerDiscovery,
		"/prefix/api/v1/pods": answerObject, "/prefix/apis/apps/v1/deployments": answerObject,
		"/prefix/api/v1/pods?watch=true": answerWatch, "/prefix/api/v1/pods?watch=1": answerWatch, "/prefix/api/v1/pods?watch=false": answerObject,
	} {
		u, err := url.Parse("https://host" + path)
		if err != nil {
			t.Fatal(err)
		}
		if got := g.kindOf(u); got != want {
			t.Errorf("%s: got %d, want %d", path, got, want)
		}
	}
}

func TestWithoutBinary(t *testing.T) {
	for in, want := range map[string]string{
		"application/vnd.kubernetes.protobuf,application/json":                                                "application/json",
		"application/vnd.kubernetes.protobuf;as=Table;g=meta.k8s.io, application/json;as=Table;g=meta.k8s.io": "application/json;as=Table;g=meta.k8s.io",
		"application/vnd.kubernetes.protobuf":                                                                 "application/json",
		"*/*":                                                                                                 "*/*",
	} {
		if got := withoutBinary([]string{in}); got != want {
			t.Errorf("%s: got %q, want %q", in, got, want)
		}
	}
}
