package proxy

import (
	"context"
	"errors"
	"fmt"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/registry/rest"
	restclient "k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/streaming/pkg/httpstream"
)

// forward returns the handler that carries the inner request to a member in the
// name of the requester. modify changes answers that are no upgrades: nil for none.
func forward(m *member, in Inner, requester user.Info, responder rest.Responder, modify func(*http.Response) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		upgrade := httpstream.IsUpgradeRequest(req)
		p := &httputil.ReverseProxy{
			Transport:  m.plain,
			BufferPool: m.buffers,
			ErrorLog:   log.New(verbose{}, "", 0),
			Rewrite: func(r *httputil.ProxyRequest) {
				r.Out.URL = in.url(m.endpoint, r.In)
				r.Out.Host = ""
				forwardedFor(r)
				impersonate(r.Out.Header, requester)
				r.Out.Header.Set("Authorization", "bearer "+m.token)
				r.Out.Header.Del("Cookie") // of the control plane's address, not of the member
			},
			ErrorHandler: func(_ http.ResponseWriter, req *http.Request, err error) {
				respondError(req.Context(), responder, m.name, err)
			},
		}
		if upgrade {
			p.Transport, p.ModifyResponse = m.upgrade, checkUpgrade
		} else {
			p.ModifyResponse = func(r *http.Response) error {
				if err := keepRedirect(r, m, req); err != nil || modify == nil {
					return err
				}
				return modify(r)
			}
		}
		defer endQuietly(req.Context())
		p.ServeHTTP(w, req)
	})
}

// verbose logs what went wrong while an answer was copied. The client sees it, so
// it is a detail here.
type verbose struct{}

// Write implements io.Writer.
func (verbose) Write(line []byte) (int, error) {
	klog.V(4).InfoS("Copying an answer of a member", "problem", strings.TrimSpace(string(line)))
	return len(line), nil
}

// endQuietly ends the copying of an answer when the client has gone. Where the
// member went, the client must see that the answer is not whole, and the panic
// that says so goes on.
func endQuietly(ctx context.Context) {
	if r := recover(); r != nil && (r != any(http.ErrAbortHandler) || ctx.Err() == nil) {
		panic(r)
	}
}

// impersonate sets the headers that name the requester. What the client sent of
// the kind is removed.
func impersonate(header http.Header, requester user.Info) {
	maps.DeleteFunc(header, func(name string, _ []string) bool { return strings.HasPrefix(name, "Impersonate-") })
	header.Set("Impersonate-User", requester.GetName())
	for _, group := range namedGroups(requester) {
		header.Add("Impersonate-Group", group)
	}
}

// namedGroups returns the groups that a request in the name of the requester must name. API servers add those that they give
// to everybody, and to a ServiceAccount without named groups those that follow from its name: they need not be granted to
// the impersonator, which could use them with any user.
func namedGroups(requester user.Info) []string {
	groups := sets.New(requester.GetGroups()...).Delete(user.AllAuthenticated, user.AllUnauthenticated)
	namespace, _, err := serviceaccount.SplitUsername(requester.GetName())
	if err == nil && groups.Equal(sets.New(serviceaccount.MakeGroupNames(namespace)...)) {
		return nil
	}
	return sets.List(groups)
}

// impersonateConstrained names the requester to an API server that lets this server impersonate users for some verbs only:
// nobody is impersonated as a member of system:masters.
func impersonateConstrained(header http.Header, requester user.Info) {
	impersonate(header, requester)
	groups := slices.DeleteFunc(header["Impersonate-Group"], func(group string) bool { return group == user.SystemPrivilegedGroup })
	header["Impersonate-Group"] = groups
	if len(groups) == 0 {
		delete(header, "Impersonate-Group")
	}
}

// forwardedFor adds the client's address to those the request came through.
func forwardedFor(r *httputil.ProxyRequest) {
	chain := r.In.Header["X-Forwarded-For"]
	if host, _, err := net.SplitHostPort(r.In.RemoteAddr); err == nil {
		chain = append(slices.Clip(chain), host)
	}
	if len(chain) > 0 {
		r.Out.Header.Set("X-Forwarded-For", strings.Join(chain, ", "))
	}
}

// upgradeError is an answer to an upgrade that is neither one nor a refusal.
type upgradeError struct{ code int }

func (e *upgradeError) Error() string {
	return fmt.Sprintf("invalid upgrade response: status code %d", e.code)
}

// redirectError is a redirect that leads away from the member.
type redirectError struct{ code int }

func (e *redirectError) Error() string {
	return fmt.Sprintf("it answered with a redirect (%d) to another server, which is not passed on", e.code)
}

// keepRedirect makes a redirect within the member one within the proxy. Others are
// errors: the client would follow them with its credentials for the control plane.
func keepRedirect(r *http.Response, m *member, req *http.Request) error {
	r.Header.Del("Set-Cookie") // would be one of the control plane's address
	if r.StatusCode < http.StatusMultipleChoices || r.StatusCode >= http.StatusBadRequest || r.StatusCode == http.StatusNotModified {
		return nil
	}
	for _, name := range []string{"Refresh", "Content-Location"} {
		r.Header.Del(name)
	}
	location := r.Header.Get("Location")
	if location == "" {
		return nil
	}
	to, err := r.Request.URL.Parse(location)
	if err != nil || to.Scheme != m.endpoint.Scheme || to.Host != m.endpoint.Host || to.User != nil {
		return &redirectError{code: r.StatusCode}
	}
	inside, ok := strings.CutPrefix(to.EscapedPath(), strings.TrimRight(m.endpoint.EscapedPath(), "/"))
	if !ok || !strings.HasPrefix(inside, "/") {
		return &redirectError{code: r.StatusCode}
	}
	outer := beforeProxy(req)
	if outer == "" {
		return &redirectError{code: r.StatusCode}
	}
	within := url.URL{RawQuery: to.RawQuery, Fragment: to.Fragment}
	if within.Path, err = url.PathUnescape(outer + inside); err != nil {
		return &redirectError{code: r.StatusCode}
	}
	within.RawPath = outer + inside
	r.Header.Set("Location", within.String())
	return nil
}

func checkUpgrade(r *http.Response) error {
	if r.StatusCode != http.StatusSwitchingProtocols && r.StatusCode < http.StatusBadRequest {
		return &upgradeError{code: r.StatusCode}
	}
	return nil
}

// respondError answers a request that did not get through.
func respondError(ctx context.Context, responder rest.Responder, cluster string, err error) {
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		return // the client is gone
	}
	if e := (*upgradeError)(nil); errors.As(err, &e) {
		responder.Error(err)
		return
	}
	if e := (*redirectError)(nil); errors.As(err, &e) {
		responder.Error(status(http.StatusBadGateway, metav1.StatusReasonServiceUnavailable, fmt.Sprintf("reaching cluster %s: %v", cluster, err)))
		return
	}
	responder.Error(unreachable(cluster, err))
}

// unreachable is the API error for a member that cannot be reached.
func unreachable(cluster string, err error) error {
	status := metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusServiceUnavailable, Reason: metav1.StatusReasonServiceUnavailable,
		Message: fmt.Sprintf("reaching cluster %s: %v", cluster, err),
	}
	if errors.Is(err, context.DeadlineExceeded) || utilnet.IsTimeout(err) {
		status.Code, status.Reason = http.StatusGatewayTimeout, metav1.StatusReasonTimeout
	}
	return &apierrors.StatusError{ErrStatus: status}
}

// buffers are what bodies are copied with.
type buffers struct{ pool sync.Pool }

// Get implements httputil.BufferPool.
func (b *buffers) Get() []byte {
	if free, ok := b.pool.Get().(*[]byte); ok {
		return *free
	}
	return make([]byte, 32<<10)
}

// Put implements httputil.BufferPool.
func (b *buffers) Put(free []byte) { b.pool.Put(&free) }

// ControlPlane carries requests that belong to no member to the control plane's
// API server.
type ControlPlane struct {
	base      *url.URL
	transport http.RoundTripper
}

// NewControlPlane returns the way to the control plane's API server.
func NewControlPlane(config *restclient.Config) (*ControlPlane, error) {
	base, _, err := restclient.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("parsing the address of the control plane: %w", err)
	}
	transport, err := restclient.TransportFor(config)
	if err != nil {
		return nil, fmt.Errorf("preparing the connection to the control plane: %w", err)
	}
	return &ControlPlane{base: base, transport: transport}, nil
}

// Handler carries the inner request in the name of the requester. The server's
// own rights would let everybody who may query all clusters read everything here.
func (c *ControlPlane) Handler(in Inner, requester user.Info, responder rest.Responder) http.Handler {
	return &httputil.ReverseProxy{
		Transport: c.transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL = in.url(c.base, r.In)
			r.Out.Host = ""
			forwardedFor(r)
			impersonateConstrained(r.Out.Header, requester)
			r.Out.Header.Del("Authorization")
			r.Out.Header.Del("Cookie")
		},
		ErrorHandler: func(_ http.ResponseWriter, req *http.Request, err error) {
			respondError(req.Context(), responder, "karmada", err)
		},
	}
}
