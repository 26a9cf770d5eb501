package agent

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/connrotation"
	"k8s.io/utils/clock"
)

const (
	dialTimeout = 5 * time.Second
	// dialRetryTimeout is how long a request waits for an unreachable control plane before it
	// fails.
	dialRetryTimeout = 30 * time.Second
	// dialPause is the time between attempts to reach it.
	dialPause = 250 * time.Millisecond
	// pingAfter and pingTimeout detect a dead connection.
	pingAfter, pingTimeout = 10 * time.Second, 5 * time.Second
)

// plane is the connection to the control plane. Its client certificate can change
// while it is used. Requests wait while the control plane is not reachable, and continue
// as soon as it is reachable, not after an exponential backoff.
type plane struct {
	// path and context select the kubeconfig and its context.
	path, context string
	// config is what clients are made from.
	config *rest.Config
	dialer *connrotation.Dialer
	clock  clock.Clock
	// dial opens one connection.
	dial func(ctx context.Context, network, address string) (net.Conn, error)
	// dials counts the connections.
	dials atomic.Uint64

	mu sync.RWMutex
	// identity is nil when the kubeconfig has no client certificate.
	identity *tls.Certificate
	// unreachableSince is when the first connection failed, zero while the control plane
	// is reachable.
	unreachableSince time.Time
	log              logr.Logger
}

// newPlane returns the connection to the control plane of a kubeconfig.
func newPlane(path, kubecontext, userAgent string, clk clock.Clock) (*plane, error) {
	p := &plane{path: path, context: kubecontext, clock: clk, log: logr.Discard()}
	p.dial = (&net.Dialer{Timeout: dialTimeout, KeepAlive: 3 * dialTimeout}).DialContext
	p.dialer = connrotation.NewDialer(p.dialWithRetry)
	cfg, err := p.load()
	if err != nil {
		return nil, err
	}
	cfg.UserAgent = userAgent
	cfg.Wrap(func(base http.RoundTripper) http.RoundTripper { return newRewind(base, p.dials.Load) })
	identity, err := identityOf(cfg)
	if err != nil {
		return nil, err
	}
	if identity == nil {
		cfg.Dial = p.dialer.DialContext
		p.config = cfg
		return p, nil
	}
	p.identity = identity
	p.config, err = p.withIdentity(cfg)
	return p, err
}

// load reads the kubeconfig.
func (p *plane) load() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = p.path
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: p.context}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("loading the kubeconfig of the control plane (--karmada-kubeconfig): %w", err)
	}
	return cfg, nil
}

// identityOf returns the client certificate of a configuration, or nil.
func identityOf(cfg *rest.Config) (*tls.Certificate, error) {
	cert, key := cfg.CertData, cfg.KeyData
	for _, f := range []struct {
		data *[]byte
		path string
	}{{&cert, cfg.CertFile}, {&key, cfg.KeyFile}} {
		if len(*f.data) > 0 || f.path == "" {
			continue
		}
		data, err := os.ReadFile(f.path)
		if err != nil {
			return nil, fmt.Errorf("reading the client certificate of the control plane's kubeconfig: %w", err)
		}
		*f.data = data
	}
	if len(cert) == 0 && len(key) == 0 {
		return nil, nil
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("reading the client certificate of the control plane's kubeconfig: %w", err)
	}
	return &pair, nil
}

// withIdentity returns a configuration whose connections use the current certificate
// of the plane.
func (p *plane) withIdentity(cfg *rest.Config) (*rest.Config, error) {
	own := rest.CopyConfig(cfg)
	own.CertData, own.CertFile, own.KeyData, own.KeyFile = nil, "", nil, ""
	tlsConfig, err := rest.TLSConfigFor(own)
	if err != nil {
		return nil, fmt.Errorf("reading the authority of the control plane's kubeconfig: %w", err)
	}
	if tlsConfig == nil {
		tlsConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	tlsConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		p.mu.RLock()
		defer p.mu.RUnlock()
		return p.identity, nil
	}
	proxy := http.ProxyFromEnvironment
	if cfg.Proxy != nil {
		proxy = cfg.Proxy
	}
	own.TLSClientConfig = rest.TLSClientConfig{}
	own.Proxy = nil
	own.Transport = &http.Transport{
		Proxy: proxy, TLSClientConfig: tlsConfig, TLSHandshakeTimeout: 2 * dialTimeout,
		DialContext: p.dialer.DialContext, ForceAttemptHTTP2: true, IdleConnTimeout: 90 * time.Second,
		HTTP2: &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
	}
	return own, nil
}

// dialWithRetry dials until it succeeds, for dialRetryTimeout at most.
func (p *plane) dialWithRetry(ctx context.Context, network, address string) (net.Conn, error) {
	began := p.clock.Now()
	for {
		conn, err := p.dial(ctx, network, address)
		if err == nil {
			p.dials.Add(1)
			p.setReachable()
			return conn, nil
		}
		if ctx.Err() != nil {
			return nil, err
		}
		p.setUnreachable(err)
		if p.clock.Since(began) >= dialRetryTimeout {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), err)
		case <-p.clock.After(dialPause):
		}
	}
}

// setUnreachable records, and logs once, that the control plane is not reachable.
func (p *plane) setUnreachable(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.unreachableSince.IsZero() {
		p.unreachableSince = p.clock.Now()
		p.log.Info("The control plane is not reachable; the objects in the member stay unchanged until it is", "err", err.Error())
	}
}

func (p *plane) setReachable() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.unreachableSince.IsZero() {
		p.log.Info("The control plane is reachable again", "after", p.clock.Since(p.unreachableSince).Round(time.Second).String())
		p.unreachableSince = time.Time{}
	}
}

// setLogger sets the logger for changes of the connection.
func (p *plane) setLogger(log logr.Logger) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.log = log
}

// use replaces the client certificate and closes the existing connections. It returns
// false if the certificate is the current one.
func (p *plane) use(identity *tls.Certificate) bool {
	p.mu.Lock()
	same := p.identity == nil || identity == nil || sameChain(p.identity, identity)
	if !same {
		p.identity = identity
	}
	p.mu.Unlock()
	if !same {
		p.dialer.CloseAll()
	}
	return !same
}

func sameChain(a, b *tls.Certificate) bool {
	return slices.EqualFunc(a.Certificate, b.Certificate, bytes.Equal)
}

// follow uses the certificate of the kubeconfig whenever the file has another one,
// until ctx ends: another replica may have renewed it, or a user
// registered the cluster again.
func (p *plane) follow(ctx context.Context, every time.Duration) {
	if p.identity == nil {
		return
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.clock.After(every):
		}
		cfg, err := p.load()
		if err != nil {
			continue // it is being replaced, or does not exist; keep the current one
		}
		if identity, err := identityOf(cfg); err == nil && newerThan(identity, p.current()) && p.use(identity) {
			p.log.Info("Took over the client certificate of the kubeconfig")
		}
	}
}

// current is the client certificate in use.
func (p *plane) current() *tls.Certificate {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.identity
}

// newerThan reports whether a certificate is valid for longer than another one: a
// file that lags behind must not bring back one that was renewed.
func newerThan(a, b *tls.Certificate) bool {
	_, endA, errA := validity(a)
	_, endB, errB := validity(b)
	return errA == nil && (errB != nil || endA.After(endB))
}
