package access

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/karmada-toolkit/karmada/internal/limit"
)

// Limits of the responses of a member, in bytes after decompression.
const (
	// MaxDiscovery is the limit of responses to discovery, version and health requests.
	MaxDiscovery = 8 << 20
	// MaxAnswer is the limit of an object or a page of a list.
	MaxAnswer = 16 << 20
	// MaxEvent is the limit of one event of a watch.
	MaxEvent = 3 << 20
	// maxHeader is the limit of the headers of a response.
	maxHeader = 256 << 10
)

const (
	// largeAnswer is the size from which a response is large, and largeAtOnce the number
	// of those that are read from a member at the same time: reading one takes several
	// times its size.
	largeAnswer = 256 << 10
	largeAtOnce = 1
	// discoveryAtOnce limits the concurrent discovery requests to a member.
	discoveryAtOnce = 16
)

// LimitError is the error for a response that exceeds a limit.
type LimitError struct {
	// Method and Path are those of the request.
	Method, Path string
	// Problem is the limit that is exceeded.
	Problem string
}

// Error implements error.
func (e *LimitError) Error() string {
	return fmt.Sprintf("the answer to %s %s was refused: %s", e.Method, e.Path, e.Problem)
}

// IsLimit reports whether an error is due to a response that exceeds a limit.
func IsLimit(err error) bool {
	var limit *LimitError
	return errors.As(err, &limit)
}

// Guard makes the clients of a configuration safe against any server: responses have
// limits of size, time, nesting and number of values, and must be JSON or text. Redirects
// are errors, since a redirected request sends its credentials to another host. Objects
// that were not requested are refused, see Identity. The clients of the configuration
// share the limits of concurrent requests.
func Guard(cfg *rest.Config) *rest.Config {
	return guardWith(cfg, newGuard(cfg.Host, Timeout))
}

func guardWith(cfg *rest.Config, g *guard) *rest.Config {
	cfg.Wrap(func(base http.RoundTripper) http.RoundTripper { return &guarded{guard: g, base: base} })
	return cfg
}

// GuardTransport returns a transport to the API server at a URL with the limits and checks of Guard.
func GuardTransport(host string, base http.RoundTripper) http.RoundTripper {
	return &guarded{guard: newGuard(host, Timeout), base: base}
}

func newGuard(host string, timeout time.Duration) *guard {
	prefix := ""
	if base, err := url.Parse(host); err == nil {
		prefix = strings.TrimRight(base.Path, "/")
	}
	return &guard{
		prefix: prefix, timeout: timeout,
		large: make(chan struct{}, largeAtOnce), discovery: make(chan struct{}, discoveryAtOnce),
	}
}

// guard is the state that the clients of one member share.
type guard struct {
	// prefix is the path of the member's address.
	prefix  string
	timeout time.Duration
	// large and discovery hold an element for each current request.
	large, discovery chan struct{}
	kinds            kinds
}

type guarded struct {
	*guard
	base http.RoundTripper
}

// WrappedRoundTripper lets client-go find the transport below.
func (g *guarded) WrappedRoundTripper() http.RoundTripper { return g.base }

// CancelRequest does nothing, since the contexts of requests end them. client-go's cache of discovery logs its absence.
func (*guarded) CancelRequest(*http.Request) {}

// answerKind selects the limits of a response.
type answerKind int

const (
	answerObject answerKind = iota
	answerDiscovery
	answerWatch
)

// kindOf returns the kind of the response to a request.
func (g *guard) kindOf(u *url.URL) answerKind {
	if watches(u) {
		return answerWatch
	}
	path := strings.Trim(strings.TrimPrefix(u.Path, g.prefix), "/")
	parts := strings.Split(path, "/")
	switch {
	case parts[0] == "api" && len(parts) <= 2, parts[0] == "apis" && len(parts) <= 3:
		return answerDiscovery
	case parts[0] != "api" && parts[0] != "apis":
		return answerDiscovery
	}
	return answerObject
}

// RoundTrip implements http.RoundTripper.
func (g *guarded) RoundTrip(req *http.Request) (*http.Response, error) {
	kind := g.kindOf(req.URL)
	ctx, cancel := context.WithCancelCause(req.Context())
	stop := func() { cancel(context.Canceled) }
	timer := time.AfterFunc(g.timeout, func() { cancel(errTimeout{g.timeout}) })
	free := func() {}
	if kind == answerDiscovery {
		select {
		case g.discovery <- struct{}{}:
			free = sync.OnceFunc(func() { <-g.discovery })
		case <-ctx.Done():
			timer.Stop()
			return nil, fmt.Errorf("waiting for other requests: %w", context.Cause(ctx))
		}
	}
	done := func() { timer.Stop(); stop(); free() }
	req = req.Clone(ctx)
	if accept := req.Header.Values("Accept"); len(accept) > 0 {
		req.Header.Set("Accept", withoutBinary(accept))
	}
	resp, err := g.base.RoundTrip(req)
	if err != nil {
		err = cause(ctx, err)
		done()
		return nil, err
	}
	if err := acceptable(req, resp); err != nil {
		_ = resp.Body.Close()
		done()
		return nil, err
	}
	b := &body{
		guard: g.guard, ctx: ctx, base: resp.Body, method: req.Method, path: req.URL.Path, done: done,
		limit: MaxAnswer,
	}
	switch kind {
	case answerDiscovery:
		b.limit = MaxDiscovery
	case answerWatch:
		b.limit, b.watch = MaxEvent, true
		timer.Stop()
	case answerObject:
	}
	if !b.watch && resp.ContentLength > b.limit {
		_ = b.Close()
		return nil, b.tooLarge()
	}
	resp.Body = b
	if heads := g.heads(req); heads != nil && succeeded(resp) {
		resp.Body = &identifiedBody{ReadCloser: b, heads: heads, method: req.Method, path: req.URL.Path}
	}
	return resp, nil
}

// withoutBinary returns the media types of Accept headers without protobuf and CBOR,
// whose content cannot be counted before it is decoded.
func withoutBinary(accept []string) string {
	var kept []string
	for _, line := range accept {
		for one := range strings.SplitSeq(line, ",") {
			if one = strings.TrimSpace(one); !strings.Contains(one, "protobuf") && !strings.Contains(one, "cbor") {
				kept = append(kept, one)
			}
		}
	}
	if len(kept) == 0 {
		return "application/json"
	}
	return strings.Join(kept, ",")
}

// errTimeout ends requests that take too long.
type errTimeout struct{ after time.Duration }

// Error implements error.
func (e errTimeout) Error() string { return fmt.Sprintf("no complete answer within %s", e.after) }

// Timeout implements net.Error.
func (errTimeout) Timeout() bool { return true }

// Temporary implements net.Error.
func (errTimeout) Temporary() bool { return true }

// Is makes it equal to context.DeadlineExceeded.
func (errTimeout) Is(target error) bool { return target == context.DeadlineExceeded }

// cause returns the error of a request that was canceled because of the timeout.
func cause(ctx context.Context, err error) error {
	if timeout, ok := errors.AsType[errTimeout](context.Cause(ctx)); ok {
		return timeout
	}
	return err
}

// acceptable returns an error for a response whose headers exceed a limit.
func acceptable(req *http.Request, resp *http.Response) error {
	problem := ""
	switch code := resp.StatusCode; {
	case code == http.StatusNotModified:
		return nil
	case code >= http.StatusMultipleChoices && code < http.StatusBadRequest:
		problem = fmt.Sprintf("it is a redirect (%d), which is not followed", code)
	case code < http.StatusOK:
		problem = fmt.Sprintf("it has the unexpected code %d", code)
	default:
		media, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
		switch {
		case resp.Header.Get("Content-Type") == "", err == nil && (media == "application/json" || strings.HasPrefix(media, "text/")):
			return nil
		}
		problem = fmt.Sprintf("its content type %.100q is not JSON", resp.Header.Get("Content-Type"))
	}
	return &LimitError{Method: req.Method, Path: req.URL.Path, Problem: problem}
}

// body applies the limits to a response while it is read.
type body struct {
	guard *guard
	ctx   context.Context //nolint:containedctx // the life of the request
	base  io.ReadCloser
	// method and path are for errors.
	method, path string
	// limit is that of the response, or of each event of a watch, in bytes.
	limit int64
	watch bool
	scan  limit.Scanner
	read  int64
	// holds is set while the response counts among the large ones.
	holds bool
	done  func()
	err   error
	once  sync.Once
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	n, err := b.base.Read(p)
	if n > 0 {
		if problem := b.check(p[:n]); problem != nil {
			b.err = problem
			b.release()
			return 0, problem
		}
	}
	if err != nil {
		if !errors.Is(err, io.EOF) {
			err = cause(b.ctx, err)
		}
		b.err = err
		b.release()
	}
	return n, err
}

// check applies the limits to what was read.
func (b *body) check(p []byte) error {
	if b.watch {
		return b.checkEvents(p)
	}
	b.read += int64(len(p))
	if b.read > b.limit {
		return b.tooLarge()
	}
	if b.read > largeAnswer && !b.holds {
		select {
		case b.guard.large <- struct{}{}:
			b.holds = true
		case <-b.ctx.Done():
			return fmt.Errorf("waiting for other large answers: %w", context.Cause(b.ctx))
		}
	}
	for len(p) > 0 {
		n, _ := b.scan.Next(p)
		if b.scan.Problem != "" {
			return b.refuse(b.scan.Problem)
		}
		p = p[n:]
	}
	return nil
}

// checkEvents applies the limits to each value of a stream of JSON values.
func (b *body) checkEvents(p []byte) error {
	for len(p) > 0 {
		n, end := b.scan.Next(p)
		b.read += int64(n)
		switch {
		case b.scan.Problem != "":
			return b.refuse(b.scan.Problem)
		case b.read > b.limit:
			return b.tooLarge()
		case end:
			b.read = 0
			b.scan.Reset()
		}
		p = p[n:]
	}
	return nil
}

func (b *body) tooLarge() error {
	what := "it"
	if b.watch {
		what = "an event"
	}
	return b.refuse(fmt.Sprintf("%s is larger than %d MiB", what, b.limit>>20))
}

func (b *body) refuse(problem string) error {
	return &LimitError{Method: b.method, Path: b.path, Problem: problem}
}

// Close implements io.Closer.
func (b *body) Close() error {
	b.release()
	return b.base.Close()
}

func (b *body) release() {
	b.once.Do(func() {
		if b.holds {
			<-b.guard.large
		}
		b.done()
	})
}
