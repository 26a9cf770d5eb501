package proxy

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// way is everything that distinguishes connections. Ways can be compared.
type way struct {
	endpoint, proxyURL, headers string
	// ca counts with privateCA; else the roots of the system do.
	ca                  string
	privateCA, insecure bool
}

// transports are the connections of a way.
type transports struct{ plain, upgrade *http.Transport }

// pool keeps connections to clusters open from one request to the next.
type pool struct {
	minTLSVersion uint16

	mu      sync.Mutex
	entries map[string]entry
}

type entry struct {
	way        way
	transports transports
}

func newPool(minTLSVersion uint16) *pool {
	if minTLSVersion == 0 {
		minTLSVersion = tls.VersionTLS12
	}
	return &pool{minTLSVersion: minTLSVersion, entries: map[string]entry{}}
}

// get returns the connections of a cluster. When the way to it changed, the old
// ones end with their last request.
func (p *pool) get(cluster string, w way, headers map[string]string) (transports, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e, ok := p.entries[cluster]; ok {
		if e.way == w {
			return e.transports, nil
		}
		e.transports.close()
		delete(p.entries, cluster)
	}
	t, err := p.dial(w, headers)
	if err != nil {
		return transports{}, err
	}
	p.entries[cluster] = entry{way: w, transports: t}
	return t, nil
}

// keep forgets the connections of all clusters but those named.
func (p *pool) keep(clusters func(string) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, e := range p.entries {
		if !clusters(name) {
			e.transports.close()
			delete(p.entries, name)
		}
	}
}

func (p *pool) close() { p.keep(func(string) bool { return false }) }

func (t transports) close() {
	t.plain.CloseIdleConnections()
	t.upgrade.CloseIdleConnections()
}

func (p *pool) dial(w way, headers map[string]string) (transports, error) {
	config := &tls.Config{MinVersion: p.minTLSVersion, InsecureSkipVerify: w.insecure} //nolint:gosec // the spec of the cluster sets it
	if w.privateCA && !w.insecure {
		config.RootCAs = x509.NewCertPool()
		config.RootCAs.AppendCertsFromPEM([]byte(w.ca))
	}
	plain, upgrade := newTransport(config, true), newTransport(config.Clone(), false)
	plain.Proxy = http.ProxyFromEnvironment
	if w.proxyURL != "" {
		u, err := url.Parse(w.proxyURL)
		if err != nil {
			return transports{}, fmt.Errorf("parsing the proxy URL: %w", err)
		}
		for _, t := range []*http.Transport{plain, upgrade} {
			t.Proxy, t.ProxyConnectHeader = http.ProxyURL(u), connectHeader(headers)
		}
	}
	return transports{plain: plain, upgrade: upgrade}, nil
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
