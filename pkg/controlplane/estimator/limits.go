package estimator

import (
	"context"
	"fmt"
	"net"
	"runtime/debug"
	"sync/atomic"
	"time"

	"golang.org/x/net/netutil"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// Limits of what clients may occupy.
const (
	// maxMessage is the limit of a request in bytes.
	maxMessage = 2 << 20
	// maxHeaders is the limit of the headers of a request in bytes.
	maxHeaders = 16 << 10
	// maxConnections is the number of open connections, maxStreams that of the requests of one, and maxRequests that of
	// all requests.
	maxConnections = 64
	maxStreams     = 64
	maxRequests    = 128
	// handshakeTimeout bounds the time until a connection is ready for requests.
	handshakeTimeout = 5 * time.Second
	// idleTimeout is how long a connection without requests stays open, pingTimeout how long one that does not answer.
	idleTimeout = 10 * time.Minute
	pingAfter   = 30 * time.Second
	pingTimeout = 10 * time.Second
	// minPing is the least time between two pings of a client.
	minPing = 5 * time.Second
)

// limited accepts a limited number of connections from a listener.
func limited(l net.Listener) net.Listener { return netutil.LimitListener(l, maxConnections) }

// serverOptions returns the options of the server. It returns an error if a certificate cannot be read.
func serverOptions(o *Options) ([]grpc.ServerOption, error) {
	config, err := tlsConfig(o)
	if err != nil {
		return nil, err
	}
	inFlight := &requests{}
	out := []grpc.ServerOption{
		grpc.MaxRecvMsgSize(maxMessage), grpc.MaxHeaderListSize(maxHeaders), grpc.MaxConcurrentStreams(maxStreams),
		grpc.ConnectionTimeout(handshakeTimeout),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: idleTimeout, Time: pingAfter, Timeout: pingTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minPing, PermitWithoutStream: true}),
		grpc.InTapHandle(inFlight.admit), grpc.UnaryInterceptor(recovered),
	}
	if config != nil {
		out = append(out, grpc.Creds(credentials.NewTLS(config)))
	}
	return out, nil
}

// requests counts the requests from their headers to their end, before their messages are read.
type requests struct{ count atomic.Int64 }

// admit refuses a request while there are too many.
func (r *requests) admit(ctx context.Context, _ *tap.Info) (context.Context, error) {
	if r.count.Add(1) > maxRequests {
		r.count.Add(-1)
		return nil, status.Errorf(codes.ResourceExhausted, "more than %d requests at the same time", maxRequests)
	}
	context.AfterFunc(ctx, func() { r.count.Add(-1) })
	return ctx, nil
}

// recovered answers a request whose handler panics with an error. The cause is only logged.
func recovered(ctx context.Context, in any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (out any, err error) {
	defer func() {
		if r := recover(); r != nil {
			log.FromContext(ctx).Error(fmt.Errorf("panic: %v", r), "Failed to handle a request", "stack", string(debug.Stack()))
			out, err = nil, status.Error(codes.Internal, "the request cannot be handled")
		}
	}()
	return handle(ctx, in)
}
