package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// acceptMetadata asks for the metadata of a list only.
const acceptMetadata = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json"

// rewind finds out that the control plane was restored from a backup. Its versions
// went back then, and a watch that goes on from a version of the time after the
// backup would show nothing until the versions have caught up, which may take for
// ever. Such a watch is answered as one that is too old, after which everything is
// listed anew.
type rewind struct{ base http.RoundTripper }

func withRewind(base http.RoundTripper) http.RoundTripper { return &rewind{base: base} }

// WrappedRoundTripper lets client-go find the transport below.
func (r *rewind) WrappedRoundTripper() http.RoundTripper { return r.base }

// RoundTrip implements http.RoundTripper.
func (r *rewind) RoundTrip(req *http.Request) (*http.Response, error) {
	query := req.URL.Query()
	version := query.Get("resourceVersion")
	if req.Method != http.MethodGet || query.Get("watch") != "true" && query.Get("watch") != "1" || version == "" || version == "0" || query.Get("sendInitialEvents") == "true" {
		return r.base.RoundTrip(req)
	}
	now, err := r.current(req)
	if err != nil {
		return r.base.RoundTrip(req) // what is wrong will be told there too
	}
	if order, err := resourceversion.CompareResourceVersion(version, now); err != nil || order <= 0 {
		return r.base.RoundTrip(req)
	}
	return gone(req, fmt.Sprintf("the control plane is at version %s, before %s: it was restored from a backup", now, version))
}

// current asks for the version of what is watched.
func (r *rewind) current(watch *http.Request) (string, error) {
	ctx, cancel := context.WithTimeout(watch.Context(), 2*dialTimeout)
	defer cancel()
	req := watch.Clone(ctx)
	query := watch.URL.Query()
	for _, key := range []string{"watch", "resourceVersion", "resourceVersionMatch", "sendInitialEvents", "allowWatchBookmarks", "timeoutSeconds", "timeout"} {
		query.Del(key)
	}
	query.Set("limit", "1")
	req.URL.RawQuery = query.Encode()
	req.Header.Set("Accept", acceptMetadata)
	resp, err := r.base.RoundTrip(req)
	if err != nil {
		return "", fmt.Errorf("asking for the version: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("asking for the version: %s", resp.Status)
	}
	var list struct {
		Metadata metav1.ListMeta `json:"metadata"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&list); err != nil {
		return "", fmt.Errorf("reading the version: %w", err)
	}
	return list.Metadata.ResourceVersion, nil
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
