package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"time"
	_ "time/tzdata" // time zones of schedules are known in images without them

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/karmada-toolkit/karmada/internal/gates"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
)

// Setup adds a server of its own to the manager, with the role's address and
// certificate.
func Setup(_ context.Context, mgr manager.Manager, o *Options) error {
	version, err := tlsVersion(o.TLSMinVersion)
	if err != nil {
		return err
	}
	var clients *x509.CertPool
	if o.ClientCAFile != "" {
		if clients, err = loadClientCA(o.ClientCAFile); err != nil {
			return err
		}
	}
	server := ctrlwebhook.NewServer(ctrlwebhook.Options{
		Host: o.BindAddress, Port: o.SecurePort,
		CertDir: o.CertDir, CertName: o.CertName, KeyName: o.KeyName,
		TLSOpts: []func(*tls.Config){func(c *tls.Config) {
			c.MinVersion = version
			c.NextProtos = []string{"h2", "http/1.1"}
			if clients != nil {
				// Each path decides itself whether it needs one: kubelets, and API servers
				// that convert, present none.
				c.ClientCAs, c.ClientAuth = clients, tls.VerifyClientCertIfGiven
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
