package proxy

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/karmada-toolkit/karmada/internal/build"
)

// writeUntilRefused writes until the other side has enough.
func writeUntilRefused(w io.Writer, chunk []byte) {
	for {
		if _, err := w.Write(chunk); err != nil {
			return
		}
	}
}

// hostile returns what a hostile member may answer to a list, by name.
func hostile() map[string]http.HandlerFunc {
	spaces := []byte(strings.Repeat(" ", 1<<20))
	return map[string]http.HandlerFunc{
		"endless": func(w http.ResponseWriter, _ *http.Request) { writeUntilRefused(w, spaces) },
		"announced": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000000000")
			writeUntilRefused(w, spaces)
		},
		"gzip bomb": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			for range 1024 {
				if _, err := z.Write(spaces); err != nil {
					return
				}
			}
		},
		"redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://localhost:1/", http.StatusFound)
		},
		"another kind": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"kind":"SecretList","apiVersion":"v1","items":[{"a":"b"}]}`)
		},
		"wrong types": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"kind":"PodList","apiVersion":"v1","items":{"a":"b"}}`)
		},
	}
}

func TestAll_AHostileMemberCostsTheOthersNothing(t *testing.T) {
	for name, handler := range hostile() {
		t.Run(name, func(t *testing.T) {
			f := newFederation(t, http.NotFoundHandler())
			f.add(t, "m1", handler)
			f.add(t, "m2", having("a"))
			code, got, header := f.do(t, http.MethodGet, pods, nil)
			if items, ok := got["items"].([]any); code != http.StatusOK || !ok || len(items) != 1 {
				t.Errorf("got %d %v", code, got)
			}
			if w := header.Values("Warning"); len(w) != 1 || !strings.Contains(w[0], "cluster m1: ") {
				t.Errorf("got the warnings %q", w)
			}
		})
	}
}

// TestAll_ReadsNothingToFindAnObject has a member that sends a body without end for
// an object.
func TestAll_ReadsNothingToFindAnObject(t *testing.T) {
	f := newFederation(t, http.NotFoundHandler())
	f.add(t, "m1", hostile()["endless"])
	f.add(t, "m2", having("a"))
	code, got, _ := f.do(t, http.MethodGet, pods+"/a", nil)
	if code != http.StatusConflict {
		t.Errorf("got %d %v", code, got)
	}
}

func TestForward_Redirects(t *testing.T) {
	var location string
	f := newFederation(t, http.NotFoundHandler())
	f.add(t, "m1", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", location)
		w.WriteHeader(http.StatusFound)
	})
	endpoint := f.clusters[0].Spec.APIEndpoint
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for _, tc := range []struct{ location, want string }{
		{"/api/v1/x/proxy/?a=b%2F#c", base + "m1/proxy/api/v1/x/proxy/?a=b%2F#c"},
		{"y", base + "m1/proxy/api/v1/y"},
		{endpoint + "/a%2Fb", base + "m1/proxy/a%2Fb"},
		{"http://elsewhere.example/", ""},
		{"//elsewhere.example/", ""},
		{strings.Replace(endpoint, "https", "http", 1) + "/", ""},
		{"https://user:password@" + strings.TrimPrefix(endpoint, "https://") + "/", ""},
		{"http://%zz", ""},
	} {
		location = tc.location
		answer, err := client.Get(f.URL + base + "m1/proxy/api/v1/x")
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if tc.want == "" && (answer.StatusCode != http.StatusBadGateway || answer.Header.Get("Location") != "") {
			t.Errorf("%s: got %s, location %q", tc.location, answer.Status, answer.Header.Get("Location"))
		}
		if got := answer.Header.Get("Location"); got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.location, got, tc.want)
		}
	}
}

// TestForward_StreamsWithoutLimit reads more through the proxy than it would ever
// keep.
func TestForward_StreamsWithoutLimit(t *testing.T) {
	const size = 64 << 20
	f := newFederation(t, http.NotFoundHandler())
	f.add(t, "m1", func(w http.ResponseWriter, _ *http.Request) {
		chunk := make([]byte, 1<<20)
		for range size / len(chunk) {
			_, _ = w.Write(chunk)
		}
	})
	answer, err := http.Get(f.URL + base + "m1/proxy/api/v1/x")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	if n, err := io.Copy(io.Discard, answer.Body); n != size || err != nil {
		t.Errorf("got %d bytes, %v", n, err)
	}
}

func FuzzMerge(f *testing.F) {
	f.Add([]byte(`{"kind":"PodList","apiVersion":"v1","items":[{"a":1}, {"b":[]}]}`), []byte(`{"kind":"PodList","apiVersion":"v1","items":[ ]}`))
	f.Add([]byte(`{"kind":"Table","rows":[1],"columnDefinitions":[]}`), []byte(`{"kind":"Table","rows":null}`))
	f.Add([]byte(`{"items":"]"}`), []byte(`{"items":{}}`))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		build.Bounded(t, time.Minute, 64<<20+uint64(65536*(len(a)+len(b))), func() {
			ok := func(body []byte) reply { return reply{code: http.StatusOK, body: body} }
			merged, _ := merge([]reply{ok(a), ok(b)}, wantedList{resource: "pods", table: true})
			if merged == nil {
				return
			}
			w := httptest.NewRecorder()
			if err := merged.write(w); err != nil {
				t.Fatal(err)
			}
			count := func(body []byte) int {
				var l struct{ Items, Rows []json.RawMessage }
				if json.Unmarshal(body, &l) != nil {
					return 0
				}
				return max(len(l.Items), len(l.Rows))
			}
			if !json.Valid(w.Body.Bytes()) || count(w.Body.Bytes()) > count(a)+count(b) {
				t.Errorf("%q and %q became %q", a, b, w.Body)
			}
		})
	})
}
