package addons

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/karmada-toolkit/karmada/internal/pki"
	"github.com/karmada-toolkit/karmada/internal/version"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
	"github.com/karmada-toolkit/karmada/pkg/init/config"
	"github.com/karmada-toolkit/karmada/pkg/init/credentials"
	"github.com/karmada-toolkit/karmada/pkg/init/hostcluster"
	"github.com/karmada-toolkit/karmada/pkg/init/phases"
)

// planner reads what the objects of addons are made of.
type planner struct {
	deps    *Deps
	request *Request
	host    *hostcluster.Host
	outcome *phases.Outcome
	// cfg is what the objects are made of.
	cfg *components.Config
	// pki is where the certificates of an export are kept; empty without one.
	pki string
}

// plan returns what the objects of addons are made of, everything that can be checked being checked, and the clusters that get an
// estimator.
func (p *planner) plan(ctx context.Context, names []string) (*components.Config, []string, error) {
	if err := p.readConfig(ctx, names); err != nil {
		return nil, nil, err
	}
	var clusters []string
	for _, name := range names {
		var err error
		switch name {
		case components.Estimator:
			clusters, err = p.estimators(ctx)
		case components.Search:
			err = p.readStore(ctx)
			fallthrough
		default:
			p.setWorkload(name, name)
			if err == nil && len(components.AddonAPIs(name)) > 0 {
				err = p.setServerCertificate(ctx, name)
			}
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return p.cfg, clusters, nil
}

// readStore reads where the control plane stores its objects: from the arguments of its API server, which are the same for
// an etcd that was installed with it and for an external one.
func (p *planner) readStore(ctx context.Context) error {
	const servers, prefix = "--etcd-servers=", "--etcd-prefix="
	for _, key := range []string{"etcd-ca.crt", "etcd-client.crt", "etcd-client.key"} {
		if len(p.cfg.Certificates[key]) == 0 {
			return fmt.Errorf("secrets `%s` in namespace %s has no key %s; run \"%s init\" again, which adds what is missing", components.CertSecret, p.request.Namespace, key, p.deps.Program)
		}
	}
	d, err := p.host.API.AppsV1().Deployments(p.request.Namespace).Get(ctx, components.APIServer, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading the Deployment %s/%s, which names the etcd of the control plane: %w", p.request.Namespace, components.APIServer, err)
	}
	for _, c := range d.Spec.Template.Spec.Containers {
		for _, arg := range append(slices.Clone(c.Command), c.Args...) {
			if value, ok := strings.CutPrefix(arg, servers); ok {
				p.cfg.Etcd.ExternalServers = value
			}
			if value, ok := strings.CutPrefix(arg, prefix); ok {
				p.cfg.Etcd.KeyPrefix = value
			}
		}
	}
	if p.cfg.Etcd.ExternalServers == "" {
		return fmt.Errorf("the Deployment %s/%s has no argument %s, by which %s would find the etcd of the control plane; run \"%s init\" again", p.request.Namespace, components.APIServer, strings.TrimSuffix(servers, "="), components.Search, p.deps.Program)
	}
	return nil
}

// readConfig reads what the objects are made of, without settings of pods.
func (p *planner) readConfig(ctx context.Context, names []string) error {
	cfg := &components.Config{
		Namespace: p.request.Namespace, Domain: p.request.Config.Host.Domain, IPv6: components.IPv6(p.host.Facts.IPv6),
		Workloads: map[string]components.Workload{}, Certificates: maps.Clone(p.host.Facts.Certificates), Kubeconfigs: map[string][]byte{},
	}
	for _, name := range names {
		if name == components.Estimator {
			continue
		}
		secret, err := p.host.API.CoreV1().Secrets(p.request.Namespace).Get(ctx, name+"-config", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return p.missingSecret(name + "-config")
		}
		if err != nil {
			return fmt.Errorf("reading the kubeconfig of %s: %w", name, err)
		}
		for _, kubeconfig := range secret.Data {
			cfg.Kubeconfigs[name] = kubeconfig
		}
	}
	if len(cfg.Certificates) == 0 {
		return p.missingSecret(components.CertSecret)
	}
	for _, key := range []string{"ca.crt", "ca.key", components.EstimatorClient + ".crt", components.EstimatorClient + ".key"} {
		if len(cfg.Certificates[key]) == 0 {
			return fmt.Errorf("secrets `%s` in namespace %s has no key %s; run \"%s init\" again, which adds what is missing", components.CertSecret, p.request.Namespace, key, p.deps.Program)
		}
	}
	if d, err := p.host.API.AppsV1().Deployments(p.request.Namespace).Get(ctx, components.APIServer, metav1.GetOptions{}); err == nil {
		for _, s := range d.Spec.Template.Spec.ImagePullSecrets {
			cfg.PullSecrets = append(cfg.PullSecrets, s.Name)
		}
	}
	p.cfg = cfg
	return nil
}

func (p *planner) missingSecret(name string) error {
	return fmt.Errorf("secrets `%s` is not found in namespace %s, please execute %s init to deploy karmada first", name, p.request.Namespace, p.deps.Program)
}

// setWorkload sets the pods of a workload of an addon.
func (p *planner) setWorkload(addon, workload string) {
	c := &p.request.Config
	i := slices.IndexFunc(c.AddonParts(), func(p config.Part) bool { return p.Name == addon })
	part := c.AddonParts()[i]
	missing := c.UseBuild(version.Get(), p.host.Facts.Images(), []config.Part{part})
	if hint := config.ImageHint(p.deps.Program, missing); hint != "" && addon == workload {
		p.outcome.Note("%s", hint)
	}
	p.cfg.Workloads[workload] = phases.WorkloadOf(c, part)
}

// estimators returns the clusters that get an estimator.
func (p *planner) estimators(ctx context.Context) ([]string, error) {
	cp, err := p.deps.ControlPlane(ctx)
	if err != nil {
		return nil, err
	}
	m := &members{
		selection: &p.request.Selection, program: p.deps.Program, controlPlane: cp,
		kubeconfig: p.request.MemberKubeconfig, outcome: p.outcome,
	}
	clusters, err := m.clusters(ctx)
	if err != nil {
		return nil, err
	}
	var out []string
	var errs []error
	for _, cluster := range clusters {
		kubeconfig, err := m.estimatorKubeconfig(ctx, &cluster)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		workload := components.EstimatorWorkload(cluster.Name)
		p.cfg.Kubeconfigs[workload] = kubeconfig
		p.setWorkload(components.Estimator, workload)
		if err := p.setServerCertificate(ctx, workload); err != nil {
			return nil, err
		}
		out = append(out, cluster.Name)
	}
	return out, errors.Join(errs...)
}

// setServerCertificate loads the certificate of a server from its Secret, or makes it.
func (p *planner) setServerCertificate(ctx context.Context, workload string) error {
	secret, err := p.host.API.CoreV1().Secrets(p.request.Namespace).Get(ctx, components.AddonCertSecret(workload), metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading the certificate of %s: %w", workload, err)
	}
	if err == nil {
		p.cfg.Certificates[workload+".crt"], p.cfg.Certificates[workload+".key"] = secret.Data[components.AddonCert], secret.Data[components.AddonKey]
	} else if p.pki != "" {
		if err := p.keptCertificate(workload); err != nil {
			return err
		}
	}
	store := pki.Store{Storage: credentials.Present(p.cfg.Certificates), Now: p.deps.Now}
	ca, err := store.CA("ca", pki.CAConfig{CommonName: "karmada"})
	if err != nil {
		return fmt.Errorf("reading the authority of the control plane: %w", err)
	}
	_, err = store.Leaf(workload, pki.LeafConfig{
		CommonName: workload, Hosts: credentials.ServiceNames(p.request.Namespace, p.request.Config.Host.Domain, workload), Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, ca)
	if err != nil {
		return fmt.Errorf("making the certificate of %s: %w", workload, err)
	}
	if p.pki != "" {
		return p.keepCertificate(workload)
	}
	return nil
}

// keptCertificate reads the certificate of a workload that an earlier export made, if there is one.
func (p *planner) keptCertificate(workload string) error {
	for _, end := range []string{".crt", ".key"} {
		data, err := os.ReadFile(filepath.Join(p.pki, workload+end))
		if err != nil && !os.IsNotExist(err) {
			return fmt.Errorf("reading the certificate of %s: %w", workload, err)
		}
		p.cfg.Certificates[workload+end] = data
	}
	return nil
}

// keepCertificate writes the certificate of a workload for the next export.
func (p *planner) keepCertificate(workload string) error {
	for _, end := range []string{".crt", ".key"} {
		if err := pki.WriteFile(filepath.Join(p.pki, workload+end), p.cfg.Certificates[workload+end], 0o600); err != nil {
			return fmt.Errorf("writing the certificate of %s: %w", workload, err)
		}
	}
	return nil
}
