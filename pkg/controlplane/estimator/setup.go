package estimator

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync/atomic"

	"google.golang.org/grpc"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/karmada-toolkit/karmada/internal/gates"
	sharedmetrics "github.com/karmada-toolkit/karmada/internal/metrics"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/estimator/pb"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
)

// Setup adds the role to the manager, whose cluster is the member.
func Setup(ctx context.Context, mgr manager.Manager, o *Options) error {
	logger := log.FromContext(ctx).WithName("estimator").WithValues("Cluster", o.ClusterName)
	for _, f := range o.Gates.Changed(withoutEffect()...) {
		logger.Info("Setting has no effect in this role", "setting", fmt.Sprintf("--feature-gates=%s=%v", f, o.Gates.Enabled(f)))
	}
	if o.CertFile == "" {
		logger.Info("Connections are not encrypted and every client is answered; set --grpc-auth-cert-file, --grpc-auth-key-file and --grpc-client-ca-file")
	} else if !o.verifiesClients() {
		logger.Info("Every client is answered; set --grpc-client-ca-file")
	}
	m, err := access.NewMember(o.ClusterName, mgr.GetConfig(), nil)
	if err != nil {
		return err
	}
	observed := newCluster(m, o.Gates.Enabled(gates.ResourceQuotaEstimate))
	options, err := serverOptions(o)
	if err != nil {
		return err
	}
	s := &server{
		clusterName: o.ClusterName, cluster: observed, overcommit: o.Gates.Enabled(gates.SchedulingOvercommitProtection),
		slots: make(chan struct{}, o.parallelism()), clock: clock.RealClock{}, metrics: newMetrics(ctrlmetrics.Registry), log: logger,
	}
	for _, r := range []manager.RunnableFunc{
		func(ctx context.Context) error {
			observed.run(log.IntoContext(ctx, logger))
			return nil
		},
		func(ctx context.Context) error { return listen(ctx, o, s, options) },
	} {
		if err := mgr.Add(r); err != nil {
			return fmt.Errorf("adding the estimator: %w", err)
		}
	}
	if err := mgr.AddReadyzCheck("cluster", func(*http.Request) error { return observed.ready() }); err != nil {
		return fmt.Errorf("adding the readiness probe: %w", err)
	}
	return nil
}

func (o *Options) parallelism() int {
	if o.Parallelism == 0 {
		return defaultParallelism
	}
	return o.Parallelism
}

// listen serves until ctx ends.
func listen(ctx context.Context, o *Options, s *server, options []grpc.ServerOption) error {
	address := net.JoinHostPort(o.BindAddress, strconv.Itoa(o.Port))
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("listening for schedulers at %s: %w", address, err)
	}
	return serve(ctx, listener, s, options)
}

// serve answers the requests that come to a listener until ctx ends.
func serve(ctx context.Context, listener net.Listener, s *server, options []grpc.ServerOption) error {
	g := grpc.NewServer(options...)
	pb.RegisterEstimatorServer(g, s)
	defer context.AfterFunc(ctx, g.Stop)()
	if err := g.Serve(limited(listener)); err != nil && ctx.Err() == nil {
		return fmt.Errorf("serving schedulers: %w", err)
	}
	return nil
}

// tlsConfig returns the configuration of connections; nil if they are not encrypted. The files are read for every
// connection, so that renewed ones count at once; the last ones stay in use while they cannot be read. It returns an error
// if they cannot be read now.
func tlsConfig(o *Options) (*tls.Config, error) {
	if o.CertFile == "" {
		return nil, nil
	}
	first, err := readTLS(o)
	if err != nil {
		return nil, err
	}
	var last atomic.Pointer[tls.Config]
	last.Store(first)
	current := func() *tls.Config {
		if config, err := readTLS(o); err == nil {
			last.Store(config)
		}
		return last.Load()
	}
	sharedmetrics.Certificate("serving", "scheduler-estimator", func() *x509.Certificate { return current().Certificates[0].Leaf })
	return &tls.Config{
		MinVersion:         tls.VersionTLS13,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return current(), nil },
	}, nil
}

func readTLS(o *Options) (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(o.CertFile, o.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate of the server (--grpc-auth-cert-file, --grpc-auth-key-file): %w", err)
	}
	// Sessions are not resumed: every connection is checked against the current files.
	c := &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2"}, SessionTicketsDisabled: true}
	if !o.verifiesClients() {
		return c, nil
	}
	text, err := os.ReadFile(o.ClientCAFile)
	if err != nil {
		return nil, fmt.Errorf("reading the authorities of clients (--grpc-client-ca-file): %w", err)
	}
	c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
	if !c.ClientCAs.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s (--grpc-client-ca-file) has no certificate in PEM form", o.ClientCAFile)
	}
	if len(o.ClientAllowedNames) > 0 {
		c.VerifyConnection = func(s tls.ConnectionState) error {
			if !slices.Contains(o.ClientAllowedNames, s.PeerCertificates[0].Subject.CommonName) {
				return errors.New("the client's certificate has a name that is not among --grpc-client-allowed-names")
			}
			return nil
		}
	}
	return c, nil
}
