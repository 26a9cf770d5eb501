package kubelite

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3rpc"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
)

const (
	etcdName = "kubelite"
	// The single member elects itself within one election timeout, so a short one makes a start short. Nothing depends
	// on it later: there is no other member.
	etcdTick     = 50 * time.Millisecond
	etcdElection = 250 * time.Millisecond
	// The log kept in memory for followers that do not exist.
	etcdSnapshotCount   = 5000
	etcdCatchUpEntries  = 500
	etcdQuota           = 8 << 30
	slowRequest         = 2 * time.Second
	etcdMaxRequestBytes = 1.5 * 1024 * 1024
	etcdReadyTimeout    = time.Minute
)

// etcdServer is an embedded etcd of one member, reached over a Unix socket that only its owner can open.
type etcdServer struct {
	endpoint string
	listener net.Listener
	cleanup  func()
	// failed receives the reason when the member does not start or ends later.
	failed chan error
	// started is closed when the member serves; the fields below are set then.
	started chan struct{}
	etcd    *embed.Etcd
	grpc    *grpc.Server
}

// startEtcd returns as soon as there is a socket to connect to. Requests wait there until the member serves.
func startEtcd(cfg Config, dir *dataDir, logs logs) (*etcdServer, error) {
	socket, cleanup, err := dir.socketPath()
	if err != nil {
		return nil, err
	}
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("removing an old socket: %w", err)
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return nil, fmt.Errorf("listening for etcd clients: %w", err)
	}
	if err := os.Chmod(socket, 0o600); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	server := &etcdServer{
		endpoint: "unix://" + socket, listener: listener, cleanup: cleanup,
		failed: make(chan error, 1), started: make(chan struct{}),
	}
	gaveUp := make(chan error, 1)
	go server.run(etcdConfig(cfg, dir, logs.etcd(gaveUp)), gaveUp)
	return server, nil
}

// run starts the member, serves its clients and waits for its failure.
func (s *etcdServer) run(ec *embed.Config, gaveUp <-chan error) {
	etcd, err := startMember(ec, gaveUp)
	if err != nil {
		s.failed <- err
		return
	}
	s.etcd, s.grpc = etcd, v3rpc.Server(etcd.Server, nil, nil, keepalivePolicy(ec))
	close(s.started)
	go func() { s.failed <- fmt.Errorf("etcd gave up: %w", <-gaveUp) }()
	_ = s.grpc.Serve(s.listener) // it ends by stop only
}

// keepalivePolicy returns the shortest interval of pings that clients may use, as
// etcd's own listeners have it. gRPC's default is five minutes, and API servers ping
// every 30 seconds.
func keepalivePolicy(ec *embed.Config) grpc.ServerOption {
	return grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: ec.GRPCKeepAliveMinTime})
}

func etcdConfig(cfg Config, dir *dataDir, log *zap.Logger) *embed.Config {
	ec := embed.NewConfig()
	ec.Name = etcdName
	ec.Dir = dir.join("etcd")
	// Nothing listens for peers; the address is only written into the membership.
	peer := url.URL{Scheme: "http", Host: "localhost:2380"}
	ec.ListenPeerUrls = nil
	ec.ListenClientUrls = nil
	ec.AdvertisePeerUrls = []url.URL{peer}
	ec.AdvertiseClientUrls = []url.URL{{Scheme: "http", Host: "localhost:2379"}}
	ec.InitialCluster = etcdName + "=" + peer.String()
	ec.TickMs = uint(etcdTick.Milliseconds())
	ec.ElectionMs = uint(etcdElection.Milliseconds())
	ec.SnapshotCount = etcdSnapshotCount
	ec.SnapshotCatchUpEntries = etcdCatchUpEntries
	ec.QuotaBackendBytes = etcdQuota
	ec.MaxRequestBytes = etcdMaxRequestBytes
	ec.UnsafeNoFsync = !cfg.FSync
	ec.EnableGRPCGateway = false
	// The zero value would log every request.
	ec.WarningUnaryRequestDuration = slowRequest
	ec.PreVote = false
	ec.ZapLoggerBuilder = embed.NewZapLoggerBuilder(log)
	return ec
}

// startMember starts the member and waits until it can serve. On damaged data etcd gives up in one of its
// goroutines or panics, which both become an error here.
func startMember(ec *embed.Config, gaveUp <-chan error) (*embed.Etcd, error) {
	type result struct {
		etcd *embed.Etcd
		err  error
	}
	started := make(chan result, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				started <- result{err: fmt.Errorf("%v", p)}
			}
		}()
		etcd, err := embed.StartEtcd(ec)
		if err == nil {
			<-etcd.Server.ReadyNotify()
		}
		started <- result{etcd, err}
	}()
	var failure error
	select {
	case r := <-started:
		if r.err == nil {
			return r.etcd, nil
		}
		failure = r.err
	case failure = <-gaveUp:
	case <-time.After(etcdReadyTimeout):
		failure = fmt.Errorf("not ready within %s", etcdReadyTimeout)
	}
	return nil, etcdDataError(ec.Dir, failure)
}

func etcdDataError(dir string, err error) error {
	return fmt.Errorf("etcd cannot use its data in %s: %w: put a copy of that directory back, or remove it to begin with an empty cluster", dir, err)
}

// stop ends the clients' connections and closes the database. A member that does not serve yet is left behind.
func (s *etcdServer) stop() {
	select {
	case <-s.started:
		s.grpc.Stop()
		s.etcd.Close()
	default:
		_ = s.listener.Close()
	}
	s.cleanup()
}
