//go:build integration

package role

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/karmada-toolkit/karmada/internal/pki"
	"github.com/karmada-toolkit/karmada/internal/testenv"
)

// TestCertificates_RenewedOnesAreInUse runs the webhook server, and renews both its certificates.
func TestCertificates_RenewedOnesAreInUse(t *testing.T) {
	cp := testenv.Start(t, testenv.ControlPlane())
	ca, err := pki.Store{Storage: pki.Dir(certDir(t, cp)), Now: time.Now}.CA("ca", pki.CAConfig{})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "kubeconfig")
	// renew writes a new certificate for both, and returns its serial number.
	renew := func() string {
		t.Helper()
		pair, err := pki.NewLeaf(pki.LeafConfig{CommonName: "webhook", Organization: []string{"system:masters"}, Hosts: []string{"localhost"}}, ca, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		config, err := pki.NewKubeconfig(pki.KubeconfigEntry{Context: "test", Server: cp.Config.Host, CA: ca.CertPEM(), Client: pair})
		if err != nil {
			t.Fatal(err)
		}
		key, err := pair.KeyPEM()
		if err != nil {
			t.Fatal(err)
		}
		if err := clientcmd.WriteToFile(*config, path); err != nil {
			t.Fatal(err)
		}
		for name, data := range map[string][]byte{"tls.crt": pair.CertPEM(), "tls.key": key} {
			if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return pair.Cert.SerialNumber.Text(16)
	}
	serial, address := renew(), freeAddress(t)
	_, port, _ := net.SplitHostPort(freeAddress(t))
	runRole(t, []string{
		"webhook", "--kubeconfig=" + path, "--cert-dir=" + dir, "--secure-port=" + port, "--metrics-bind-address=" + address, "--health-probe-bind-address=0",
	})
	for range 2 {
		testenv.Eventually(t, time.Minute, func(ctx context.Context) error {
			text, err := metricsText(ctx, "http://"+address+"/metrics")
			if err != nil {
				return err
			}
			for _, name := range []string{"client", "serving"} {
				if want := fmt.Sprintf(`karmada_certificate_not_after_seconds{certificate=%q,role="webhook",serial=%q} `, name, serial); !strings.Contains(text, want) {
					return fmt.Errorf("%s is not served", want)
				}
			}
			return nil
		})
		serial = renew()
	}
}

// metricsText returns what is served.
func metricsText(ctx context.Context, url string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	return string(text), err
}
