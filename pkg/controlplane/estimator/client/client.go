// Package client calls the accurate estimators of clusters.
// Every cluster has a connection of its own, made in the background: an estimator
// that is slow or does not run does not delay the answers of the others.
package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/pflag"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"

	"github.com/karmada-toolkit/karmada/internal/limit"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/estimator/pb"
)

// Options configure the connections to estimators.
type Options struct {
	// Services finds a Service of the control plane; it returns a NotFound error
	// when there is none. Required.
	Services func(ctx context.Context, namespace, name string) (*corev1.Service, error)
	// Namespace is that of the Services, Prefix what their names begin with, before
	// a dash and the name of the cluster, and Port that of the Service.
	Namespace, Prefix string
	Port              int
	// Timeout bounds all requests for one binding. Default 3 s.
	Timeout time.Duration
	// CAFile has connections encrypted and servers checked; InsecureSkipVerify has
	// them encrypted only. CertFile and KeyFile are presented to servers. The files
	// are read for every connection.
	CertFile, KeyFile, CAFile string
	InsecureSkipVerify        bool
	// Dial connects to an address, for which the certificate of the server must be good. A name that does not exist is a
	// net.DNSError. Default is the network of this machine.
	Dial func(ctx context.Context, address string) (net.Conn, error)
}

// defaultTimeout is the Timeout of zero Options.
const defaultTimeout = 3 * time.Second

// dialTimeout bounds an attempt to connect to one address.
const dialTimeout = 5 * time.Second

// Pool holds the connections to estimators.
type Pool struct {
	options     Options
	credentials credentials.TransportCredentials

	clock clock.PassiveClock
	mu    sync.Mutex
	links map[string]*link
}

// NewPool returns a pool without connections. It fails when a file cannot be
// read.
func NewPool(o Options) (*Pool, error) {
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	if o.Dial == nil {
		o.Dial = DialNetwork
	}
	c, err := transport(o)
	if err != nil {
		return nil, err
	}
	return &Pool{options: o, credentials: c, clock: clock.RealClock{}, links: map[string]*link{}}, nil
}

// transport returns how connections are secured.
func transport(o Options) (credentials.TransportCredentials, error) {
	if o.CAFile == "" && !o.InsecureSkipVerify {
		return insecure.NewCredentials(), nil
	}
	first, err := readTLS(o)
	if err != nil {
		return nil, err
	}
	last := &atomic.Pointer[tls.Config]{}
	last.Store(first)
	return byAddress{credentials.NewTLS(first), func() *tls.Config {
		if config, err := readTLS(o); err == nil {
			last.Store(config)
		}
		return last.Load()
	}}, nil
}

// readTLS returns the configuration of a connection with the files as they are.
func readTLS(o Options) (*tls.Config, error) {
	config := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: o.InsecureSkipVerify, //nolint:gosec // an option of the user
	}
	if o.CAFile != "" {
		text, err := os.ReadFile(o.CAFile)
		if err != nil {
			return nil, fmt.Errorf("reading the CA of estimators: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s holds no certificate in PEM form", o.CAFile)
		}
	}
	if o.CertFile != "" && o.KeyFile != "" {
		pair, err := tls.LoadX509KeyPair(o.CertFile, o.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("reading the client certificate for estimators: %w", err)
		}
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	}
	return config, nil
}

// byAddress checks that the certificate of a server is for the address that was dialled.
type byAddress struct {
	credentials.TransportCredentials
	// current returns the configuration of the next connection; the last files stay in use while they cannot be read.
	current func() *tls.Config
}

// ClientHandshake implements credentials.TransportCredentials.
func (c byAddress) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	if d, ok := conn.(dialled); ok {
		authority = d.address
	}
	return credentials.NewTLS(c.current()).ClientHandshake(ctx, authority, conn)
}

// Clone implements credentials.TransportCredentials.
func (c byAddress) Clone() credentials.TransportCredentials {
	return byAddress{c.TransportCredentials.Clone(), c.current}
}

// dialled is a connection that knows whom it was made to.
type dialled struct {
	net.Conn
	address string
}

// link returns the connection to a cluster's estimator. It is made when it is used first, and again when it breaks.
func (p *Pool) link(cluster string) (*link, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l, ok := p.links[cluster]; ok {
		return l, nil
	}
	l := &link{clock: p.clock}
	reconnect := grpc.ConnectParams{Backoff: backoff.DefaultConfig, MinConnectTimeout: dialTimeout}
	reconnect.Backoff.MaxDelay = maxPause
	conn, err := grpc.NewClient("passthrough:///"+cluster,
		grpc.WithTransportCredentials(p.credentials), grpc.WithNoProxy(), grpc.WithConnectParams(reconnect),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			conn, err := p.dial(ctx, cluster)
			l.absent.Store(errors.Is(err, errAbsent))
			return conn, err
		}))
	if err != nil {
		return nil, fmt.Errorf("connecting to the estimator of cluster %s: %w", cluster, err)
	}
	l.conn = conn
	p.links[cluster] = l
	return l, nil
}

// Forget closes the connection to the estimator of a cluster that was deleted.
func (p *Pool) Forget(cluster string) {
	p.closeIf(func(other string) bool { return other == cluster })
}

// Keep closes the connections to the estimators of all clusters but some.
func (p *Pool) Keep(clusters sets.Set[string]) {
	p.closeIf(func(cluster string) bool { return !clusters.Has(cluster) })
}

func (p *Pool) closeIf(unused func(cluster string) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for cluster, l := range p.links {
		if unused(cluster) {
			_ = l.conn.Close()
			delete(p.links, cluster)
		}
	}
}

// Close closes all connections.
func (p *Pool) Close() { p.Keep(nil) }

// errAbsent is the error for a cluster that has no estimator: no Service of the control plane, and no name in its
// network.
var errAbsent = errors.New("the cluster has no estimator")

// dial connects to the first address of a cluster's estimator that answers.
func (p *Pool) dial(ctx context.Context, cluster string) (net.Conn, error) {
	addresses, err := p.addresses(ctx, cluster)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, address := range addresses {
		conn, err := p.options.Dial(ctx, address)
		if err == nil {
			return dialled{conn, address}, nil
		}
		errs = append(errs, err)
	}
	if !slices.ContainsFunc(errs, func(err error) bool { return !isUnknownHost(err) }) {
		return nil, errAbsent
	}
	// Several addresses may be those of one Service, and fail for one reason.
	errs = slices.CompactFunc(errs, func(a, b error) bool { return a.Error() == b.Error() })
	if len(errs) == 1 {
		return nil, errs[0]
	}
	return nil, utilerrors.NewAggregate(errs)
}

// DialNetwork connects to an address over the network of this machine.
func DialNetwork(ctx context.Context, address string) (net.Conn, error) {
	return (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, "tcp", address)
}

func isUnknownHost(err error) bool {
	dns, ok := errors.AsType[*net.DNSError](err)
	return ok && dns.IsNotFound
}

// addresses returns where the estimator of a cluster may be.
func (p *Pool) addresses(ctx context.Context, cluster string) ([]string, error) {
	name, port := p.options.Prefix+"-"+cluster, strconv.Itoa(p.options.Port)
	service, err := p.options.Services(ctx, p.options.Namespace, name)
	if apierrors.IsNotFound(err) {
		host := name + "." + p.options.Namespace + ".svc"
		return []string{net.JoinHostPort(host+".cluster.local", port), net.JoinHostPort(host, port)}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("getting service %s/%s: %w", p.options.Namespace, name, err)
	}
	if service.Spec.Type != corev1.ServiceTypeExternalName {
		return nil, fmt.Errorf("unsupported service type %q", service.Spec.Type)
	}
	for i := range service.Spec.Ports {
		if sp := &service.Spec.Ports[i]; int(sp.Port) == p.options.Port && sp.TargetPort.IntValue() > 0 {
			return []string{net.JoinHostPort(service.Spec.ExternalName, strconv.Itoa(sp.TargetPort.IntValue()))}, nil
		}
	}
	return nil, fmt.Errorf("service %s/%s has no port %s with a number as target", p.options.Namespace, name, port)
}

// about adds the object of a request to its metadata, for the log of the estimator.
func about(ctx context.Context, kind, namespace, name string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, pb.MetadataObject, fmt.Sprintf("kind=%s, name=%s/%s", kind, namespace, name))
}

// NewOptions returns the defaults of the flags.
func NewOptions() Options {
	return Options{Timeout: defaultTimeout, Namespace: clusterv1alpha1.NamespaceKarmadaSystem, Prefix: "karmada-scheduler-estimator", Port: 10352}
}

// AddFlags adds the flags of the roles that call estimators.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.DurationVar(&o.Timeout, "scheduler-estimator-timeout", o.Timeout, "How long to wait for the estimators.")
	fs.StringVar(&o.Namespace, "scheduler-estimator-service-namespace", o.Namespace, "Namespace of the estimators' Services.")
	fs.StringVar(&o.Prefix, "scheduler-estimator-service-prefix", o.Prefix, "What the names of the estimators' Services begin with; the name of the cluster follows.")
	fs.IntVar(&o.Port, "scheduler-estimator-port", o.Port, "Port of the estimators.")
	fs.StringVar(&o.CertFile, "scheduler-estimator-cert-file", o.CertFile, "Client certificate for the estimators.")
	fs.StringVar(&o.KeyFile, "scheduler-estimator-key-file", o.KeyFile, "Key of that certificate.")
	fs.StringVar(&o.CAFile, "scheduler-estimator-ca-file", o.CAFile, "CA of the estimators' certificates.")
	fs.BoolVar(&o.InsecureSkipVerify, "insecure-skip-estimator-verify", o.InsecureSkipVerify, "Do not check the estimators' certificates.")
}

// Validate reports settings that cannot work.
func (o *Options) Validate() error {
	var errs limit.Checks
	errs.Require(o.Timeout >= 0, "--scheduler-estimator-timeout is %s, must not be negative", o.Timeout)
	errs.Require(o.Port >= 0 && o.Port <= 65535, "--scheduler-estimator-port is %d, must be between 0 and 65535", o.Port)
	return errors.Join(errs...)
}
