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

// rewind has everything read anew after the control plane was away. It may have been
// restored from a backup meanwhile: a watch that went on from the version of before
// would show nothing until the versions have caught up, and then only what changes.
// Neither can be seen from the version, since the new history may have grown beyond
// it. But a control plane that starts on other data closes every connection: a watch
// that goes on over another connection than the one that it began on is answered as
// one that is too old.
type rewind struct {
	base http.RoundTripper
	// connections counts those made so far.
	connections func() uint64

	mu sync.Mutex
	// begun is, for every watch, how many connections there were when it began.
	begun map[string]uint64
}

func newRewind(base http.RoundTripper, connections func() uint64) *rewind {
	return &rewind{base: base, connections: connections, begun: map[string]uint64{}}
}

// WrappedRoundTripper lets client-go find the transport below.
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
	if r.goesOn(key, begins(query), before) {
		return resp, nil
	}
	if err := resp.Body.Close(); err != nil {
		return nil, fmt.Errorf("closing a watch: %w", err)
	}
	return gone(req, "the control plane was away, and may have been restored from a backup")
}

// watchKey tells watches apart.
func watchKey(req *http.Request, query url.Values) string {
	return strings.Join([]string{req.URL.Path, query.Get("fieldSelector"), query.Get("labelSelector"), req.Header.Get("Accept")}, "\n")
}

// begins says whether a watch tells first what there is.
func begins(query url.Values) bool {
	version := query.Get("resourceVersion")
	return query.Get("sendInitialEvents") == "true" || version == "" || version == "0"
}

// goesOn notes where a watch begins, and says of one that goes on whether there was
// no other connection since.
func (r *rewind) goesOn(key string, begins bool, before uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	begun, known := r.begun[key]
	if begins || !known { // not known: a list was before it
		r.begun[key] = before
		return true
	}
	if begun == r.connections() {
		return true
	}
	delete(r.begun, key)
	return false
}

// gone is the answer of a server that does not remember a version any longer.
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
