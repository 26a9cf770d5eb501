package proxy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
	"github.com/karmada-toolkit/karmada/pkg/member/lifetime"
)

// way is everything that distinguishes connections. Ways can be compared.
type way struct {
	endpoint, proxyURL, headers string
	// ca counts with privateCA; else the roots of the system do.
	ca                  string
	privateCA, insecure bool
}

// transports are the connections of a way.
type transports struct {
	plain, upgrade *http.Transport
	// guarded is plain for requests whose answers are decoded.
	guarded http.RoundTripper
}

// pool keeps connections to clusters open from one request to the next.
type pool struct {
	*lifetime.Registry[transports]
	minTLSVersion uint16
}

func newPool(minTLSVersion uint16) *pool {
	if minTLSVersion == 0 {
		minTLSVersion = tls.VersionTLS12
	}
	return &pool{minTLSVersion: minTLSVersion, Registry: lifetime.New(nil, transports.close)}
}

// get returns the connections of a cluster. When the way to it changed, the old
// ones end with their last request.
func (p *pool) get(ctx context.Context, cluster *clusterv1alpha1.Cluster, w way) (transports, error) {
	proxy := http.ProxyFromEnvironment
	if w.proxyURL != "" {
		u, err := url.Parse(w.proxyURL)
		if err != nil {
			return transports{}, fmt.Errorf("parsing the proxy URL: %w", err)
		}
		proxy = http.ProxyURL(u)
	}
	t, ok := p.Open(ctx, cluster, w, func() transports { return p.dial(w, proxy, cluster.Spec.ProxyHeader) })
	if !ok {
		return transports{}, errors.New("the server is stopping")
	}
	return t, nil
}

func (t transports) close() {
	t.plain.CloseIdleConnections()
	t.upgrade.CloseIdleConnections()
}

func (p *pool) dial(w way, proxy func(*http.Request) (*url.URL, error), headers map[string]string) transports {
	config := &tls.Config{MinVersion: p.minTLSVersion, InsecureSkipVerify: w.insecure} //nolint:gosec // the spec of the cluster sets it
	if w.privateCA && !w.insecure {
		config.RootCAs = x509.NewCertPool()
		config.RootCAs.AppendCertsFromPEM([]byte(w.ca))
	}
	out := transports{plain: newTransport(config, true), upgrade: newTransport(config.Clone(), false)}
	out.plain.Proxy = proxy
	out.guarded = access.GuardTransport(w.endpoint, out.plain)
	if w.proxyURL != "" {
		out.upgrade.Proxy = proxy
		out.plain.ProxyConnectHeader, out.upgrade.ProxyConnectHeader = connectHeader(headers), connectHeader(headers)
	}
	return out
}

// newTransport returns a transport. Upgrades exist in HTTP/1 only.
func newTransport(config *tls.Config, http2 bool) *http.Transport {
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(http2)
	dialer := &net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}
	return &http.Transport{
		DialContext:           dialer.DialContext,
		TLSClientConfig:       config,
		TLSHandshakeTimeout:   10 * time.Second,
		Protocols:             protocols,
		MaxIdleConnsPerHost:   64,
		IdleConnTimeout:       90 * time.Second,
		ExpectContinueTimeout: time.Second,
		// Members choose the headers of their answers.
		MaxResponseHeaderBytes: 256 << 10,
		// A connection that has died is noticed by pings.
		HTTP2: &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
	}
}

// connectHeader returns the headers for an upstream proxy. The case of names is
// kept; a value may hold several, separated by commas.
func connectHeader(headers map[string]string) http.Header {
	out := http.Header{}
	for name, values := range headers {
		out[name] = strings.Split(values, ",")
	}
	return out
}

func headerKey(headers map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		fmt.Fprintf(&b, "%q=%q;", name, headers[name])
	}
	return b.String()
}
