package proxy

import (
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/registry/rest"
	restclient "k8s.io/client-go/rest"
)

// controlPlane carries requests that belong to no member to the control plane's
// API server.
type controlPlane struct {
	base      *url.URL
	transport http.RoundTripper
}

func newControlPlane(config *restclient.Config) (*controlPlane, error) {
	base, _, err := restclient.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("parsing the address of the control plane: %w", err)
	}
	transport, err := restclient.TransportFor(config)
	if err != nil {
		return nil, fmt.Errorf("preparing the connection to the control plane: %w", err)
	}
	return &controlPlane{base: base, transport: transport}, nil
}

// handler carries the inner request in the name of the requester. The server's
// own rights would let everybody who may query all clusters read everything here.
func (c *controlPlane) handler(in inner, requester user.Info, responder rest.Responder) http.Handler {
	return &httputil.ReverseProxy{
		Transport: c.transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL = in.url(c.base, r.In)
			r.Out.Host = ""
			forwardedFor(r)
			impersonate(r.Out.Header, requester)
			r.Out.Header.Del("Authorization")
			r.Out.Header.Del("Cookie")
		},
		ErrorHandler: func(_ http.ResponseWriter, req *http.Request, err error) {
			respondError(req.Context(), responder, "karmada", err)
		},
	}
}
