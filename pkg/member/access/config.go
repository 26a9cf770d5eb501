package access

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
)

// Timeout bounds a request to a member, except watches.
const Timeout = 32 * time.Second

const (
	dialTimeout      = 5 * time.Second
	handshakeTimeout = 10 * time.Second
	idleConnections  = 25
)

// config returns the settings without the token.
func config(cluster *clusterv1alpha1.Cluster, credentials Credentials) (*rest.Config, error) {
	cfg := &rest.Config{Host: cluster.Spec.APIEndpoint, QPS: -1}
	if cluster.Spec.InsecureSkipTLSVerification {
		cfg.Insecure = true
	} else {
		cfg.CAData = credentials.CA
	}
	if cluster.Spec.ProxyURL != "" {
		proxy, err := url.Parse(cluster.Spec.ProxyURL)
		if err != nil {
			return nil, fmt.Errorf("parsing the proxy url of cluster %s: %w", cluster.Name, err)
		}
		cfg.Proxy = http.ProxyURL(proxy)
		if header := proxyHeader(cluster.Spec.ProxyHeader); header != nil {
			cfg.WrapTransport = withProxyHeader(header)
		}
	}
	return cfg, nil
}

// proxyHeader returns the header for the proxy. Values are lists separated by commas.
func proxyHeader(values map[string]string) http.Header {
	if len(values) == 0 {
		return nil
	}
	header := http.Header{}
	for key, list := range values {
		for value := range strings.SplitSeq(list, ",") {
			header.Add(key, value)
		}
	}
	return header
}

// withProxyHeader sets the header in a copy of the transport, which clients with equal
// TLS settings share.
func withProxyHeader(header http.Header) func(http.RoundTripper) http.RoundTripper {
	return func(rt http.RoundTripper) http.RoundTripper {
		below := rt
		for {
			if transport, ok := below.(*http.Transport); ok {
				own := transport.Clone()
				own.ProxyConnectHeader = header
				return own
			}
			wrapper, ok := below.(utilnet.RoundTripperWrapper)
			if !ok {
				return rt
			}
			below = wrapper.WrappedRoundTripper()
		}
	}
}

// transport returns a transport that is not shared between clusters, so that its
// connections can be closed with the cluster. dials counts them.
func transport(cfg *rest.Config, dials *atomic.Uint64) (*http.Transport, error) {
	tlsConfig, err := rest.TLSConfigFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("reading the certificates: %w", err)
	}
	proxy := http.ProxyFromEnvironment
	if cfg.Proxy != nil {
		proxy = cfg.Proxy
	}
	return utilnet.SetTransportDefaults(&http.Transport{
		Proxy:               proxy,
		TLSClientConfig:     tlsConfig,
		TLSHandshakeTimeout: handshakeTimeout,
		MaxIdleConnsPerHost: idleConnections,

		MaxResponseHeaderBytes: maxHeader,
		DialContext:            counted(nil, dials),
	}), nil
}

// dialer opens a connection.
type dialer = func(ctx context.Context, network, address string) (net.Conn, error)

// counted returns a dialer that counts the connections it opens. Default: one with the
// timeouts of this package.
func counted(dial dialer, dials *atomic.Uint64) dialer {
	if dial == nil {
		dial = (&net.Dialer{Timeout: dialTimeout, KeepAlive: dialTimeout * 3}).DialContext
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err == nil {
			dials.Add(1)
		}
		return conn, err
	}
}
