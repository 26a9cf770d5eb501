package local

import (
	"context"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/apply"
	"github.com/karmada-toolkit/karmada/internal/kubelite/ready"
	"github.com/karmada-toolkit/karmada/internal/pki"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
)

// admissionFlag is the flag of the control plane's cluster by which its API server
// identifies itself to the webhook server.
const admissionFlag = components.AdmissionConfigFlag + "="

// admission writes the files by which the API server identifies itself to the
// webhook server, and returns the path of the first.
func (s *starter) admission() (string, error) {
	ca, err := s.authority()
	if err != nil {
		return "", err
	}
	store := pki.Store{Storage: pki.Dir(s.certDir()), Now: s.Now}
	pair, err := store.Leaf(components.WebhookClient, pki.LeafConfig{
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
	path := filepath.Join(s.f.dir, karmadaDir, components.AdmissionKubeconfigKey)
	config := filepath.Join(s.f.dir, karmadaDir, components.AdmissionConfigKey)
	for name, data := range map[string][]byte{path: kubeconfig, config: components.AdmissionConfiguration(path)} {
		if err := pki.WriteFile(name, data, 0o600); err != nil {
			return "", fmt.Errorf("writing how the API server identifies itself to webhooks: %w", err)
		}
	}
	return config, nil
}

// identifiesItself reports whether the running API server presents a client
// certificate to webhooks. One that an earlier version of the program started does
// not.
func (s *starter) identifiesItself() bool {
	r, alive := s.f.process(controlPlane).running()
	return alive && slices.ContainsFunc(r.Command, func(arg string) bool { return strings.HasPrefix(arg, admissionFlag) })
}

// authority makes sure that there is the authority of the federation's own servers.
func (s *starter) authority() (pki.Pair, error) {
	store := pki.Store{Storage: pki.Dir(s.certDir()), Now: s.Now}
	ca, err := store.CA("ca", pki.CAConfig{CommonName: "karmada"})
	if err != nil {
		return pki.Pair{}, fmt.Errorf("making certificates: %w", err)
	}
	return ca, nil
}

// rolesKubeconfig is the path of the kubeconfig of the process with the roles.
func (s *starter) rolesKubeconfig() string {
	return filepath.Join(s.f.dir, karmadaDir, "kubeconfig")
}

// prepareIdentity writes the kubeconfig of the process with the roles, and what its
// user may do, which is what the roles together need.
func (s *starter) prepareIdentity(ctx context.Context, info ready.Info, c client.Client) error {
	// The authority for clients is that of the cluster.
	dir := pki.Dir(filepath.Join(s.f.dataDir(controlPlane), "pki"))
	var files [2][]byte
	for i, name := range []string{"ca.crt", "ca.key"} {
		data, err := os.ReadFile(dir.Path(name))
		if err != nil {
			return fmt.Errorf("reading the authority of the control plane: %w", err)
		}
		files[i] = data
	}
	ca, err := pki.ParsePair(files[0], files[1])
	if err != nil {
		return fmt.Errorf("reading the authority of the control plane in %s: %w", dir, err)
	}
	store := pki.Store{Storage: pki.Dir(s.certDir()), Now: s.Now}
	pair, err := store.Leaf("client", pki.LeafConfig{
		CommonName: components.UserOf(components.AllInOne), Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, ca)
	if err != nil {
		return fmt.Errorf("making the identity of the control plane's roles: %w", err)
	}
	cfg, err := pki.NewKubeconfig(pki.KubeconfigEntry{Context: controlPlane, User: rolesProcess, Server: info.Server, CA: files[0], Client: pair})
	if err != nil {
		return fmt.Errorf("making the identity of the control plane's roles: %w", err)
	}
	if err := pki.WriteKubeconfig(s.rolesKubeconfig(), cfg); err != nil {
		return err
	}
	applier := &apply.Applier{Client: c, Manager: fieldManager, Parallel: 16}
	if _, err := applier.Apply(ctx, components.SystemNamespaces()...); err != nil {
		return err
	}
	_, err = applier.Apply(ctx, components.ComponentRBAC(clusterv1alpha1.NamespaceKarmadaSystem, components.AllInOne)...)
	return err
}
