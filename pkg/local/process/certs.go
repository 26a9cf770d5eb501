package process

import (
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/karmada-toolkit/karmada/internal/kubelite/ready"
	"github.com/karmada-toolkit/karmada/internal/pki"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
	"github.com/karmada-toolkit/karmada/pkg/local/federation"
)

// admissionFlag is the flag of the control plane's cluster by which its API server
// authenticates to the webhook server.
const admissionFlag = components.AdmissionConfigFlag + "="

// estimatorClientName is the name of the scheduler towards estimators.
const estimatorClientName = "karmada-scheduler-estimator-client"

// certs are the certificates of a federation's own servers and clients.
type certs struct {
	dir federation.Dir
	now func() time.Time
}

func (c certs) store() pki.Store { return pki.Store{Storage: pki.Dir(certDir(c.dir)), Now: c.now} }

// certDir is the directory of the certificates.
func certDir(d federation.Dir) string { return d.ControlPlane("pki") }

// rolesKubeconfig is the path of the kubeconfig of the process with the roles.
func rolesKubeconfig(d federation.Dir) string { return d.ControlPlane("kubeconfig") }

// authority loads or creates the authority of the federation's own servers.
func (c certs) authority() (pki.Pair, error) {
	ca, err := c.store().CA("ca", pki.CAConfig{CommonName: "karmada"})
	if err != nil {
		return pki.Pair{}, fmt.Errorf("making certificates: %w", err)
	}
	return ca, nil
}

// serving loads or creates the certificates of the servers and returns their authority.
func (c certs) serving() ([]byte, error) {
	ca, err := c.authority()
	if err != nil {
		return nil, err
	}
	for _, name := range []string{federation.PortAggregated, federation.PortWebhook, federation.PortAdapter, federation.PortSearch} {
		service := "karmada-" + name + "." + clusterv1alpha1.NamespaceKarmadaSystem + ".svc"
		_, err := c.store().Leaf(name, pki.LeafConfig{
			CommonName: "karmada-" + name,
			Hosts:      []string{"localhost", federation.Loopback, service},
			Usages:     []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		}, ca)
		if err != nil {
			return nil, fmt.Errorf("making certificates: %w", err)
		}
	}
	return ca.CertPEM(), nil
}

// admission writes the files by which the API server authenticates to the webhook
// server, and returns the path of the first.
func (c certs) admission() (string, error) {
	ca, err := c.authority()
	if err != nil {
		return "", err
	}
	pair, err := c.store().Leaf(components.WebhookClient, pki.LeafConfig{
		CommonName: names.WebhookClientUser, Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, ca)
	if err != nil {
		return "", fmt.Errorf("making certificates: %w", err)
	}
	key, err := pair.KeyPEM()
	if err != nil {
		return "", fmt.Errorf("making certificates: %w", err)
	}
	// The port of the webhook server is chosen later, and may change.
	kubeconfig, err := components.AdmissionKubeconfig("*", pair.CertPEM(), key)
	if err != nil {
		return "", err
	}
	path, config := c.dir.ControlPlane(components.AdmissionKubeconfigKey), c.dir.ControlPlane(components.AdmissionConfigKey)
	for name, data := range map[string][]byte{path: kubeconfig, config: components.AdmissionConfiguration(path)} {
		if err := pki.WriteFile(name, data, 0o600); err != nil {
			return "", fmt.Errorf("writing the admission configuration of the API server: %w", err)
		}
	}
	return config, nil
}

// estimatorClient loads or creates the certificate by which the scheduler authenticates to estimators.
func (c certs) estimatorClient() error {
	return c.leaf(components.EstimatorClient, pki.LeafConfig{CommonName: estimatorClientName, Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
}

// estimator loads or creates the certificate of the estimator of a member.
func (c certs) estimator(member string) error {
	return c.leaf(federation.Estimator(member), pki.LeafConfig{
		CommonName: federation.Estimator(member), Hosts: []string{"localhost", federation.Loopback}, Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
}

func (c certs) leaf(name string, cfg pki.LeafConfig) error {
	ca, err := c.authority()
	if err != nil {
		return err
	}
	if _, err := c.store().Leaf(name, cfg, ca); err != nil {
		return fmt.Errorf("making certificates: %w", err)
	}
	return nil
}

// roles writes the kubeconfig of the process with the roles. Its certificate is of
// the authority for clients of the control plane's cluster.
func (c certs) roles(info ready.Info) error {
	dir := filepath.Join(c.dir.Data(federation.ControlPlane), "pki")
	var files [2][]byte
	for i, name := range []string{"ca.crt", "ca.key"} {
		data, err := os.ReadFile(pki.Dir(dir).Path(name))
		if err != nil {
			return fmt.Errorf("reading the authority of the control plane: %w", err)
		}
		files[i] = data
	}
	ca, err := pki.ParsePair(files[0], files[1])
	if err != nil {
		return fmt.Errorf("reading the authority of the control plane in %s: %w", dir, err)
	}
	pair, err := c.store().Leaf("client", pki.LeafConfig{
		CommonName: components.UserOf(components.AllInOne), Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, ca)
	if err != nil {
		return fmt.Errorf("making the client certificate of the control plane's roles: %w", err)
	}
	cfg, err := pki.NewKubeconfig(pki.KubeconfigEntry{Context: federation.ControlPlane, User: federation.Roles, Server: info.Server, CA: files[0], Client: pair})
	if err != nil {
		return fmt.Errorf("making the kubeconfig of the control plane's roles: %w", err)
	}
	return pki.WriteKubeconfig(rolesKubeconfig(c.dir), cfg)
}
