package agent

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// rewind answers a watch that continues on another connection than the one that it began
// on with 410 Gone, so that the informer lists again. The cluster may have been restored
// from an older copy of its store: the watch would miss changes, and the resource version
// does not show that. A cluster that starts with other data closes every connection. See
// docs/design/agent-rewind.md.
type rewind struct {
	base http.RoundTripper
	// connections returns the number of connections made so far.
	connections func() uint64

	mu sync.Mutex
	// begun is the number of connections at the begin of each watch.
	begun map[string]uint64
}

// newRewind returns a transport that answers a watch which continues on another connection
// than it began on with 410 Gone. connections returns the number of connections that base
// has made.
func newRewind(base http.RoundTripper, connections func() uint64) http.RoundTripper {
	return &rewind{base: base, connections: connections, begun: map[string]uint64{}}
}

// WrappedRoundTripper returns the wrapped transport for client-go.
func (r *rewind) WrappedRoundTripper() http.RoundTripper { return r.base }

// RoundTrip implements http.RoundTripper.
func (r *rewind) RoundTrip(req *http.Request) (*http.Response, error) {
	query := req.URL.Query()
	if watch := query.Get("watch"); req.Method != http.MethodGet || watch != "true" && watch != "1" {
		return r.base.RoundTrip(req)
	}
	key, before := watchKey(req, query), r.connections()
	resp, err := r.base.RoundTrip(req)
	if err != nil || resp.StatusCode != http.StatusOK {
		return resp, err
	}
	if r.continues(key, begins(query), before) {
		return resp, nil
	}
	if err := resp.Body.Close(); err != nil {
		return nil, fmt.Errorf("closing a watch: %w", err)
	}
	return gone(req, "the connection to the cluster was closed; it may have been restored from an older copy")
}

// watchKey identifies a watch.
func watchKey(req *http.Request, query url.Values) string {
	return strings.Join([]string{req.URL.Path, query.Get("fieldSelector"), query.Get("labelSelector"), req.Header.Get("Accept")}, "\n")
}

// begins reports whether a watch begins with the existing objects.
func begins(query url.Values) bool {
	version := query.Get("resourceVersion")
	return query.Get("sendInitialEvents") == "true" || version == "" || version == "0"
}

// continues records the begin of a watch, and reports for one that continues whether its
// connection is still the latest.
func (r *rewind) continues(key string, begins bool, before uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	begun, known := r.begun[key]
	if begins || !known { // unknown: the watch follows a list
		r.begun[key] = before
		return true
	}
	if begun == r.connections() {
		return true
	}
	delete(r.begun, key)
	return false
}

// gone returns the response for an expired resource version.
func gone(req *http.Request, message string) (*http.Response, error) {
	status := apierrors.NewResourceExpired(message).Status()
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	body, err := json.Marshal(status)
	if err != nil {
		return nil, fmt.Errorf("encoding: %w", err)
	}
	return &http.Response{
		Status: "410 Gone", StatusCode: http.StatusGone, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(string(body))),
		ContentLength: int64(len(body)), Request: req,
	}, nil
}
