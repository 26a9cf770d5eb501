package kube

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/connrotation"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// reloadInterval is the time between two reads of a kubeconfig.
const reloadInterval = 10 * time.Second

// CredentialsOptions configure Credentials.
type CredentialsOptions struct {
	// Load reads the kubeconfig. Required.
	Load func() (*rest.Config, error)
	// Accept reports whether a client certificate of the kubeconfig replaces the current one, which differs. Default: always.
	Accept func(fresh, current *tls.Certificate) bool
	// Dial opens connections. Default: as client-go.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// HTTP2 replaces settings of HTTP/2 connections. Default: as client-go.
	HTTP2 *http.HTTP2Config
	Clock clock.Clock
}

// Credentials are the client certificate and the authorities of a kubeconfig, and the transports that use them. They follow
// the kubeconfig while Run runs. Other settings, such as tokens, are those of the first read.
type Credentials struct {
	// Config is what clients are made from. It has the first certificates; its transports have the current ones.
	Config  *rest.Config
	options CredentialsOptions
	server  string
	// connections are those of all transports.
	connections *connrotation.ConnectionTracker

	mu sync.Mutex
	// certificate is nil if the kubeconfig has none.
	certificate atomic.Pointer[tls.Certificate]
	// authorities are in PEM form, empty for those of the system, and roots the same, or nil.
	authorities []byte
	roots       *x509.CertPool
	// superseded are the authorities and first certificates that others given to Use and UseAuthorities replaced, until the
	// kubeconfig has the current ones: it may lag behind.
	superseded [][]byte
	transports []weak.Pointer[transport]
}

// transport is that of the clients with the same settings.
type transport struct {
	// below is made by client-go with the first certificates, and base the end of its chain. Nothing is sent over it.
	below   http.RoundTripper
	base    *http.Transport
	current atomic.Pointer[http.Transport]
}

// NewCredentials reads a kubeconfig.
func NewCredentials(o CredentialsOptions) (*Credentials, error) {
	c := &Credentials{options: o, connections: connrotation.NewConnectionTracker()}
	var err error
	if c.Config, err = o.Load(); err != nil {
		return nil, err
	}
	certificate, roots, err := certificatesOf(c.Config)
	if err != nil {
		return nil, err
	}
	c.certificate.Store(certificate)
	c.server, c.roots, c.authorities = c.Config.Host, roots, c.Config.CAData
	if c.rotates() || o.Dial != nil {
		c.Config.Wrap(c.wrap)
	}
	return c, nil
}

// rotates reports whether there is anything that can change.
func (c *Credentials) rotates() bool { return c.Certificate() != nil || c.roots != nil }

// certificatesOf returns the client certificate and the authorities of a configuration, nil if it has none. It reads them into
// the configuration, so that client-go does not follow the files.
func certificatesOf(cfg *rest.Config) (*tls.Certificate, *x509.CertPool, error) {
	if err := rest.LoadTLSFiles(cfg); err != nil {
		return nil, nil, fmt.Errorf("reading the certificates of the kubeconfig for %s: %w", cfg.Host, err)
	}
	var roots *x509.CertPool
	if len(cfg.CAData) > 0 {
		if roots = x509.NewCertPool(); !roots.AppendCertsFromPEM(cfg.CAData) {
			return nil, nil, fmt.Errorf("reading the authorities of the kubeconfig for %s: no certificate in PEM form", cfg.Host)
		}
	}
	if len(cfg.CertData) == 0 && len(cfg.KeyData) == 0 {
		return nil, roots, nil
	}
	certificate, err := tls.X509KeyPair(cfg.CertData, cfg.KeyData)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the client certificate of the kubeconfig for %s: %w", cfg.Host, err)
	}
	return &certificate, roots, nil
}

// Certificate returns the client certificate in use, nil if there is none.
func (c *Credentials) Certificate() *tls.Certificate { return c.certificate.Load() }

// Leaf returns the first certificate of the chain in use, nil if there is none.
func (c *Credentials) Leaf() *x509.Certificate {
	if certificate := c.Certificate(); certificate != nil {
		return certificate.Leaf
	}
	return nil
}

// Use replaces the client certificate and closes the existing connections. It returns false if the certificate is the current
// one, or none is used.
func (c *Credentials) Use(certificate *tls.Certificate) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if current := c.Certificate(); current == nil || sameChain(current, certificate) {
		return false
	}
	c.superseded = append(c.superseded, c.Certificate().Certificate[0])
	c.replace(certificate, c.authorities, c.roots)
	return true
}

// Authorities returns the authorities in use in PEM form, empty for those of the system.
func (c *Credentials) Authorities() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.authorities
}

// UseAuthorities replaces the authorities by others in PEM form and closes the existing connections. It fails if there are none,
// or none are used.
func (c *Credentials) UseAuthorities(authorities []byte) error {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authorities) {
		return fmt.Errorf("reading the authorities for %s: no certificate in PEM form", c.server)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.roots == nil {
		return fmt.Errorf("the kubeconfig for %s has no authorities that others could replace", c.server)
	}
	if !bytes.Equal(authorities, c.authorities) {
		c.superseded = append(c.superseded, c.authorities)
		c.replace(c.Certificate(), authorities, roots)
	}
	return nil
}

// accepts reports whether a certificate of the kubeconfig replaces the current one, which differs. The caller holds the lock.
func (c *Credentials) accepts(certificate *tls.Certificate) bool {
	return !c.lagging(certificate.Certificate[0]) && (c.options.Accept == nil || c.options.Accept(certificate, c.Certificate()))
}

// lagging reports whether the kubeconfig has authorities or a certificate that were replaced meanwhile. The caller holds the lock.
func (c *Credentials) lagging(data []byte) bool {
	return slices.ContainsFunc(c.superseded, func(s []byte) bool { return bytes.Equal(s, data) })
}

func sameChain(a, b *tls.Certificate) bool {
	return slices.EqualFunc(a.Certificate, b.Certificate, bytes.Equal)
}

// Run follows the kubeconfig until ctx ends.
func (c *Credentials) Run(ctx context.Context) error {
	if !c.rotates() {
		return nil
	}
	log := klog.FromContext(ctx).WithValues("server", c.server)
	failed := ""
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-c.options.Clock.After(reloadInterval):
		}
		changed, err := c.reload()
		switch {
		case err == nil:
			failed = ""
		case err.Error() != failed:
			failed = err.Error()
			log.Error(err, "Reading the kubeconfig again failed; the current certificates stay in use")
		}
		if changed {
			log.Info("Took over the certificates of the kubeconfig")
		}
	}
}

// reload reads the kubeconfig and uses its certificates if they differ. All others stay in use if it cannot be read, or if it
// is about something else: a kubeconfig that is just written may be empty, which client-go takes for that of the pod.
func (c *Credentials) reload() (changed bool, err error) {
	cfg, err := c.options.Load()
	if err != nil {
		return false, err
	}
	certificate, roots, err := certificatesOf(cfg)
	if err != nil {
		return false, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	current := c.Certificate()
	if cfg.Host != c.server || (certificate == nil) != (current == nil) || (roots == nil) != (c.roots == nil) {
		return false, errors.New("the server of the kubeconfig, or what authenticates it or the client, is of another kind than at the start; restart to use it")
	}
	authorities, same := cfg.CAData, bytes.Equal(cfg.CAData, c.authorities)
	if !same && c.lagging(authorities) {
		authorities, roots = c.authorities, c.roots
	}
	if certificate == nil || sameChain(certificate, current) {
		certificate = current
		if same {
			c.superseded = nil // a further change is not a delay
		}
	} else if !c.accepts(certificate) {
		certificate = current
	}
	if certificate == current && bytes.Equal(authorities, c.authorities) {
		return false, nil
	}
	c.replace(certificate, authorities, roots)
	return true, nil
}

// replace has the transports use other certificates, and closes their connections. The caller holds the lock.
func (c *Credentials) replace(certificate *tls.Certificate, authorities []byte, roots *x509.CertPool) {
	c.certificate.Store(certificate)
	c.authorities, c.roots = authorities, roots
	var before []*http.Transport
	for _, t := range c.live() {
		before = append(before, t.current.Swap(c.newTransport(t.base)))
	}
	c.connections.CloseAll()
	for _, t := range before {
		t.CloseIdleConnections()
	}
}

// live returns the transports that clients still have.
func (c *Credentials) live() []*transport {
	var out []*transport
	c.transports = slices.DeleteFunc(c.transports, func(p weak.Pointer[transport]) bool {
		t := p.Value()
		if t != nil {
			out = append(out, t)
		}
		return t == nil
	})
	return out
}

// wrap returns the transport with the current certificates for one of client-go. Clients with the same settings share it.
func (c *Credentials) wrap(below http.RoundTripper) http.RoundTripper {
	base := transportOf(below)
	if base == nil || base.TLSClientConfig == nil && c.rotates() {
		return below // of an upgrade, or without TLS
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range c.live() {
		if t.base == base {
			return t
		}
	}
	t := &transport{below: below, base: base}
	t.current.Store(c.newTransport(base))
	c.transports = append(c.transports, weak.Make(t))
	return t
}

// transportOf returns the end of a chain, nil if it is none of net/http.
func transportOf(rt http.RoundTripper) *http.Transport {
	for {
		switch t := rt.(type) {
		case *http.Transport:
			return t
		case utilnet.RoundTripperWrapper:
			rt = t.WrappedRoundTripper()
		default:
			return nil
		}
	}
}

// newTransport returns a copy with the current certificates and connections of its own.
func (c *Credentials) newTransport(base *http.Transport) *http.Transport {
	t := base.Clone()
	t.TLSNextProto = nil // it has the HTTP/2 connections of base
	dial := base.DialContext
	if c.options.Dial != nil {
		dial = c.options.Dial
	}
	t.DialContext = connrotation.NewDialerWithTracker(dial, c.connections).DialContext
	if c.options.HTTP2 != nil {
		t.HTTP2 = c.options.HTTP2
	}
	if t.TLSClientConfig != nil && c.roots != nil {
		t.TLSClientConfig.RootCAs = c.roots
	}
	if t.TLSClientConfig != nil && c.Certificate() != nil {
		t.TLSClientConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return c.Certificate(), nil }
	}
	return utilnet.SetTransportDefaults(t)
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	return t.current.Load().RoundTrip(req)
}

// WrappedRoundTripper returns the wrapped transport for client-go.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.current.Load() }
