package kubelite

import (
	"crypto/x509"
	"fmt"
	"net"

	"golang.org/x/sync/errgroup"

	"github.com/karmada-toolkit/karmada/internal/pki"
)

// Names of the certificates and keys in the pki directory, without extension.
const (
	certCA               = "ca"
	certServer           = "apiserver"
	certAdmin            = "admin"
	certFrontProxyCA     = "front-proxy-ca"
	certFrontProxyClient = "front-proxy-client"
	keyServiceAccount    = "service-account"
)

const groupMasters = "system:masters"

// certificates are what the cluster's parts identify themselves with.
type certificates struct {
	dir   pki.Dir
	ca    pki.Pair
	admin pki.Pair
	// bundle is the authority data of kubeconfigs: the certificate of ca, and others in the same file.
	bundle []byte
}

func (c certificates) cert(name string) string { return c.dir.Path(name + ".crt") }
func (c certificates) key(name string) string  { return c.dir.Path(name + ".key") }

// ensureCertificates loads the certificates of the cluster and makes what is missing or about to expire. Those that
// the process itself uses live as long as their authority, since they are read only when it starts.
func ensureCertificates(cfg Config, dir pki.Dir) (certificates, error) {
	store := pki.Store{Storage: dir, Now: cfg.Now}
	certs := certificates{dir: dir}
	var frontProxyCA pki.Pair
	var cas errgroup.Group
	cas.Go(func() (err error) {
		certs.ca, err = store.CA(certCA, pki.CAConfig{CommonName: "kubernetes"})
		return err
	})
	cas.Go(func() (err error) {
		frontProxyCA, err = store.CA(certFrontProxyCA, pki.CAConfig{CommonName: "front-proxy-ca"})
		return err
	})
	cas.Go(func() error {
		_, err := store.Key(keyServiceAccount, pki.ECDSA)
		return err
	})
	if err := cas.Wait(); err != nil {
		return certs, fmt.Errorf("preparing certificates in %s: %w", dir, err)
	}
	hosts, err := serverHosts(cfg)
	if err != nil {
		return certs, err
	}
	client := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	var leaves errgroup.Group
	leaf := func(name string, ca pki.Pair, into *pki.Pair, leafCfg pki.LeafConfig) {
		leaves.Go(func() error {
			pair, err := store.Leaf(name, leafCfg, ca)
			if into != nil {
				*into = pair
			}
			return err
		})
	}
	leaf(certServer, certs.ca, nil, pki.LeafConfig{
		CommonName: "kube-apiserver", Hosts: hosts, Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, Validity: pki.CAValidity,
	})
	leaf(certFrontProxyClient, frontProxyCA, nil, pki.LeafConfig{CommonName: "front-proxy-client", Usages: client, Validity: pki.CAValidity})
	leaf(certAdmin, certs.ca, &certs.admin, pki.LeafConfig{CommonName: "system:admin", Organization: []string{groupMasters}, Usages: client})
	err = leaves.Wait()
	if err == nil {
		certs.bundle, err = dir.Read(certCA + ".crt")
	}
	if err != nil {
		return certs, fmt.Errorf("preparing certificates in %s: %w", dir, err)
	}
	return certs, nil
}

// serverHosts are the names and addresses under which clients may reach the API server.
func serverHosts(cfg Config) ([]string, error) {
	_, services, err := net.ParseCIDR(cfg.ServiceClusterIPRange)
	if err != nil {
		return nil, err
	}
	hosts := []string{
		"localhost", "127.0.0.1", "::1",
		"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
		firstAddress(services),
	}
	if ip := net.ParseIP(cfg.BindAddress); ip != nil && !ip.IsUnspecified() {
		hosts = append(hosts, cfg.BindAddress)
	}
	return append(hosts, cfg.CertSANs...), nil
}

// firstAddress is the address after the network's own, which the kubernetes Service gets.
func firstAddress(network *net.IPNet) string {
	ip := append(net.IP{}, network.IP...)
	for i := len(ip) - 1; i >= 0; i-- {
		ip[i]++
		if ip[i] != 0 {
			break
		}
	}
	return ip.String()
}
