package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"path/filepath"
	"time"
	_ "time/tzdata" // time zones of schedules are known in images without them

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/gates"
	"github.com/karmada-toolkit/karmada/internal/metrics"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
)

// Setup adds a server of its own to the manager, with the role's address and
// certificate.
func Setup(_ context.Context, mgr manager.Manager, o *Options) error {
	version, err := tlsVersion(o.TLSMinVersion)
	if err != nil {
		return err
	}
	certificate, err := servingCertificate(mgr, o)
	if err != nil {
		return err
	}
	clients, err := clientAuthorities(mgr, o)
	if err != nil {
		return err
	}
	server := ctrlwebhook.NewServer(ctrlwebhook.Options{
		Host: o.BindAddress, Port: o.SecurePort,
		TLSOpts: []func(*tls.Config){func(c *tls.Config) {
			c.MinVersion = version
			c.NextProtos = []string{"h2", "http/1.1"}
			c.GetCertificate = certificate.GetCertificate
			if clients != nil {
				verifyClients(c, clients)
			}
		}},
	})
	handlers, err := Handlers(Deps{
		NewID:          func() string { return string(uuid.NewUUID()) },
		Reader:         mgr.GetClient(),
		LiveReader:     mgr.GetAPIReader(),
		Writer:         mgr.GetClient(),
		Metrics:        ctrlmetrics.Registry,
		Clusters:       clusterNames(mgr.GetClient()),
		Served:         served(mgr.GetRESTMapper()),
		Access:         newAccess(mgr.GetClient(), mgr.GetRESTMapper()),
		AllowNoExecute: o.AllowNoExecuteTaintPolicy,
		Enforcement:    o.Gates.Enabled(gates.FederatedQuotaEnforcement),
		Components:     o.Gates.Enabled(gates.MultiplePodTemplatesScheduling),
	})
	if err != nil {
		return err
	}
	for path, handler := range o.protected(handlers) {
		server.Register(path, handler)
	}
	if err := mgr.Add(server); err != nil {
		return fmt.Errorf("adding the webhook server: %w", err)
	}
	return nil
}

// servingCertificate returns the certificate of the server, which is read again when its files change.
func servingCertificate(mgr manager.Manager, o *Options) (*certwatcher.CertWatcher, error) {
	watcher, err := certwatcher.New(filepath.Join(o.CertDir, o.CertName), filepath.Join(o.CertDir, o.KeyName))
	if err != nil {
		return nil, fmt.Errorf("reading the certificate of the webhook server (--cert-dir): %w", err)
	}
	metrics.Certificate("serving", "webhook", func() *x509.Certificate {
		if current, err := watcher.GetCertificate(nil); err == nil && current != nil {
			return current.Leaf
		}
		return nil
	})
	if err := mgr.Add(watcher); err != nil {
		return nil, fmt.Errorf("adding the certificate of the webhook server: %w", err)
	}
	return watcher, nil
}

// clientAuthorities returns the authorities of client certificates, which are read again when their file changes, and nil
// without --client-ca-file.
func clientAuthorities(mgr manager.Manager, o *Options) (dynamiccertificates.CAContentProvider, error) {
	if o.ClientCAFile == "" {
		return nil, nil
	}
	authorities, err := dynamiccertificates.NewDynamicCAContentFromFile("client-ca-file", o.ClientCAFile)
	if err != nil {
		return nil, fmt.Errorf("reading --client-ca-file: %w", err)
	}
	err = mgr.Add(controllers.Everywhere(func(ctx context.Context) error {
		authorities.Run(ctx, 1)
		return nil
	}))
	if err != nil {
		return nil, fmt.Errorf("adding the authorities of client certificates: %w", err)
	}
	return authorities, nil
}

// verifyClients has connections verified by the current authorities if clients present a certificate. Each path decides itself
// whether it needs one: kubelets, and API servers that convert, present none.
func verifyClients(c *tls.Config, authorities dynamiccertificates.CAContentProvider) {
	c.ClientAuth = tls.VerifyClientCertIfGiven
	c.SessionTicketsDisabled = true // a resumed session would not be verified again
	base := c.Clone()
	c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		current, ok := authorities.VerifyOptions()
		if !ok {
			return nil, errors.New("there are no authorities of client certificates")
		}
		own := base.Clone()
		own.ClientCAs = current.Roots
		return own, nil
	}
}

// served reports whether an API serves a kind. Errors other than a missing kind, such
// as those of an API server behind the control plane's, count as served.
func served(mapper meta.RESTMapper) func(apiVersion, kind string) bool {
	return func(apiVersion, kind string) bool {
		gv, err := schema.ParseGroupVersion(apiVersion)
		if err != nil {
			return false
		}
		_, err = mapper.RESTMapping(gv.WithKind(kind).GroupKind(), gv.Version)
		return !meta.IsNoMatchError(err)
	}
}

// lookupTimeout bounds the list of clusters: it only serves warnings.
const lookupTimeout = 100 * time.Millisecond

// clusterNames lists clusters from a cache, unless that is not filled yet.
func clusterNames(cached client.Reader) func(ctx context.Context) ([]string, bool) {
	return func(ctx context.Context) ([]string, bool) {
		ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
		defer cancel()
		var list clusterv1alpha1.ClusterList
		if err := cached.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, false
		}
		names := make([]string, len(list.Items))
		for i := range list.Items {
			names[i] = list.Items[i].Name
		}
		return names, true
	}
}
