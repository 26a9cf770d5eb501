package agent

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestRewind_WatchesFromTheFutureAreToldThatTheyExpired(t *testing.T) {
	tests := []struct {
		name, query string
		want        int
	}{
		{"a watch that goes on", "?watch=true&resourceVersion=90", http.StatusOK},
		{"a watch from where the list is", "?watch=true&resourceVersion=100", http.StatusOK},
		{"a watch from after the backup", "?watch=true&resourceVersion=101", http.StatusGone},
		{"a watch that begins with a list", "?watch=true&sendInitialEvents=true&resourceVersion=101", http.StatusOK},
		{"a watch from anywhere", "?watch=true&resourceVersion=0", http.StatusOK},
		{"a list", "?resourceVersion=101", http.StatusOK},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("limit") == "1" {
			_, _ = io.WriteString(w, `{"kind":"PartialObjectMetadataList","metadata":{"resourceVersion":"100"}}`)
		}
	}))
	defer server.Close()
	client := &http.Client{Transport: withRewind(http.DefaultTransport)}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			resp, err := client.Get(server.URL + "/apis/work.karmada.io/v1alpha1/namespaces/karmada-es-m/works" + tt.query)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = resp.Body.Close() }()
			if resp.StatusCode != tt.want {
				t.Errorf("%s: %d, not %d", tt.query, resp.StatusCode, tt.want)
			}
		})
	}
}

func TestRewind_AServerThatDoesNotTellIsWatched(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("limit") == "1" {
			w.WriteHeader(http.StatusForbidden)
		}
	}))
	defer server.Close()
	resp, err := (&http.Client{Transport: withRewind(http.DefaultTransport)}).Get(server.URL + "/x?watch=true&resourceVersion=5")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("got %d", resp.StatusCode)
	}
}
