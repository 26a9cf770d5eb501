package agent

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/transport"
	"k8s.io/client-go/util/cert"

	"github.com/karmada-toolkit/karmada/internal/pki"
	"github.com/karmada-toolkit/karmada/pkg/member/registration"
	"github.com/karmada-toolkit/karmada/pkg/member/registration/agentcert"
)

const (
	// followInterval is the time between two reads of cluster-info, clusterInfoTimeout the limit of one.
	followInterval, clusterInfoTimeout = 30 * time.Second, 10 * time.Second
	// maxAuthorities is how many authorities are accepted.
	maxAuthorities = 10
)

// follower takes over the authorities that the control plane has in cluster-info.
type follower struct {
	plane *plane
	store kubeconfigStore
	log   logr.Logger
	// used are all authorities that were in use since the start.
	used []*x509.Certificate
	// logged is the last error, which is logged once.
	logged string
}

// follow takes over the authorities in cluster-info, and returns them in its order, and behind them all that were in use, or nil if
// they are not used.
func (f *follower) follow(ctx context.Context) []*x509.Certificate {
	present := f.plane.credentials.Authorities()
	if len(present) == 0 {
		return nil
	}
	bundle, err := f.plane.clusterInfo(ctx, present)
	inUse, _ := cert.ParseCertsPEM(present) // what cannot be parsed is replaced
	f.used = append(f.used, slices.DeleteFunc(slices.Clone(inUse), func(c *x509.Certificate) bool { return slices.ContainsFunc(f.used, c.Equal) })...)
	if err == nil && !sameCertificates(bundle, inUse) {
		err = f.takeOver(ctx, bundle)
	}
	if differs(&f.logged, err) && ctx.Err() == nil {
		f.log.Info("The authorities in cluster-info of the control plane are not used; the present ones stay in use", "err", err.Error())
	}
	if err != nil {
		return nil
	}
	return slices.Concat(bundle, f.used)
}

// takeOver stores authorities and uses them, if they verify the control plane. Those that cannot be stored are not used: the
// next start would not know them.
func (f *follower) takeOver(ctx context.Context, bundle []*x509.Certificate) error {
	var encoded []byte
	for _, c := range bundle {
		encoded = append(encoded, pki.EncodeCert(c)...)
	}
	if _, err := f.plane.clusterInfo(ctx, encoded); err != nil {
		return fmt.Errorf("the new authorities do not verify the control plane: %w", err)
	}
	if err := f.store.write(ctx, contents{authorities: encoded}); err != nil {
		return fmt.Errorf("storing the new authorities: %w", err)
	}
	if err := f.plane.credentials.UseAuthorities(encoded); err != nil {
		return err
	}
	f.log.Info("Took over the authorities of the control plane", "count", len(bundle))
	return nil
}

// clusterInfo returns the authorities in cluster-info. It reads them without credentials, since agents may have no right to, over
// a new connection that authorities in PEM form verify.
func (p *plane) clusterInfo(ctx context.Context, authorities []byte) ([]*x509.Certificate, error) {
	cfg := rest.AnonymousClientConfig(p.credentials.Config)
	cfg.CAData, cfg.RateLimiter = authorities, nil
	tlsConfig, err := rest.TLSConfigFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("reading the authorities: %w", err)
	}
	base := &http.Transport{TLSClientConfig: tlsConfig, DialContext: p.dial, Proxy: cfg.Proxy, DisableKeepAlives: true}
	if base.Proxy == nil {
		base.Proxy = http.ProxyFromEnvironment
	}
	core, err := corev1client.NewForConfigAndClient(cfg, &http.Client{
		Transport: transport.NewUserAgentRoundTripper(cfg.UserAgent, base), Timeout: clusterInfoTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	})
	if err != nil {
		return nil, fmt.Errorf("connecting to the control plane: %w", err)
	}
	if core.RESTClient().Get().URL().Scheme != "https" {
		return nil, errors.New("the control plane is not verified: the kubeconfig has an URL without https")
	}
	info, err := core.ConfigMaps(metav1.NamespacePublic).Get(ctx, registration.ClusterInfoName, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading ConfigMap %s/%s: %w", metav1.NamespacePublic, registration.ClusterInfoName, err)
	}
	return authoritiesOf([]byte(info.Data[registration.ClusterInfoKey]))
}

// authoritiesOf returns the authorities in the kubeconfig of cluster-info.
func authoritiesOf(kubeconfig []byte) ([]*x509.Certificate, error) {
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of %s: %w", registration.ClusterInfoName, err)
	}
	cluster := config.Clusters[""]
	if cluster == nil {
		return nil, errors.New("the kubeconfig of " + registration.ClusterInfoName + " has no cluster without a name")
	}
	bundle, err := cert.ParseCertsPEM(cluster.CertificateAuthorityData)
	if err != nil {
		return nil, fmt.Errorf("reading the authorities of %s: %w", registration.ClusterInfoName, err)
	}
	if len(bundle) > maxAuthorities {
		return nil, fmt.Errorf("%s has %d authorities, of %d at most", registration.ClusterInfoName, len(bundle), maxAuthorities)
	}
	return bundle, nil
}

// sameCertificates reports whether two bundles have the same certificates, in any order.
func sameCertificates(a, b []*x509.Certificate) bool {
	missingIn := func(all []*x509.Certificate) func(*x509.Certificate) bool {
		return func(c *x509.Certificate) bool { return !slices.ContainsFunc(all, c.Equal) }
	}
	return !slices.ContainsFunc(a, missingIn(b)) && !slices.ContainsFunc(b, missingIn(a))
}

// annotate sets the annotation with the certificate and the authorities of the agent, which `certs check` shows, or removes it if
// there is no certificate.
func (p *plane) annotate(lease *metav1.ObjectMeta) {
	delete(lease.Annotations, agentcert.StatusAnnotation)
	if leaf := p.credentials.Leaf(); leaf != nil {
		trusted, err := cert.ParseCertsPEM(p.credentials.Authorities())
		if err != nil {
			trusted = nil // those of the system
		}
		metav1.SetMetaDataAnnotation(lease, agentcert.StatusAnnotation, agentcert.StatusOf(leaf, trusted).String())
	}
}

// differs reports whether an error is another one than the last, which it replaces.
func differs(last *string, err error) bool {
	text := ""
	if err != nil {
		text = err.Error()
	}
	changed := err != nil && text != *last
	*last = text
	return changed
}
