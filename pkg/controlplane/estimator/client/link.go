package client

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/utils/clock"

	"github.com/karmada-toolkit/karmada/internal/plaintext"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/estimator/pb"
)

// An estimator that is not reachable, or does not answer in time, is not called again for a pause, which doubles with every
// failure. Requests meanwhile fail at once, so that it delays one decision in a while and not each of them.
const (
	firstPause = 250 * time.Millisecond
	maxPause   = 10 * time.Second
)

// maxProblem is the limit of the text of an error in bytes.
const maxProblem = 256

// link is the connection to one estimator.
type link struct {
	conn  *grpc.ClientConn
	clock clock.PassiveClock
	// absent is set if there was no estimator to connect to.
	absent atomic.Bool

	mu sync.Mutex
	// failures is the number of calls without an answer since the last one; last is the newest error.
	failures int
	last     error
	// until is the end of the pause; probing is set while a call finds out whether the estimator answers again.
	until   time.Time
	probing bool
}

// call calls the estimator, unless it did not answer just now.
func (l *link) call(ctx context.Context, method func(context.Context, pb.EstimatorClient) (int32, error)) (int32, error) {
	if err := l.admit(); err != nil {
		return 0, err
	}
	n, err := method(ctx, pb.NewEstimatorClient(l.conn))
	if err != nil {
		// The text is the estimator's.
		err = status.Error(status.Code(err), plaintext.Line(status.Convert(err).Message(), maxProblem))
	}
	l.done(ctx, err)
	return n, err
}

func (l *link) admit() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failures == 0 {
		return nil
	}
	if l.probing || l.clock.Now().Before(l.until) {
		return l.last
	}
	l.probing = true
	return nil
}

// done takes the result of a call.
func (l *link) done(ctx context.Context, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.probing = false
	switch code := status.Code(err); {
	case errors.Is(context.Cause(ctx), context.Canceled):
		// The caller ended, which is no failure of the estimator.
	case code == codes.Unavailable || code == codes.DeadlineExceeded || code == codes.ResourceExhausted:
		pause := min(firstPause<<min(l.failures, 10), maxPause)
		l.failures++
		l.last, l.until = err, l.clock.Now().Add(pause)
	default:
		l.failures, l.last = 0, nil
	}
}
