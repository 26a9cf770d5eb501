package proxy

import (
	"context"
	"net/http"
	"net/url"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	searchv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/search/v1alpha1"
)

// Inner is the request that a request to the proxy carries.
type Inner struct {
	// path is decoded; rawPath is how it was written, where that differs.
	path, rawPath string
	// query is nil when that of the outer request counts.
	query *string
}

type innerKey struct{}

// InnerFrom returns the inner request that KeepInner kept.
func InnerFrom(ctx context.Context) (Inner, bool) {
	in, ok := ctx.Value(innerKey{}).(Inner)
	return in, ok
}

// KeepInner keeps the inner request of requests to the proxy as it was written.
// The handlers of subresources give a path that is decoded, and refuse dry runs,
// which are the member's to decide on.
func KeepInner(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		info, ok := genericrequest.RequestInfoFrom(req.Context())
		if !ok || !toProxy(info) {
			handler.ServeHTTP(w, req)
			return
		}
		query := req.URL.RawQuery
		in := Inner{path: afterProxy(req.URL.Path), query: &query}
		if raw := afterProxy(req.URL.EscapedPath()); raw != (&url.URL{Path: in.path}).EscapedPath() {
			in.rawPath = raw
		}
		req = req.WithContext(context.WithValue(req.Context(), innerKey{}, in))
		if values := req.URL.Query(); values.Has("dryRun") {
			values.Del("dryRun")
			u := *req.URL
			u.RawQuery = values.Encode()
			req.URL = &u
		}
		handler.ServeHTTP(w, req)
	})
}

// toProxy reports whether a request is one to a proxy: clusters/NAME/proxy, or proxying/NAME/proxy of the role search.
func toProxy(info *genericrequest.RequestInfo) bool {
	if !info.IsResourceRequest || info.Subresource != "proxy" {
		return false
	}
	return info.APIGroup == clusterv1alpha1.GroupName && info.Resource == "clusters" ||
		info.APIGroup == searchv1alpha1.GroupName && info.Resource == "proxying"
}

// afterProxy returns what follows /apis/<group>/<version>/<resource>/<name>/proxy.
func afterProxy(p string) string {
	parts := strings.SplitN(strings.TrimPrefix(p, "/"), "/", 7)
	if len(parts) < 7 {
		return ""
	}
	return "/" + parts[6]
}

// beforeProxy returns the path of the proxy that a request was sent to, as it was
// written: /apis/<group>/<version>/<resource>/<name>/proxy. It is empty for other paths.
func beforeProxy(req *http.Request) string {
	parts := strings.SplitN(strings.TrimPrefix(req.URL.EscapedPath(), "/"), "/", 7)
	if len(parts) < 6 || parts[5] != "proxy" {
		return ""
	}
	return "/" + strings.Join(parts[:6], "/")
}

// url returns the URL of the inner request below a base URL.
func (in Inner) url(base *url.URL, outer *http.Request) *url.URL {
	u := *base
	u.Path = join(base.Path, in.path)
	u.RawPath = ""
	if in.rawPath != "" {
		u.RawPath = join(base.EscapedPath(), in.rawPath)
	}
	u.RawQuery = outer.URL.RawQuery
	if in.query != nil {
		u.RawQuery = *in.query
	}
	return &u
}

// join puts a path below another one, which it cannot leave. A slash at the end
// stays.
func join(base, p string) string {
	joined := path.Join("/", base, path.Clean("/"+p))
	if strings.HasSuffix(p, "/") && joined != "/" {
		joined += "/"
	}
	return joined
}

// Query returns the query of the inner request.
func (in Inner) Query(outer *http.Request) url.Values {
	return in.url(&url.URL{}, outer).Query()
}

// WithQuery returns the request with another query.
func (in Inner) WithQuery(query url.Values) Inner {
	text := query.Encode()
	in.query = &text
	return in
}

// Path returns the decoded path.
func (in Inner) Path() string { return in.path }

// NewInner returns a request for a decoded path.
func NewInner(path string) Inner { return Inner{path: path} }

// Info returns the attributes of the inner request.
func (in Inner) Info(outer *http.Request) (*genericrequest.RequestInfo, error) {
	req := outer.Clone(outer.Context())
	req.URL = in.url(&url.URL{}, outer)
	resolver := genericrequest.RequestInfoFactory{
		APIPrefixes:          sets.NewString("api", "apis"),
		GrouplessAPIPrefixes: sets.NewString("api"),
	}
	return resolver.NewRequestInfo(req)
}

// LongRunning extends a check for requests without a time limit by those that
// come through the proxy. What counts is the inner request.
func LongRunning(next genericrequest.LongRunningRequestCheck) genericrequest.LongRunningRequestCheck {
	subresources := sets.New("attach", "exec", "proxy", "log", "portforward")
	return func(req *http.Request, info *genericrequest.RequestInfo) bool {
		if !toProxy(info) {
			return next(req, info)
		}
		in, err := Inner{path: afterProxy(req.URL.Path)}.Info(req)
		if err != nil {
			return false
		}
		return in.Verb == "watch" || in.IsResourceRequest && subresources.Has(in.Subresource)
	}
}
