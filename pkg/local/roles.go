package local

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/apply"
	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/internal/kubelite/ready"
	"github.com/karmada-toolkit/karmada/internal/pki"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
	"github.com/karmada-toolkit/karmada/pkg/member/registration"
)

// fieldManager owns what the start of a federation writes.
const fieldManager = "karmadactl-local"

// roles makes sure that the roles of the control plane run and that its API is
// complete.
func (s *starter) roles(ctx context.Context, info ready.Info) error {
	s.Progress.Begin(rolesProcess)
	ctx, cancel := context.WithTimeoutCause(ctx, rolesLimit, fmt.Errorf("it is not ready after %s; its log is %s", rolesLimit, s.f.log(rolesProcess)))
	defer cancel()
	cfg, c, err := connect(info.Kubeconfig)
	if err != nil {
		return err
	}
	p := s.f.process(rolesProcess)
	waiting := "its servers to listen"
	defer s.remind(ctx, rolesProcess, func() string { return waiting })()
	_, running, err := s.running(ctx, p, append(s.roleArgs(info), s.f.settingArgs(false)...))
	if err != nil {
		return err
	}
	if !running {
		alive, stop, err := s.startRoles(ctx, p, info, c)
		if err != nil {
			return fmt.Errorf("starting %s: %w", rolesProcess, err)
		}
		defer stop()
		ctx = alive
	}
	waiting = "the API of the federation to be served"
	if err := s.waitForRoles(ctx, cfg); err != nil {
		return fmt.Errorf("starting %s: %w", rolesProcess, cause(ctx, err))
	}
	s.Progress.Done(rolesProcess, "aggregated-apiserver, webhook, controller-manager and scheduler")
	return nil
}

// startRoles starts the process while it writes what the process needs to the
// control plane. The context that it returns ends with the process.
func (s *starter) startRoles(ctx context.Context, p process, info ready.Info, c client.Client) (alive context.Context, stop func(), err error) {
	if err := s.choosePorts(rolePorts()...); err != nil {
		return nil, nil, err
	}
	ca, err := s.certificates()
	if err != nil {
		return nil, nil, err
	}
	if err := s.prepareIdentity(ctx, info, c); err != nil {
		return nil, nil, err
	}
	child, err := s.start(ctx, p, s.bin.karmada, append(s.roleArgs(info), s.f.settingArgs(false)...)...)
	if err != nil {
		return nil, nil, err
	}
	alive, stop = child.during(ctx)
	if err := s.install(alive, info, c, ca); err != nil {
		defer stop()
		return nil, nil, cause(alive, err)
	}
	return alive, stop, nil
}

// install writes the APIs, then, when their servers listen, what makes the API
// server call them.
func (s *starter) install(ctx context.Context, info ready.Info, c client.Client, ca []byte) error {
	applier := &apply.Applier{Client: c, Manager: fieldManager, Parallel: 16}
	webhookURL := "https://" + s.f.address(portWebhook)
	objects, err := components.CRDs(webhookURL, ca)
	if err != nil {
		return err
	}
	objects = append(objects, components.FederationRBAC()...)
	bootstrap, err := bootstrap(info.Kubeconfig)
	if err != nil {
		return err
	}
	objects = append(objects, bootstrap...)
	if _, err := applier.Apply(ctx, objects...); err != nil {
		return err
	}
	for _, port := range []string{portWebhook, portAggregated} {
		if err := dial(ctx, s.f.address(port)); err != nil {
			return err
		}
	}
	_, err = applier.Apply(ctx, components.LocalServing(components.Serving{
		WebhookURL:     webhookURL,
		AggregatedHost: "localhost",
		AggregatedPort: s.f.Ports[portAggregated],
		CABundle:       ca,
	})...)
	return err
}

// bootstrap is what lets clusters register in Pull mode.
func bootstrap(kubeconfig string) ([]client.Object, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err == nil {
		err = rest.LoadTLSFiles(cfg)
	}
	if err != nil {
		return nil, fmt.Errorf("reading kubeconfig %s: %w", kubeconfig, err)
	}
	return registration.Bootstrap(cfg.Host, cfg.CAData)
}

// roleArgs are the arguments of the process.
func (s *starter) roleArgs(info ready.Info) []string {
	certs := s.certDir()
	port := func(name string) string { return fmt.Sprint(s.f.Ports[name]) }
	args := []string{
		"all-in-one",
		"--kubeconfig=" + s.rolesKubeconfig(),
		"--leader-elect=false",
		"--health-probe-bind-address=" + s.f.address(portHealth),
		"--metrics-bind-address=" + s.f.address(portMetrics),
		"--aggregated-apiserver.bind-address=" + loopback,
		"--aggregated-apiserver.secure-port=" + port(portAggregated),
		"--aggregated-apiserver.etcd-servers=" + info.Etcd,
		"--aggregated-apiserver.tls-cert-file=" + filepath.Join(certs, portAggregated+".crt"),
		"--aggregated-apiserver.tls-private-key-file=" + filepath.Join(certs, portAggregated+".key"),
		"--aggregated-apiserver.allow-loopback-endpoints", // where all members are
		"--webhook.bind-address=" + loopback,
		"--webhook.secure-port=" + port(portWebhook),
		"--webhook.cert-dir=" + certs,
		"--webhook.tls-cert-file-name=" + portWebhook + ".crt",
		"--webhook.tls-private-key-file-name=" + portWebhook + ".key",
		// On one machine a cluster that answers again is well at once.
		"--controller-manager.cluster-success-threshold=1s",
		"--controller-manager.cluster-failure-threshold=10s",
	}
	if s.identifiesItself() {
		args = append(args, "--webhook.client-ca-file="+filepath.Join(certs, "ca.crt"))
	}
	return args
}

func (s *starter) certDir() string { return filepath.Join(s.f.dir, karmadaDir, "pki") }

// certificates makes sure that the servers have certificates and returns their
// authority.
func (s *starter) certificates() ([]byte, error) {
	ca, err := s.authority()
	if err != nil {
		return nil, err
	}
	store := pki.Store{Storage: pki.Dir(s.certDir()), Now: s.Now}
	service := "karmada-aggregated-apiserver." + clusterv1alpha1.NamespaceKarmadaSystem + ".svc"
	for _, name := range []string{portAggregated, portWebhook} {
		_, err := store.Leaf(name, pki.LeafConfig{
			CommonName: "karmada-" + name,
			Hosts:      []string{"localhost", loopback, service},
			Usages:     []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		}, ca)
		if err != nil {
			return nil, fmt.Errorf("making certificates: %w", err)
		}
	}
	return ca.CertPEM(), nil
}

// waitForRoles returns when the clusters can be listed and the process has its
// caches.
func (s *starter) waitForRoles(ctx context.Context, cfg *rest.Config) error {
	clusters, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return fmt.Errorf("connecting to the control plane: %w", err)
	}
	api := cfg.Host + "/apis/" + clusterv1alpha1.GroupVersion.String() + "/clusters?limit=1"
	if err := pollOK(ctx, clusters, api); err != nil {
		return err
	}
	if err := poll(ctx, func() error { return announced(cfg) }); err != nil {
		return err
	}
	return pollOK(ctx, http.DefaultClient, "http://"+s.f.address(portHealth)+"/readyz")
}

// announced returns nil when clients that look for the kinds of the control plane
// find clusters among them. After a restart of the API server that can be later than
// when they can be listed.
func announced(cfg *rest.Config) error {
	found, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return fmt.Errorf("connecting to the control plane: %w", err)
	}
	_, lists, err := found.ServerGroupsAndResources() // kinds of others may be missing
	for _, list := range lists {
		if list.GroupVersion == clusterv1alpha1.GroupVersion.String() && len(list.APIResources) > 0 {
			return nil
		}
	}
	return errors.Join(fmt.Errorf("the control plane does not announce %s yet", clusterv1alpha1.GroupVersion), err)
}

// pollOK asks until the answer is 200.
func pollOK(ctx context.Context, c *http.Client, url string) error {
	return poll(ctx, func() error { return askOK(ctx, c, url) })
}

// askOK asks once; an answer that is not 200 is an error.
func askOK(ctx context.Context, c *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	resp, err := c.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // only the status counts
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, resp.Status)
	}
	return nil
}

// dial waits for a port to be listened on.
func dial(ctx context.Context, address string) error {
	return poll(ctx, func() error {
		conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", address)
		if err != nil {
			return err
		}
		return conn.Close()
	})
}

// poll tries every 20 ms.
func poll(ctx context.Context, try func() error) error {
	return pollEvery(ctx, 20*time.Millisecond, try)
}

func pollEvery(ctx context.Context, pause time.Duration, try func() error) error {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w (last: %w)", context.Cause(ctx), err)
		case <-tick.C:
		}
	}
}

// connect returns clients of the cluster of a kubeconfig.
func connect(kubeconfig string) (*rest.Config, client.Client, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, nil, fmt.Errorf("reading kubeconfig %s: %w", kubeconfig, err)
	}
	cfg.QPS, cfg.Burst = -1, 0
	c, err := client.New(cfg, client.Options{Scheme: kube.NewScheme()})
	if err != nil {
		return nil, nil, fmt.Errorf("connecting to %s: %w", cfg.Host, err)
	}
	return cfg, c, nil
}
