package kubelite

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/rest"
	cliflag "k8s.io/component-base/cli/flag"
	aggregatorapiserver "k8s.io/kube-aggregator/pkg/apiserver"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
)

const serviceAccountIssuer = "https://kubernetes.default.svc.cluster.local"

// apiServerStopTimeout is how long connections that stay open, such as watches, hold up the end.
const apiServerStopTimeout = 200 * time.Millisecond

// apiServerArgs are the flags of kube-apiserver.
func apiServerArgs(cfg Config, certs certificates, etcd ExternalEtcd, port int) []string {
	args := []string{
		"--allow-privileged=true",
		"--authorization-mode=RBAC",
		"--advertise-address=" + advertiseAddress(cfg.BindAddress),
		"--bind-address=" + cfg.BindAddress,
		"--secure-port=" + strconv.Itoa(port),
		"--client-ca-file=" + certs.cert(certCA),
		"--enable-bootstrap-token-auth=true",
		"--endpoint-reconciler-type=none",
		// Simulated nodes have no kubelet; without an address to try, requests to their kubelets fail at once.
		"--kubelet-preferred-address-types=ExternalDNS",
		"--etcd-servers=" + strings.Join(etcd.Servers, ","),
		"--service-account-issuer=" + serviceAccountIssuer,
		"--service-account-key-file=" + certs.key(keyServiceAccount),
		"--service-account-signing-key-file=" + certs.key(keyServiceAccount),
		"--service-cluster-ip-range=" + cfg.ServiceClusterIPRange,
		"--proxy-client-cert-file=" + certs.cert(certFrontProxyClient),
		"--proxy-client-key-file=" + certs.key(certFrontProxyClient),
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-client-ca-file=" + certs.cert(certFrontProxyCA),
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-username-headers=" + remoteUserHeader,
		"--tls-cert-file=" + certs.cert(certServer),
		"--tls-private-key-file=" + certs.key(certServer),
		"--tls-min-version=VersionTLS13",
		// With one API server, these only write leases.
		"--feature-gates=APIServerIdentity=false,UnknownVersionInteroperabilityProxy=false",
	}
	for flag, value := range map[string]string{"cafile": etcd.CAFile, "certfile": etcd.CertFile, "keyfile": etcd.KeyFile, "prefix": etcd.Prefix} {
		if value != "" {
			args = append(args, "--etcd-"+flag+"="+value)
		}
	}
	if cfg.AdmissionConfigFile != "" {
		args = append(args, "--admission-control-config-file="+cfg.AdmissionConfigFile)
	}
	if cfg.Profile == ControlPlane {
		args = append(args, "--disable-admission-plugins=StorageObjectInUseProtection,ServiceAccount",
			// A custom resource has a cache for every version that is served, and the one that is not stored calls the
			// conversion webhook at each change, even without watches.
			"--watch-cache-sizes=resourcebindings.work.karmada.io#0,clusterresourcebindings.work.karmada.io#0")
	}
	return args
}

// advertiseAddress must be an address, but nothing uses it: no endpoints are kept for the kubernetes Service.
func advertiseAddress(bind string) string {
	if ip := net.ParseIP(bind); ip != nil && !ip.IsUnspecified() {
		return bind
	}
	return "127.0.0.1"
}

// newAPIServer builds the API server, which serves on listener.
func newAPIServer(ctx context.Context, args []string, listener net.Listener, self loopback) (*aggregatorapiserver.APIAggregator, error) {
	opts := options.NewServerRunOptions()
	if err := parse("kube-apiserver", opts.Flags(), args); err != nil {
		return nil, err
	}
	opts.SecureServing.Listener = listener
	if err := opts.GenericServerRunOptions.ComponentGlobalsRegistry.Set(); err != nil {
		return nil, err
	}
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	completed, err := opts.Complete(ctx)
	if err != nil {
		return nil, fmt.Errorf("completing kube-apiserver's options: %w", err)
	}
	if errs := completed.Validate(); len(errs) > 0 {
		return nil, fmt.Errorf("checking kube-apiserver's options: %w", utilerrors.NewAggregate(errs))
	}
	config, err := apiServerConfig(completed, self)
	if err != nil {
		return nil, fmt.Errorf("configuring kube-apiserver: %w", err)
	}
	config.KubeAPIs.ControlPlane.Generic.DisabledPostStartHooks.Insert(replacedHooks()...)
	for _, generic := range []*genericapiserver.Config{config.KubeAPIs.ControlPlane.Generic, &config.Aggregator.GenericConfig.Config, &config.ApiExtensions.GenericConfig.Config} {
		generic.EffectiveVersion = reportedVersion{generic.EffectiveVersion, kubernetesVersion()}
	}
	completedConfig, err := config.Complete()
	if err != nil {
		return nil, fmt.Errorf("configuring kube-apiserver: %w", err)
	}
	server, err := app.CreateServerChain(completedConfig)
	if err != nil {
		return nil, fmt.Errorf("making kube-apiserver: %w", err)
	}
	server.GenericAPIServer.ShutdownTimeout = apiServerStopTimeout
	return server, nil
}

// runAPIServer serves until ctx ends.
func runAPIServer(ctx context.Context, server *aggregatorapiserver.APIAggregator) error {
	prepared, err := server.PrepareRun()
	if err != nil {
		return fmt.Errorf("preparing kube-apiserver: %w", err)
	}
	return prepared.Run(ctx)
}

// parse sets a component's flags.
func parse(component string, flags cliflag.NamedFlagSets, args []string) error {
	fs := pflag.NewFlagSet(component, pflag.ContinueOnError)
	for _, set := range flags.FlagSets {
		fs.AddFlagSet(set)
	}
	if err := fs.Parse(args); err != nil {
		return fmt.Errorf("setting the flags of %s: %w", component, err)
	}
	return nil
}
