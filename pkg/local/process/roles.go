package process

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/apply"
	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/internal/kubelite/ready"
	"github.com/karmada-toolkit/karmada/internal/progress"
	"github.com/karmada-toolkit/karmada/internal/wait"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	searchv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/search/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
	"github.com/karmada-toolkit/karmada/pkg/local/federation"
	"github.com/karmada-toolkit/karmada/pkg/local/membership"
	"github.com/karmada-toolkit/karmada/pkg/local/settings"
	"github.com/karmada-toolkit/karmada/pkg/member/registration"
)

// rolesTimeout bounds how long the roles may take to be ready on a busy machine. A process that ends is reported at once.
const rolesTimeout = 5 * time.Minute

// roles starts the process with the roles of the control plane.
type roles struct {
	federation.Deps
	f        *federation.Federation
	program  string
	launcher *launcher
	certs    certs
}

// start makes sure that the roles of the control plane run and that its API is
// complete.
func (r *roles) start(ctx context.Context, info ready.Info) (err error) {
	const step = federation.Roles
	defer progress.Begin(ctx, r.Progress, step, &err)()
	ctx, cancel := context.WithTimeoutCause(ctx, rolesTimeout, fmt.Errorf("it is not ready after %s; its log is %s", rolesTimeout, r.f.Dir().Log(step)))
	defer cancel()
	cfg, c, err := membership.Connect(info.Kubeconfig)
	if err != nil {
		return err
	}
	var waiting atomic.Value
	waiting.Store("its servers to listen")
	defer wait.Publish(ctx, func() { r.Progress.Waiting(step, waiting.Load().(string)) })()
	err = retryEnded(func() error {
		alive, stop, err := r.ensure(ctx, info, c)
		if err != nil {
			return err
		}
		defer stop()
		waiting.Store("the API of the federation to be served")
		if err := r.awaitReady(alive, cfg); err != nil {
			return federation.Cause(alive, err)
		}
		if err := r.serveAddons(alive, cfg, c); err != nil {
			return federation.Cause(alive, err)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("starting %s: %w", step, err)
	}
	r.launcher.done(step)
	parts := "aggregated-apiserver, webhook, controller-manager, scheduler and metrics-adapter"
	if r.f.Search {
		parts = strings.Replace(parts, " and ", ", ", 1) + " and search"
	}
	r.Progress.Done(step, parts)
	return nil
}

// ensure starts the process unless it runs. The context that it returns ends with the process.
func (r *roles) ensure(ctx context.Context, info ready.Info, c client.Client) (alive context.Context, stop func(), err error) {
	p := process{federation.Roles, r.f.Dir()}
	found, running, err := r.launcher.running(ctx, p, r.args(info))
	if err != nil {
		return nil, nil, err
	}
	if !running {
		return r.launch(ctx, p, info, c)
	}
	alive, stop = p.during(ctx, found)
	if err := r.restore(alive, info, c); err != nil {
		defer stop()
		return nil, nil, federation.Cause(alive, err)
	}
	return alive, stop, nil
}

// restore writes what a running process needs to the control plane again: it may have been deleted by hand.
func (r *roles) restore(ctx context.Context, info ready.Info, c client.Client) error {
	ca, err := r.certs.authority()
	if err != nil {
		return err
	}
	applier, err := r.permit(ctx, c)
	if err != nil {
		return err
	}
	return r.install(ctx, info, applier, ca.CertPEM())
}

// permit writes the namespaces of the control plane and the rights of the process.
func (r *roles) permit(ctx context.Context, c client.Client) (*apply.Applier, error) {
	applier := &apply.Applier{Client: c, Manager: membership.FieldManager, Parallel: 16}
	if _, err := applier.Apply(ctx, components.SystemNamespaces()...); err != nil {
		return nil, err
	}
	_, err := applier.Apply(ctx, components.ComponentRBAC(clusterv1alpha1.NamespaceKarmadaSystem, append(components.CompactParts(), components.MetricsAdapter, components.Search)...)...)
	return applier, err
}

// launch starts the process while it writes what the process needs to the control
// plane. The context that it returns ends with the process.
func (r *roles) launch(ctx context.Context, p process, info ready.Info, c client.Client) (alive context.Context, stop func(), err error) {
	if err := r.f.ChoosePorts(federation.PortAggregated, federation.PortWebhook, federation.PortAdapter, federation.PortSearch, federation.PortHealth, federation.PortMetrics); err != nil {
		return nil, nil, err
	}
	ca, err := r.certs.serving()
	if err != nil {
		return nil, nil, err
	}
	if err := r.certs.roles(info); err != nil {
		return nil, nil, err
	}
	if err := r.certs.estimatorClient(); err != nil {
		return nil, nil, err
	}
	applier, err := r.permit(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	child, err := r.launcher.start(ctx, p, r.program, r.args(info))
	if err != nil {
		return nil, nil, err
	}
	alive, stop = child.during(ctx)
	if err := r.install(alive, info, applier, ca); err != nil {
		defer stop()
		return nil, nil, federation.Cause(alive, err)
	}
	return alive, stop, nil
}

// install writes the APIs, then, when their servers listen, what makes the API
// server call them.
func (r *roles) install(ctx context.Context, info ready.Info, applier *apply.Applier, ca []byte) error {
	webhookURL := "https://" + federation.Address(r.f.Port(federation.PortWebhook))
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
	for _, port := range []string{federation.PortWebhook, federation.PortAggregated} {
		if err := awaitListening(ctx, federation.Address(r.f.Port(port))); err != nil {
			return err
		}
	}
	objects = components.LocalServing(components.Serving{
		WebhookURL:     webhookURL,
		AggregatedHost: "localhost",
		AggregatedPort: r.f.Port(federation.PortAggregated),
		CABundle:       ca,
		FeatureGates:   components.FlagValues(roleSettings(r.f.Settings), "--controller-manager."+settings.GatesFlag),
	})
	if _, err := applier.Apply(ctx, objects...); err != nil {
		return err
	}
	_, err = applier.Prune(ctx, objects, components.PrunedWebhookConfigurations()...)
	return err
}

// serveAddons makes the API server call the metrics adapter and, if the federation has it, search. They serve only now, with
// the caches of the process; while an API is registered and not served, discovery is incomplete.
func (r *roles) serveAddons(ctx context.Context, cfg *rest.Config, c client.Client) error {
	ca, err := r.certs.authority()
	if err != nil {
		return err
	}
	serving := func(addon, port string) []client.Object {
		return components.AddonServing(addon, clusterv1alpha1.NamespaceKarmadaSystem, "localhost", int32(r.f.Port(port)), ca.CertPEM())
	}
	objects, search := serving(components.MetricsAdapter, federation.PortAdapter), serving(components.Search, federation.PortSearch)
	if r.f.Search {
		objects = append(objects, search...)
	} else {
		for _, o := range search {
			if err := client.IgnoreNotFound(c.Delete(ctx, o)); err != nil {
				return fmt.Errorf("removing what makes the API server call %s: %w", components.Search, err)
			}
		}
	}
	applier := &apply.Applier{Client: c, Manager: membership.FieldManager, Parallel: 4}
	if _, err = applier.Apply(ctx, objects...); err != nil || !r.f.Search {
		return err
	}
	return wait.Until(ctx, wait.Options{Interval: pollInterval}, func(ctx context.Context) error {
		return kube.CheckDiscovered(ctx, cfg, searchv1alpha1.GroupVersion)
	})
}

// bootstrap are the objects by which clusters register in Pull mode.
func bootstrap(kubeconfig string) ([]client.Object, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err == nil {
		err = rest.LoadTLSFiles(cfg)
	}
	if err != nil {
		return nil, fmt.Errorf("reading kubeconfig %s: %w", kubeconfig, err)
	}
	objects, err := registration.Bootstrap(cfg.Host, cfg.CAData)
	return append(objects, registration.Limits(components.Users())...), err
}

// args are the arguments of the process.
func (r *roles) args(info ready.Info) []string {
	// The API server that an earlier version of the program started presents no client
	// certificate to webhooks.
	record, alive := process{federation.ControlPlane, r.f.Dir()}.running()
	clientCA := alive && slices.ContainsFunc(record.Command, func(arg string) bool { return strings.HasPrefix(arg, admissionFlag) })
	return append(roleArgs(r.f, info, clientCA), roleSettings(r.f.Settings)...)
}

// roleArgs are the arguments of the process without the settings of the user.
func roleArgs(f *federation.Federation, info ready.Info, clientCA bool) []string {
	certs := certDir(f.Dir())
	port := func(name string) string { return fmt.Sprint(f.Port(name)) }
	args := []string{
		"all-in-one",
		"--kubeconfig=" + rolesKubeconfig(f.Dir()),
		"--leader-elect=false",
		"--health-probe-bind-address=" + federation.Address(f.Port(federation.PortHealth)),
		"--metrics-bind-address=" + federation.Address(f.Port(federation.PortMetrics)),
		"--aggregated-apiserver.bind-address=" + federation.Loopback,
		"--aggregated-apiserver.secure-port=" + port(federation.PortAggregated),
		"--aggregated-apiserver.etcd-servers=" + info.Etcd,
		"--aggregated-apiserver.tls-cert-file=" + filepath.Join(certs, federation.PortAggregated+".crt"),
		"--aggregated-apiserver.tls-private-key-file=" + filepath.Join(certs, federation.PortAggregated+".key"),
		"--aggregated-apiserver.allow-loopback-endpoints", // where all members are
		"--webhook.bind-address=" + federation.Loopback,
		"--webhook.secure-port=" + port(federation.PortWebhook),
		"--webhook.cert-dir=" + certs,
		"--webhook.tls-cert-file-name=" + federation.PortWebhook + ".crt",
		"--webhook.tls-private-key-file-name=" + federation.PortWebhook + ".key",
		"--metrics-adapter.bind-address=" + federation.Loopback,
		"--metrics-adapter.secure-port=" + port(federation.PortAdapter),
		"--metrics-adapter.tls-cert-file=" + filepath.Join(certs, federation.PortAdapter+".crt"),
		"--metrics-adapter.tls-private-key-file=" + filepath.Join(certs, federation.PortAdapter+".key"),
		// On one machine a cluster that answers again is healthy at once.
		"--controller-manager.cluster-success-threshold=1s",
		"--controller-manager.cluster-failure-threshold=10s",
		// With a threshold that short, a cluster that restarts again and again would be evicted each time.
		"--controller-manager.flap-window=5m",
	}
	if f.Estimators {
		args = append(args,
			"--scheduler.enable-scheduler-estimator",
			"--scheduler.scheduler-estimator-ca-file="+filepath.Join(certs, "ca.crt"),
			"--scheduler.scheduler-estimator-cert-file="+filepath.Join(certs, components.EstimatorClient+".crt"),
			"--scheduler.scheduler-estimator-key-file="+filepath.Join(certs, components.EstimatorClient+".key"),
		)
	}
	if f.Search {
		args = append(args,
			"--search.bind-address="+federation.Loopback,
			"--search.secure-port="+port(federation.PortSearch),
			"--search.etcd-servers="+info.Etcd,
			"--search.tls-cert-file="+filepath.Join(certs, federation.PortSearch+".crt"),
			"--search.tls-private-key-file="+filepath.Join(certs, federation.PortSearch+".key"),
		)
	}
	if clientCA {
		args = append(args, "--webhook.client-ca-file="+filepath.Join(certs, "ca.crt"))
	}
	return args
}

// awaitReady returns when the clusters can be listed and the process has its caches.
func (r *roles) awaitReady(ctx context.Context, cfg *rest.Config) error {
	clusters, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return fmt.Errorf("connecting to the control plane: %w", err)
	}
	for _, check := range []func(context.Context) error{
		func(ctx context.Context) error {
			return kube.CheckOK(ctx, clusters, cfg.Host+"/apis/"+clusterv1alpha1.GroupVersion.String()+"/clusters?limit=1")
		},
		func(ctx context.Context) error { return kube.CheckDiscovered(ctx, cfg, clusterv1alpha1.GroupVersion) },
		func(ctx context.Context) error {
			return kube.CheckOK(ctx, http.DefaultClient, "http://"+federation.Address(r.f.Port(federation.PortHealth))+"/readyz")
		},
	} {
		if err := wait.Until(ctx, wait.Options{Interval: pollInterval}, check); err != nil {
			return err
		}
	}
	return nil
}
