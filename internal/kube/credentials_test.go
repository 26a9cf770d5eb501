package kube

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"

	"github.com/karmada-toolkit/karmada/internal/pki"
)

// plane is an API server whose certificate can change, and the kubeconfig for it.
type plane struct {
	t      *testing.T
	server *httptest.Server
	path   string
	// serving is the certificate, clients the authority of those of clients.
	serving atomic.Pointer[tls.Certificate]
	clients pki.Pair
	// presented is the serial number of the client certificate of the last request, protocol its protocol and token its token.
	presented, protocol, token string
	connections                atomic.Int32
}

func newAuthority(t *testing.T) pki.Pair {
	t.Helper()
	ca, err := pki.NewCA(pki.CAConfig{CommonName: "ca"}, nil, time.Now().Add(-time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

func newLeaf(t *testing.T, ca pki.Pair, life time.Duration) pki.Pair {
	t.Helper()
	pair, err := pki.NewLeaf(pki.LeafConfig{
		CommonName: "system:karmada:test", Hosts: []string{"127.0.0.1", "plane.example"}, Validity: life,
		Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}, ca, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

func (p *plane) serve(ca pki.Pair) {
	certificate := newLeaf(p.t, ca, time.Hour).TLS()
	p.serving.Store(&certificate)
}

// newPlane starts a server with a certificate of ca, to which clients present one of it, or none.
func newPlane(t *testing.T, ca pki.Pair) *plane {
	t.Helper()
	p := &plane{t: t, path: filepath.Join(t.TempDir(), "kubeconfig"), clients: ca}
	p.serve(ca)
	p.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.presented, p.protocol, p.token = "", r.Proto, r.Header.Get("Authorization")
		if len(r.TLS.PeerCertificates) > 0 {
			p.presented = r.TLS.PeerCertificates[0].SerialNumber.String()
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"default"}}`))
	}))
	authorities := x509.NewCertPool()
	authorities.AddCert(ca.Cert)
	p.server.EnableHTTP2 = true
	p.server.TLS = &tls.Config{
		ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: authorities, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2"},
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			p.connections.Add(1)
			return &tls.Config{
				Certificates: []tls.Certificate{*p.serving.Load()}, ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: authorities,
				NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS12,
			}, nil
		},
	}
	p.server.StartTLS()
	t.Cleanup(p.server.Close)
	return p
}

// write writes the kubeconfig with authorities in PEM form. change may be nil.
func (p *plane) write(authorities []byte, client pki.Pair, change func(*pki.KubeconfigEntry)) {
	p.t.Helper()
	entry := pki.KubeconfigEntry{Context: "test", Server: p.server.URL, CA: authorities, Client: client}
	if change != nil {
		change(&entry)
	}
	config, err := pki.NewKubeconfig(entry)
	if err != nil {
		p.t.Fatal(err)
	}
	if err := clientcmd.WriteToFile(*config, p.path); err != nil {
		p.t.Fatal(err)
	}
}

func (p *plane) load() (*rest.Config, error) {
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: p.path}
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{}).ClientConfig()
}

func (p *plane) credentials(o CredentialsOptions) *Credentials {
	p.t.Helper()
	o.Load, o.Clock = p.load, clock.RealClock{}
	c, err := NewCredentials(o)
	if err != nil {
		p.t.Fatal(err)
	}
	return c
}

// client returns a client of a copy of the configuration.
func client(t *testing.T, cfg *rest.Config) func() error {
	t.Helper()
	api, err := kubernetes.NewForConfig(rest.CopyConfig(cfg))
	if err != nil {
		t.Fatal(err)
	}
	return func() error {
		_, err := api.CoreV1().Namespaces().Get(t.Context(), corev1.NamespaceDefault, metav1.GetOptions{})
		return err
	}
}

func (p *plane) reload(c *Credentials, want bool) {
	p.t.Helper()
	if changed, err := c.reload(); err != nil || changed != want {
		p.t.Fatalf("reloaded %v, %v; want %v", changed, err, want)
	}
}

func (p *plane) check(get func() error, certificate pki.Pair) {
	p.t.Helper()
	if err := get(); err != nil {
		p.t.Fatal(err)
	}
	want := ""
	if certificate.Cert != nil {
		want = certificate.Cert.SerialNumber.String()
	}
	if p.presented != want || p.protocol != "HTTP/2.0" {
		p.t.Errorf("presented %q by %s, want %q", p.presented, p.protocol, want)
	}
}

func TestCredentials_OtherCertificateInTheFile(t *testing.T) {
	ca := newAuthority(t)
	p := newPlane(t, ca)
	first, second := newLeaf(t, ca, 2*time.Hour), newLeaf(t, ca, time.Hour)
	p.write(ca.CertPEM(), first, nil)
	c := p.credentials(CredentialsOptions{})
	get, other := client(t, c.Config), client(t, c.Config)
	p.check(get, first)
	p.check(other, first)
	if n := p.connections.Load(); n != 1 {
		t.Errorf("two clients have %d connections", n)
	}
	p.reload(c, false)
	p.write(ca.CertPEM(), second, nil)
	p.reload(c, true)
	p.check(get, second)
	p.check(other, second)
	p.check(client(t, c.Config), second)
	if n := p.connections.Load(); n != 2 {
		t.Errorf("%d connections, want a new one for all clients", n)
	}
	if c.Leaf().SerialNumber.Cmp(second.Cert.SerialNumber) != 0 {
		t.Error("another certificate is shown than is used")
	}
}

func TestCredentials_CertificateThatIsNotAccepted(t *testing.T) {
	ca := newAuthority(t)
	p := newPlane(t, ca)
	first, second := newLeaf(t, ca, time.Hour), newLeaf(t, ca, time.Hour)
	p.write(ca.CertPEM(), first, nil)
	c := p.credentials(CredentialsOptions{Accept: func(_, _ *tls.Certificate) bool { return false }})
	p.write(ca.CertPEM(), second, nil)
	p.reload(c, false)
	get := client(t, c.Config)
	p.check(get, first)
	// One that is given is used.
	fresh := second.TLS()
	if !c.Use(&fresh) || c.Use(&fresh) {
		t.Error("want a change the first time only")
	}
	p.check(get, second)
}

func TestCredentials_OtherAuthorities(t *testing.T) {
	old, next := newAuthority(t), newAuthority(t)
	p := newPlane(t, old)
	certificate := newLeaf(t, old, time.Hour)
	p.write(old.CertPEM(), certificate, nil)
	c := p.credentials(CredentialsOptions{})
	get := client(t, c.Config)
	p.check(get, certificate)
	p.write(append(old.CertPEM(), next.CertPEM()...), certificate, nil)
	p.reload(c, true)
	p.check(get, certificate)
	p.serve(next)
	p.server.CloseClientConnections()
	p.check(get, certificate)
	// The old authority does not count once it is no longer in the file.
	p.write(next.CertPEM(), certificate, nil)
	p.reload(c, true)
	p.check(get, certificate)
	p.serve(old)
	p.server.CloseClientConnections()
	if err := get(); err == nil {
		t.Error("a server of the old authority is accepted")
	}
}

func TestCredentials_DamagedFile(t *testing.T) {
	ca := newAuthority(t)
	p := newPlane(t, ca)
	certificate := newLeaf(t, ca, time.Hour)
	p.write(ca.CertPEM(), certificate, nil)
	c := p.credentials(CredentialsOptions{})
	get := client(t, c.Config)
	for name, damage := range map[string]func() error{
		"missing":        func() error { return os.Remove(p.path) },
		"empty":          func() error { return os.WriteFile(p.path, nil, 0o600) },
		"no kubeconfig":  func() error { return os.WriteFile(p.path, []byte("{"), 0o600) },
		"another key":    func() error { p.write(ca.CertPEM(), pki.Pair{Cert: certificate.Cert, Key: ca.Key}, nil); return nil },
		"no certificate": func() error { p.write(ca.CertPEM(), pki.Pair{}, nil); return nil },
		"no authorities": func() error { p.write(nil, certificate, nil); return nil },
		"bad authorities": func() error {
			p.write([]byte("x"), newLeaf(t, ca, time.Hour), nil)
			return nil
		},
		"another server": func() error {
			p.write(ca.CertPEM(), newLeaf(t, ca, time.Hour), func(e *pki.KubeconfigEntry) { e.Server = "https://127.0.0.1:1" })
			return nil
		},
	} {
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		if changed, err := c.reload(); err == nil || changed {
			t.Errorf("%s: %v, %v", name, changed, err)
		}
		p.check(get, certificate)
	}
}

func TestCredentials_Token(t *testing.T) {
	old, next := newAuthority(t), newAuthority(t)
	p := newPlane(t, old)
	token := func(e *pki.KubeconfigEntry) { e.Token = "secret" }
	p.write(old.CertPEM(), pki.Pair{}, token)
	c := p.credentials(CredentialsOptions{})
	get := client(t, c.Config)
	p.check(get, pki.Pair{})
	p.write(next.CertPEM(), pki.Pair{}, token)
	p.reload(c, true)
	p.serve(next)
	p.check(get, pki.Pair{})
	if p.token != "Bearer secret" || c.Leaf() != nil {
		t.Errorf("the token is %q, the certificate %v", p.token, c.Leaf())
	}
	if fresh := newLeaf(t, old, time.Hour).TLS(); c.Use(&fresh) {
		t.Error("a certificate is used beside the token")
	}
}

// What a configuration says beside certificates is as client-go has it.
func TestCredentials_OtherSettings(t *testing.T) {
	ca := newAuthority(t)
	p := newPlane(t, ca)
	certificate := newLeaf(t, ca, time.Hour)
	p.write(ca.CertPEM(), certificate, nil)
	c := p.credentials(CredentialsOptions{HTTP2: &http.HTTP2Config{PingTimeout: time.Second}})
	cfg := rest.CopyConfig(c.Config)
	cfg.ServerName, cfg.DisableCompression = "other.example", true
	dialled := 0
	cfg.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		dialled++
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	if err := client(t, cfg)(); err == nil || !strings.Contains(err.Error(), "other.example") {
		t.Errorf("the name of the server does not count: %v", err)
	}
	cfg.ServerName = "plane.example"
	p.check(client(t, cfg), certificate)
	if dialled == 0 {
		t.Error("the dialer of the configuration is not used")
	}
	cfg.CAData, cfg.Insecure = nil, true
	p.check(client(t, cfg), certificate)
	rt, err := rest.TransportFor(cfg)
	if err != nil || !transportOf(rt).DisableCompression || transportOf(rt).HTTP2.PingTimeout != time.Second {
		t.Errorf("compression or pings do not count: %v", err)
	}
	if tlsConfig, err := rest.TLSConfigFor(c.Config); err != nil || tlsConfig.RootCAs == nil {
		t.Errorf("the configuration has no authorities: %v", err)
	}
}

func TestCredentials_RunEnds(t *testing.T) {
	ca := newAuthority(t)
	p := newPlane(t, ca)
	p.write(ca.CertPEM(), newLeaf(t, ca, time.Hour), nil)
	c := p.credentials(CredentialsOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Run(ctx); err != nil {
		t.Error(err)
	}
	if _, err := NewCredentials(CredentialsOptions{Load: func() (*rest.Config, error) { return nil, errors.New("missing") }}); err == nil {
		t.Error("a kubeconfig that is not there is accepted")
	}
}

func TestCredentials_GivenAuthoritiesAndAFileThatLagsBehind(t *testing.T) {
	old, next, third := newAuthority(t), newAuthority(t), newAuthority(t)
	p := newPlane(t, old)
	first, second := newLeaf(t, old, time.Hour), newLeaf(t, old, time.Hour)
	p.write(old.CertPEM(), first, nil)
	c := p.credentials(CredentialsOptions{})
	get := client(t, c.Config)
	p.check(get, first)
	both := append(old.CertPEM(), next.CertPEM()...)
	if err := errors.Join(c.UseAuthorities(both), c.UseAuthorities(next.CertPEM())); err != nil {
		t.Fatal(err)
	}
	p.serve(next)
	p.check(get, first)
	fresh := second.TLS()
	c.Use(&fresh)
	// What was replaced is not brought back by the file, whatever else changes in it.
	for _, lagging := range []struct {
		authorities []byte
		certificate pki.Pair
	}{{old.CertPEM(), first}, {both, first}, {old.CertPEM(), second}, {next.CertPEM(), first}} {
		p.write(lagging.authorities, lagging.certificate, nil)
		p.reload(c, false)
		p.check(get, second)
	}
	// Others are used, and once the file has the current ones also earlier ones.
	p.write(append(next.CertPEM(), third.CertPEM()...), second, nil)
	p.reload(c, true)
	p.write(next.CertPEM(), second, nil)
	p.reload(c, true)
	p.reload(c, false)
	p.write(both, first, nil)
	p.reload(c, true)
	p.check(get, first)
	for _, none := range []string{"", "nonsense"} {
		if err := c.UseAuthorities([]byte(none)); err == nil || len(c.Authorities()) != len(both) {
			t.Errorf("%q is used", none)
		}
	}
	p.write(nil, first, func(e *pki.KubeconfigEntry) { e.CA = nil })
	if system := p.credentials(CredentialsOptions{}); system.UseAuthorities(both) == nil || system.Authorities() != nil {
		t.Error("those of the system are replaced")
	}
}
