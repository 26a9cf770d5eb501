package agent

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"

	"github.com/karmada-toolkit/karmada/internal/kube"
)

const (
	dialTimeout = 5 * time.Second
	// dialRetryTimeout is how long a request waits for an unreachable control plane before it
	// fails.
	dialRetryTimeout = 30 * time.Second
	// dialPause is the time between attempts to reach it.
	dialPause = 250 * time.Millisecond
	// pingAfter and pingTimeout detect a dead connection.
	pingAfter, pingTimeout = 10 * time.Second, 5 * time.Second
)

// plane is the connection to the control plane. Requests wait while the control plane is
// not reachable, and continue as soon as it is reachable, not after an exponential backoff.
type plane struct {
	// path and context select the kubeconfig and its context.
	path, context string
	credentials   *kube.Credentials
	clock         clock.Clock
	// dial opens one connection.
	dial func(ctx context.Context, network, address string) (net.Conn, error)
	// dials counts the connections.
	dials atomic.Uint64

	mu sync.Mutex
	// unreachableSince is when the first connection failed, zero while the control plane
	// is reachable.
	unreachableSince time.Time
	log              logr.Logger
}

// newPlane returns the connection to the control plane of a kubeconfig.
func newPlane(path, kubecontext, userAgent string, clk clock.Clock) (*plane, error) {
	p := &plane{path: path, context: kubecontext, clock: clk, log: logr.Discard()}
	p.dial = (&net.Dialer{Timeout: dialTimeout, KeepAlive: 3 * dialTimeout}).DialContext
	var err error
	p.credentials, err = kube.NewCredentials(kube.CredentialsOptions{
		Load: p.load, Accept: newerThan, Clock: clk,
		Dial:  p.dialWithRetry,
		HTTP2: &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
	})
	if err != nil {
		return nil, err
	}
	cfg := p.credentials.Config
	cfg.UserAgent = userAgent
	cfg.Wrap(func(base http.RoundTripper) http.RoundTripper { return newRewind(base, p.dials.Load) })
	return p, nil
}

// load reads the kubeconfig.
func (p *plane) load() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = p.path
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: p.context}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("loading the kubeconfig of the control plane (--karmada-kubeconfig): %w", err)
	}
	return cfg, nil
}

// dialWithRetry dials until it succeeds, for dialRetryTimeout at most.
func (p *plane) dialWithRetry(ctx context.Context, network, address string) (net.Conn, error) {
	began := p.clock.Now()
	for {
		conn, err := p.dial(ctx, network, address)
		if err == nil {
			p.dials.Add(1)
			p.setReachable()
			return conn, nil
		}
		if ctx.Err() != nil {
			return nil, err
		}
		p.setUnreachable(err)
		if p.clock.Since(began) >= dialRetryTimeout {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), err)
		case <-p.clock.After(dialPause):
		}
	}
}

// setUnreachable records, and logs once, that the control plane is not reachable.
func (p *plane) setUnreachable(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.unreachableSince.IsZero() {
		p.unreachableSince = p.clock.Now()
		p.log.Info("The control plane is not reachable; the objects in the member stay unchanged until it is", "err", err.Error())
	}
}

func (p *plane) setReachable() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.unreachableSince.IsZero() {
		p.log.Info("The control plane is reachable again", "after", p.clock.Since(p.unreachableSince).Round(time.Second).String())
		p.unreachableSince = time.Time{}
	}
}

// setLogger sets the logger for changes of the connection.
func (p *plane) setLogger(log logr.Logger) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.log = log
}

// newerThan reports whether a certificate is valid for longer than another one: a
// file that lags behind must not bring back one that was renewed.
func newerThan(a, b *tls.Certificate) bool {
	_, endA, errA := validity(a)
	_, endB, errB := validity(b)
	return errA == nil && (errB != nil || endA.After(endB))
}
