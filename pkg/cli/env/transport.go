package env

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"time"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
)

// ClusterGroup is the API group of clusters.
const ClusterGroup = clusterv1alpha1.GroupName

// Paths that requests are compared with, or that are probed.
const (
	livez       = "/livez"
	clusterAPI  = "/apis/" + clusterv1alpha1.GroupName + "/" + "v1alpha1"
	policyAPI   = "/apis/" + policyv1alpha1.GroupName
	clusterName = "/apis/apiregistration.k8s.io/v1/apiservices/v1alpha1." + clusterv1alpha1.GroupName
)

// roundTripper limits how long the control plane may be silent, and finds out what it is.
type roundTripper struct {
	*connection
	limits
	next http.RoundTripper
	// path is that of the URL of the control plane.
	path string
}

var errUnanswered = errors.New("the server does not answer")

// WrappedRoundTripper lets client-go find the transport below.
func (t *roundTripper) WrappedRoundTripper() http.RoundTripper { return t.next }

// CancelRequest does nothing, since the contexts of requests end them. client-go's cache of discovery logs its absence.
func (*roundTripper) CancelRequest(*http.Request) {}

// RoundTrip implements http.RoundTripper. A request to a member, which goes through the control plane, may take as long as
// the control plane answers probes.
func (t *roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	if upgrades(req) {
		resp, err := t.next.RoundTrip(req)
		return resp, t.explain(req, err)
	}
	if t.flags != nil {
		t.looked.Do(func() { t.look(req) })
	}
	if err := t.failure(); err != nil {
		t.last.Store(err)
		return nil, err
	}
	if err := t.hanging(); err != nil && strings.HasPrefix(strings.TrimPrefix(req.URL.Path, t.path), clusterAPI) {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(req.Context())
	timer := time.AfterFunc(t.answer, func() {
		// The API server answers for an aggregated one that it has given up.
		if status := t.status(ctx, req, t.probePath(req)); status == 0 || status == http.StatusServiceUnavailable && t.aboutClusters(req) {
			cancel(errUnanswered)
		}
	})
	resp, err := t.next.RoundTrip(req.WithContext(ctx))
	timer.Stop()
	if err != nil {
		unanswered := errors.Is(context.Cause(ctx), errUnanswered) || t.limited && !t.answered.Load() && timedOut(ctx, err)
		cancel(nil)
		if unanswered {
			return nil, t.silent(req)
		}
		return nil, t.explain(req, err)
	}
	t.note(req, resp)
	resp.Body = &cancelingBody{ReadCloser: resp.Body, cancel: cancel}
	return resp, nil
}

// timedOut reports whether a request failed because its time is over. http.Client may end it a moment before its context.
func timedOut(ctx context.Context, err error) bool {
	return errors.Is(ctx.Err(), context.DeadlineExceeded) || ctx.Err() == nil && strings.HasPrefix(err.Error(), "net/http: request canceled")
}

// note records what a response says about the server.
func (t *roundTripper) note(req *http.Request, resp *http.Response) {
	t.answered.Store(true)
	if resp.StatusCode == http.StatusInternalServerError && t.flags != nil {
		t.notAdmitted(req.URL.Host)
	}
}

// upgrades reports whether a request becomes a stream. Its transport serves no other requests, such as probes, and keeps one
// connection; the requests before it have found out whether the server answers.
func upgrades(req *http.Request) bool {
	for _, suffix := range [...]string{"/exec", "/attach", "/portforward"} {
		if strings.HasSuffix(req.URL.Path, suffix) {
			return true
		}
	}
	return false
}

// look finds out, before the first request, whether the server is a control plane. What remains unknown is left to the
// requests.
func (t *roundTripper) look(req *http.Request) {
	ctx := req.Context()
	status := t.status(ctx, req, clusterAPI)
	switch status {
	case http.StatusNotFound:
	case http.StatusServiceUnavailable:
		_ = t.notServed(req.URL.Host, errors.New(http.StatusText(status)))
		return
	default:
		return
	}
	registered := t.status(ctx, req, clusterName)
	if registered != http.StatusOK && registered != http.StatusNotFound {
		registered = t.status(ctx, req, policyAPI) // users may not read APIServices
	}
	switch registered {
	case http.StatusOK:
		_ = t.notServed(req.URL.Host, errors.New(http.StatusText(status)))
	case http.StatusNotFound:
		_ = t.noControlPlane(req.URL.Host, errors.New(http.StatusText(status)))
	}
}

// probePath returns what is probed while a request is not answered: the aggregated API server for an object of its own.
func (t *roundTripper) probePath(req *http.Request) string {
	if t.aboutClusters(req) {
		return clusterAPI
	}
	return livez
}

// aboutClusters reports whether the aggregated API server itself answers a request.
func (t *roundTripper) aboutClusters(req *http.Request) bool {
	path := strings.TrimPrefix(req.URL.Path, t.path)
	return path == clusterAPI || strings.HasPrefix(path, clusterAPI+"/") && !strings.Contains(path, "/proxy/")
}

// silent explains a request that is not answered.
func (t *roundTripper) silent(req *http.Request) error {
	if t.aboutClusters(req) && t.status(context.WithoutCancel(req.Context()), req, livez) != 0 {
		failure := t.notServed(req.URL.Host, errUnanswered)
		t.hang(failure)
		return failure
	}
	what := "a cluster"
	if t.flags != nil {
		what = "a control plane"
	}
	failure := &ConnectionError{err: errUnanswered, message: fmt.Sprintf(
		"the server %s accepted the connection and did not answer within %s; check that it is the API server of %s and not overloaded",
		req.URL.Host, t.total, what)}
	t.fail(failure)
	t.last.Store(failure)
	return failure
}

func (t *roundTripper) explain(req *http.Request, err error) error {
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return err
	}
	failure := t.refused(req.URL.Host, err)
	t.last.Store(failure)
	return failure
}

// status returns the status code with which the server of a request answers a GET of a path, for the same user, or 0 if it
// does not answer in time.
func (t *roundTripper) status(ctx context.Context, req *http.Request, path string) int {
	limit := t.probe
	if path == livez {
		limit = t.alive
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	probe, err := http.NewRequestWithContext(ctx, http.MethodGet, req.URL.Scheme+"://"+req.URL.Host+t.path+path, http.NoBody) //nolint:gosec // the server of the request
	if err != nil {
		return 0
	}
	for name, values := range req.Header {
		if name == "Authorization" || name == "User-Agent" || strings.HasPrefix(name, "Impersonate-") {
			probe.Header[name] = values
		}
	}
	resp, err := t.next.RoundTrip(probe)
	if err != nil {
		return 0
	}
	t.answered.Store(true)
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20)) // keeps the connection
	_ = resp.Body.Close()
	return resp.StatusCode
}

// cancelingBody ends the context of its request when it is closed.
type cancelingBody struct {
	io.ReadCloser
	cancel context.CancelCauseFunc
}

// Close implements io.Closer.
func (b *cancelingBody) Close() error {
	err := b.ReadCloser.Close()
	b.cancel(nil)
	return err
}
