package agent

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestRewind_WatchOnAnotherConnectionExpires(t *testing.T) {
	const (
		initial = "/works?watch=true&sendInitialEvents=true&resourceVersion=101"
		goesOn  = "/works?watch=true&resourceVersion=90"
	)
	type step struct {
		url  string
		lost bool // the connections are closed before it
		want int
	}
	for name, steps := range map[string][]step{
		"a watch that goes on":                  {{url: initial, want: 200}, {url: goesOn, want: 200}, {url: goesOn, want: 200}},
		"a watch after a list":                  {{url: "/works", want: 200}, {url: goesOn, want: 200}, {url: goesOn, want: 200}},
		"the connection was lost":               {{url: initial, want: 200}, {url: goesOn, lost: true, want: 410}, {url: initial, want: 200}, {url: goesOn, want: 200}},
		"lost, and only lists are possible":     {{url: "/works", want: 200}, {url: goesOn, want: 200}, {url: goesOn, lost: true, want: 410}, {url: "/works", want: 200}, {url: goesOn, want: 200}, {url: goesOn, want: 200}},
		"another list in between":               {{url: initial, want: 200}, {url: "/works", lost: true, want: 200}, {url: goesOn, want: 410}},
		"another watch began in between":        {{url: initial, want: 200}, {url: "/clusters?watch=1&resourceVersion=0", lost: true, want: 200}, {url: goesOn, want: 410}},
		"a watch from any version gets all":     {{url: "/works?watch=true&resourceVersion=0", want: 200}, {url: "/works?watch=true", lost: true, want: 200}, {url: goesOn, want: 200}},
		"requests other than watches":           {{url: "/works?resourceVersion=101", want: 200}, {url: "/works?resourceVersion=101", lost: true, want: 200}},
		"each watch has to be read anew itself": {{url: initial, want: 200}, {url: "/clusters?watch=1", want: 200}, {url: goesOn, lost: true, want: 410}, {url: "/clusters?watch=1&resourceVersion=5", want: 410}},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
			defer server.Close()
			connections := uint64(1)
			client := &http.Client{Transport: newRewind(http.DefaultTransport, func() uint64 { return connections })}
			for i, s := range steps {
				if s.lost {
					connections++
				}
				resp, err := client.Get(server.URL + s.url)
				if err != nil {
					t.Fatal(err)
				}
				_ = resp.Body.Close()
				if resp.StatusCode != s.want {
					t.Errorf("step %d, %s: %d, not %d", i, s.url, resp.StatusCode, s.want)
				}
			}
		})
	}
}

func TestRewind_WatchOpensTheConnection(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	connections := uint64(1)
	dials := false
	transport := newRewind(roundTripper(func(req *http.Request) (*http.Response, error) {
		if dials {
			connections++
		}
		return http.DefaultTransport.RoundTrip(req)
	}), func() uint64 { return connections })
	for i, want := range []int{http.StatusOK, http.StatusGone} {
		dials = i > 0
		req, err := http.NewRequest(http.MethodGet, server.URL+"/works?watch=true&resourceVersion=5", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := transport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("watch %d: %d, not %d", i, resp.StatusCode, want)
		}
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
