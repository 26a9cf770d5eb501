package agent

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"

	"github.com/karmada-toolkit/karmada/internal/pki"
)

// authority signs the certificates of a test.
func authority(t *testing.T) pki.Pair {
	t.Helper()
	ca, err := pki.NewCA(pki.CAConfig{CommonName: "ca"}, nil, time.Now().Add(-time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

// leaf returns a certificate of the agent that is valid for life.
func leaf(t *testing.T, ca pki.Pair, life time.Duration) pki.Pair {
	t.Helper()
	pair, err := pki.NewLeaf(pki.LeafConfig{
		CommonName: "system:karmada:agent:m3", Organization: []string{"system:karmada:agents"},
		Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, Validity: life,
	}, ca, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

// writeKubeconfig writes the agent's kubeconfig.
func writeKubeconfig(t *testing.T, path string, ca, client pki.Pair) {
	t.Helper()
	config, err := pki.NewKubeconfig(pki.KubeconfigEntry{
		Context: "m3@plane", Cluster: "plane", User: "m3", Server: "https://127.0.0.1:1", CA: ca.CertPEM(), Client: client,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
}

func openPlane(t *testing.T, client pki.Pair, ca pki.Pair) (*plane, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	writeKubeconfig(t, path, ca, client)
	p, err := newPlane(path, "", "test", clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	return p, path
}

func TestPlane_FileThatLagsBehindBringsNothingBack(t *testing.T) {
	ca := authority(t)
	short, long := leaf(t, ca, time.Hour).TLS(), leaf(t, ca, 2*time.Hour).TLS()
	if newerThan(&short, &long) || newerThan(&short, &short) {
		t.Error("a certificate that ends earlier, or at the same time, counts as newer")
	}
	if !newerThan(&long, &short) || !newerThan(&long, &tls.Certificate{}) {
		t.Error("a certificate that ends later does not count as newer")
	}
}

func TestPlane_RequestWaitsForAnUnreachableControlPlane(t *testing.T) {
	ca := authority(t)
	p, _ := openPlane(t, leaf(t, ca, time.Hour), ca)
	tries := 0
	there, here := net.Pipe()
	defer func() { _ = there.Close() }()
	p.dial = func(context.Context, string, string) (net.Conn, error) {
		if tries++; tries < 3 {
			return nil, errors.New("connection refused")
		}
		return here, nil
	}
	conn, err := p.dialWithRetry(t.Context(), "tcp", "127.0.0.1:1")
	if err != nil || conn == nil || tries != 3 {
		t.Errorf("after %d tries: %v", tries, err)
	}
	if !p.unreachableSince.IsZero() {
		t.Error("the control plane still counts as not reachable")
	}
}

func TestPlane_RequestThatEndsWaitsNoLonger(t *testing.T) {
	ca := authority(t)
	p, _ := openPlane(t, leaf(t, ca, time.Hour), ca)
	ctx, cancel := context.WithCancel(t.Context())
	p.dial = func(context.Context, string, string) (net.Conn, error) {
		cancel()
		return nil, os.ErrDeadlineExceeded
	}
	if _, err := p.dialWithRetry(ctx, "tcp", "127.0.0.1:1"); err == nil {
		t.Error("it succeeded")
	}
}

func TestNewPlane_MissingKubeconfig(t *testing.T) {
	if _, err := newPlane(filepath.Join(t.TempDir(), "missing"), "", "test", clock.RealClock{}); err == nil {
		t.Error("a kubeconfig that is not there is accepted")
	}
}
