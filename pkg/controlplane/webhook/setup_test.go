package webhook

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/karmada-toolkit/karmada/internal/kube"
)

// writeCertificate puts a new certificate with a serial number into a directory.
func writeCertificate(t *testing.T, dir string, serial int64) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "webhook"},
		NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<32, 0),
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{"tls.key": {Type: "PRIVATE KEY", Bytes: secret}, "tls.crt": {Type: "CERTIFICATE", Bytes: certificate}} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}

// startServer runs the role and returns its address.
func startServer(t *testing.T, dir string, configure ...func(*Options)) string {
	t.Helper()
	mgr, err := manager.New(&rest.Config{Host: "https://127.0.0.1:1"}, manager.Options{
		Scheme: kube.NewScheme(), Metrics: metricsserver.Options{BindAddress: "0"},
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return meta.NewDefaultRESTMapper(nil), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	o := NewOptions()
	o.BindAddress, o.SecurePort, o.CertDir = "127.0.0.1", freePort(t), dir
	for _, f := range configure {
		f(o)
	}
	if err := o.Validate(); err != nil {
		t.Fatal(err)
	}
	if err := Setup(t.Context(), mgr, o); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return net.JoinHostPort(o.BindAddress, strconv.Itoa(o.SecurePort))
}

// eventually calls f until it is true.
func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.After(2 * time.Minute)
	for !f() {
		select {
		case <-ticker.C:
		case <-deadline:
			t.Fatalf("not within 2 minutes: %s", what)
		}
	}
}

func TestSetup_ServesAndReloadsItsCertificate(t *testing.T) {
	dir := t.TempDir()
	writeCertificate(t, dir, 1)
	address := startServer(t, dir)
	serial := func() int64 {
		conn, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			return 0
		}
		defer func() { _ = conn.Close() }()
		return conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
	}
	eventually(t, "the first certificate is served", func() bool { return serial() == 1 })

	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	t.Cleanup(client.CloseIdleConnections)
	for _, path := range []string{"/readyz/", "/readyz"} {
		resp, err := client.Get("https://" + address + path)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", path, resp.Status)
		}
	}
	if _, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12}); err == nil {
		t.Error("TLS 1.2 is accepted")
	}

	writeCertificate(t, dir, 2)
	eventually(t, "the second certificate is served", func() bool { return serial() == 2 })
}

func TestOptions(t *testing.T) {
	for _, tc := range []struct{ args, want string }{
		{args: ""},
		{args: "--bind-address=::1 --secure-port=0 --tls-min-version=1.2 --feature-gates=FederatedQuotaEnforcement=true,Failover=true --allow-no-execute-taint-policy"},
		{args: "--bind-address=localhost", want: `--bind-address "localhost" is not an IP address`},
		{args: "--secure-port=70000", want: "--secure-port 70000 is not between 0 and 65535"},
		{args: "--tls-min-version=1.4", want: `--tls-min-version "1.4" is not one of 1.0, 1.1, 1.2 and 1.3`},
	} {
		o, fs := NewOptions(), pflag.NewFlagSet("", pflag.ContinueOnError)
		o.AddFlags(fs)
		if err := fs.Parse(strings.Fields(tc.args)); err != nil {
			t.Fatal(err)
		}
		err := o.Validate()
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || err.Error() != tc.want) {
			t.Errorf("%q: %v", tc.args, err)
		}
	}
}
