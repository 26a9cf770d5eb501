package kubelite

import (
	"context"
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
)

const (
	etcdName = "kubelite"
	// The single member elects itself within one election timeout, so a short one makes a start short. Nothing
	// depends on it later: there is no other member to hear from.
	etcdTick     = 50 * time.Millisecond
	etcdElection = 250 * time.Millisecond
	// The log kept in memory for followers that do not exist.
	etcdSnapshotCount   = 5000
	etcdCatchUpEntries  = 500
	etcdQuota           = 8 << 30
	etcdMaxRequestBytes = 1.5 * 1024 * 1024
	etcdReadyTimeout    = time.Minute
)

// etcdServer is an embedded etcd of one member, reached over a Unix socket that only its owner can open.
type etcdServer struct {
	endpoint string
	etcd     *embed.Etcd
	grpc     *grpc.Server
	cleanup  func()
}

// startEtcd returns as soon as the socket exists; requests wait until the member is ready, which the channel tells.
func startEtcd(cfg Config, dir *dataDir, log *zap.Logger) (*etcdServer, error) {
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
	server := &etcdServer{endpoint: "unix://" + socket, cleanup: cleanup}
	if server.etcd, err = startMember(etcdConfig(cfg, dir, log)); err != nil {
		_ = listener.Close()
		return nil, err
	}
	server.grpc = v3rpc.Server(server.etcd.Server, nil, nil)
	go func() {
		<-server.etcd.Server.ReadyNotify()
		if err := server.grpc.Serve(listener); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			log.Error("Serving etcd clients failed", zap.Error(err))
		}
	}()
	return server, nil
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
	ec.PreVote = false
	ec.ZapLoggerBuilder = embed.NewZapLoggerBuilder(log)
	return ec
}

// startMember starts the member. On damaged data etcd panics, which becomes an error here.
func startMember(ec *embed.Config) (etcd *embed.Etcd, err error) {
	defer func() {
		if p := recover(); p != nil {
			etcd, err = nil, etcdDataError(ec.Dir, fmt.Errorf("%v", p))
		}
	}()
	if etcd, err = embed.StartEtcd(ec); err != nil {
		return nil, etcdDataError(ec.Dir, err)
	}
	return etcd, nil
}

func etcdDataError(dir string, err error) error {
	return fmt.Errorf("etcd cannot use its data in %s: %w: put a copy of that directory back, or remove it to begin with an empty cluster", dir, err)
}

// wait returns when the member can serve.
func (s *etcdServer) wait(ctx context.Context) error {
	select {
	case <-s.etcd.Server.ReadyNotify():
		return nil
	case err := <-s.etcd.Err():
		return fmt.Errorf("running etcd: %w", err)
	case <-s.etcd.Server.StopNotify():
		return errors.New("etcd stopped while starting")
	case <-time.After(etcdReadyTimeout):
		return fmt.Errorf("etcd was not ready within %s", etcdReadyTimeout)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// stop ends the clients' connections and closes the database.
func (s *etcdServer) stop() {
	s.grpc.Stop()
	s.etcd.Close()
	s.cleanup()
}
