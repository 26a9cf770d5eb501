package env

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	// answerLimit is how long a server may take to answer a request before it is probed, and probeLimit how long it may
	// take to answer that probe. A server that answers the probe is slow, one that does not is reported.
	answerLimit = 8 * time.Second
	probeLimit  = 2 * time.Second
	// federationFile is the file in the directory of a local federation.
	federationFile = "federation.json"
)

// ConnectionError is why no request reaches the control plane. Its text is complete: it names the server and the next
// step.
type ConnectionError struct {
	message string
	err     error
}

// Error implements error.
func (e *ConnectionError) Error() string { return e.message }

// Unwrap returns the error of the transport.
func (e *ConnectionError) Unwrap() error { return e.err }

// ConnectionFailure returns the ConnectionError in the chain of an error, or nil.
func ConnectionFailure(err error) *ConnectionError {
	if found, ok := errors.AsType[*ConnectionError](err); ok {
		return found
	}
	if list, ok := errors.AsType[utilerrors.Aggregate](err); ok {
		for _, one := range list.Errors() {
			if found := ConnectionFailure(one); found != nil {
				return found
			}
		}
	}
	return nil
}

// connection explains, once for all commands, why the control plane cannot be reached.
type connection struct {
	flags *genericclioptions.ConfigFlags
	// program is what the user types.
	program string
	// last receives each failure.
	last *atomic.Pointer[ConnectionError]
	// answer and probe are answerLimit and probeLimit but in tests.
	answer, probe time.Duration

	mu sync.Mutex
	// failed is set once the server did not answer: other requests would wait as long.
	failed *ConnectionError
}

// wrap is the last change of the configuration of clients of the control plane.
func (c *connection) wrap(config *rest.Config) *rest.Config {
	config = unlimited(config)
	if strings.HasSuffix(config.Host, "localhost:8080") {
		if raw, err := c.flags.ToRawKubeConfigLoader().RawConfig(); err == nil && len(raw.Clusters) == 0 && *c.flags.APIServer == "" {
			c.failed = &ConnectionError{message: noKubeconfig(c.program)}
		}
	}
	limited := config.Timeout > 0 // by --request-timeout
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &roundTripper{connection: c, next: next, limited: limited}
	})
	return config
}

// missingKubeconfig returns the error text for a file of $KUBECONFIG that does not exist, or "". flag names a kubeconfig.
func missingKubeconfig(flag string) string {
	for _, path := range filepath.SplitList(os.Getenv(clientcmd.RecommendedConfigPathEnvVar)) {
		if _, err := os.Stat(path); path != "" && err != nil { //nolint:gosec // the user's own variable
			return fmt.Sprintf("no kubeconfig was found: $KUBECONFIG names %s, which does not exist; correct it, or name a kubeconfig with %s", path, flag)
		}
	}
	return ""
}

// noKubeconfig returns the error text of a command that needs the kubeconfig of a control plane and finds none. program is
// what the user types.
func noKubeconfig(program string) string {
	if missing := missingKubeconfig("--kubeconfig"); missing != "" {
		return missing
	}
	return fmt.Sprintf("no kubeconfig was found; name one with --kubeconfig or $KUBECONFIG. %q starts a federation on this machine", program+" local up")
}

// refused explains a connection that the server refuses.
func (c *connection) refused(host string, err error) *ConnectionError {
	message := fmt.Sprintf("The connection to the server %s was refused - did you specify the right host or port?", host)
	plane := &ControlPlane{flags: c.flags}
	if path := plane.KubeconfigPath(); path != "" {
		dir := filepath.Dir(path)
		if _, missing := os.Stat(filepath.Join(dir, federationFile)); missing == nil {
			name := filepath.Base(dir)
			message = fmt.Sprintf("the local federation %q is not running: %s refuses connections; %q starts it",
				name, host, c.program+" local up --name "+name)
		}
	}
	return &ConnectionError{message: message, err: err}
}

func (c *connection) failure() *ConnectionError {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed
}

func (c *connection) fail(err *ConnectionError) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed = err
}

type roundTripper struct {
	*connection
	next http.RoundTripper
	// limited reports whether the user limits requests.
	limited bool
}

var errUnanswered = errors.New("the server does not answer")

// RoundTrip implements http.RoundTripper. Requests to members, which go through the control plane, have limits of their
// own.
func (t *roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := t.failure(); err != nil {
		t.last.Store(err)
		return nil, err
	}
	if t.limited || strings.Contains(req.URL.Path, "/proxy/") || req.Header.Get("Upgrade") != "" {
		resp, err := t.next.RoundTrip(req)
		return resp, t.explain(req, err)
	}
	ctx, cancel := context.WithCancelCause(req.Context())
	timer := time.AfterFunc(t.answer, func() {
		if !t.answers(ctx, req) {
			cancel(errUnanswered)
		}
	})
	resp, err := t.next.RoundTrip(req.WithContext(ctx))
	timer.Stop()
	if err != nil {
		cause := context.Cause(ctx)
		cancel(nil)
		if errors.Is(cause, errUnanswered) {
			failure := &ConnectionError{err: cause, message: fmt.Sprintf(
				"the server %s accepted the connection and did not answer within %s; check that it is the API server of a control plane and not overloaded",
				req.URL.Host, t.answer+t.probe)}
			t.fail(failure)
			t.last.Store(failure)
			return nil, failure
		}
		return nil, t.explain(req, err)
	}
	resp.Body = &cancelingBody{ReadCloser: resp.Body, cancel: cancel}
	return resp, nil
}

func (t *roundTripper) explain(req *http.Request, err error) error {
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return err
	}
	failure := t.refused(req.URL.Host, err)
	t.last.Store(failure)
	return failure
}

// answers reports whether the server answers a probe.
func (t *roundTripper) answers(ctx context.Context, req *http.Request) bool {
	ctx, cancel := context.WithTimeout(ctx, t.probe)
	defer cancel()
	probe, err := http.NewRequestWithContext(ctx, http.MethodGet, req.URL.Scheme+"://"+req.URL.Host+"/livez", http.NoBody) //nolint:gosec // the server of the request
	if err != nil {
		return true
	}
	resp, err := t.next.RoundTrip(probe)
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return true
}

// cancelingBody ends the context of its request when it is closed.
type cancelingBody struct {
	io.ReadCloser
	cancel context.CancelCauseFunc
}

// Close implements io.Closer.
func (b *cancelingBody) Close() error {
	err := b.ReadCloser.Close()
	b.cancel(nil)
	return err
}
