package webhook

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
)

const (
	userAgent = "kube-apiserver-admission"
	// maxResponse bounds what is read of an answer, in bytes.
	maxResponse = 16 << 20
	// retryPause lies between an attempt that did not reach the server and the
	// second one.
	retryPause = 50 * time.Millisecond
	// dialTimeout bounds an attempt to connect.
	dialTimeout = 5 * time.Second
)

// endpoint is a server that webhooks are on.
type endpoint struct {
	target    url.URL
	client    *http.Client
	transport *http.Transport
	// broken is why the endpoint cannot be called at all.
	broken error
	clock  clock.PassiveClock

	mu       sync.Mutex
	limiters map[configv1alpha1.InterpreterOperation]*limiter
}

// endpointKey identifies an address and the authority of its certificate.
func endpointKey(c *admissionregistrationv1.WebhookClientConfig) string {
	text, err := json.Marshal(c)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

func newEndpoint(c *admissionregistrationv1.WebhookClientConfig, config Config) *endpoint {
	e := &endpoint{clock: config.Clock, limiters: map[configv1alpha1.InterpreterOperation]*limiter{}}
	tlsConfig := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(c.CABundle) > 0 {
		tlsConfig.RootCAs = x509.NewCertPool()
		if !tlsConfig.RootCAs.AppendCertsFromPEM(c.CABundle) {
			e.broken = errors.New("caBundle holds no certificate in PEM form")
		}
	}
	dialer := &net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}
	e.transport = &http.Transport{
		TLSClientConfig: tlsConfig, TLSHandshakeTimeout: dialTimeout, DialContext: dialer.DialContext,
		MaxIdleConnsPerHost: operationCount * slotsPerOperation, IdleConnTimeout: 90 * time.Second,
	}
	switch {
	case c.Service != nil:
		s := service{ref: *c.Service, find: config.Services, dial: dialer.DialContext}
		tlsConfig.ServerName = s.host()
		e.target = url.URL{Scheme: "https", Host: net.JoinHostPort(s.host(), s.port()), Path: s.path()}
		e.transport.DialContext = s.dialContext
	case c.URL != nil:
		target, err := url.Parse(*c.URL)
		if err != nil || target.Scheme != "https" {
			e.broken = fmt.Errorf("%q is no https URL", *c.URL)
			break
		}
		e.target = *target
		e.transport.Proxy = http.ProxyFromEnvironment
	default:
		e.broken = errors.New("webhook configuration must have either service or URL")
	}
	e.client = &http.Client{
		Transport:     e.transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return e
}

func (e *endpoint) close() { e.transport.CloseIdleConnections() }

// limiter returns the limiter of an operation.
func (e *endpoint) limiter(op configv1alpha1.InterpreterOperation) *limiter {
	e.mu.Lock()
	defer e.mu.Unlock()
	l, ok := e.limiters[op]
	if !ok {
		l = newLimiter(slotsFor(op), e.clock)
		e.limiters[op] = l
	}
	return l
}

// call sends a request and reads the answer. An attempt that did not reach the
// server is made once more.
func (e *endpoint) call(ctx context.Context, op configv1alpha1.InterpreterOperation, query url.Values, request *configv1alpha1.ResourceInterpreterRequest) (*configv1alpha1.ResourceInterpreterContext, error) {
	if e.broken != nil {
		return nil, e.broken
	}
	body, err := json.Marshal(&configv1alpha1.ResourceInterpreterContext{
		TypeMeta: metav1.TypeMeta{APIVersion: configv1alpha1.GroupVersion.String(), Kind: "ResourceInterpreterContext"},
		Request:  request,
	})
	if err != nil {
		return nil, fmt.Errorf("encoding the request: %w", err)
	}
	leave, err := e.limiter(op).enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	target := e.target
	if len(query) > 0 {
		target.RawQuery = query.Encode()
	}
	response, err := e.post(ctx, target.String(), body)
	if err != nil && unsent(err) && pause(ctx, retryPause) {
		response, err = e.post(ctx, target.String(), body)
	}
	if err != nil {
		return nil, err
	}
	return response, nil
}

func (e *endpoint) post(ctx context.Context, target string, body []byte) (*configv1alpha1.ResourceInterpreterContext, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("making the request: %w", err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json")
	r.Header.Set("User-Agent", userAgent)
	response, err := e.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxResponse+1))
	if err != nil {
		return nil, fmt.Errorf("reading the answer: %w", err)
	}
	if len(text) > maxResponse {
		return nil, fmt.Errorf("the answer is longer than %d bytes", maxResponse)
	}
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return nil, &statusError{code: response.StatusCode, text: excerpt(text)}
	}
	return parseContext(text)
}

// statusError is an answer with an HTTP status that is no success.
type statusError struct {
	code int
	text string
}

// Error implements error.
func (e *statusError) Error() string {
	message := fmt.Sprintf("the server answered %d %s", e.code, http.StatusText(e.code))
	if e.text != "" {
		message += ": " + e.text
	}
	return message
}

// excerpt returns the beginning of a text in one line.
func excerpt(text []byte) string {
	const most = 200
	line := strings.Join(strings.Fields(strings.ToValidUTF8(string(text[:min(len(text), 4*most)]), "")), " ")
	if len(line) > most {
		line = strings.ToValidUTF8(line[:most], "") + "…"
	}
	return line
}

// parseContext reads an answer. Webhooks may leave out its type.
func parseContext(text []byte) (*configv1alpha1.ResourceInterpreterContext, error) {
	var c configv1alpha1.ResourceInterpreterContext
	if err := json.Unmarshal(text, &c); err != nil {
		return nil, fmt.Errorf("decoding the answer %q: %w", excerpt(text), err)
	}
	if c.APIVersion != "" && c.APIVersion != configv1alpha1.GroupVersion.String() || c.Kind != "" && c.Kind != "ResourceInterpreterContext" {
		return nil, fmt.Errorf("the answer is a %s of %s, want a ResourceInterpreterContext of %s", c.Kind, c.APIVersion, configv1alpha1.GroupVersion)
	}
	return &c, nil
}

// unsent reports whether the server cannot have received the request: the
// connection failed.
func unsent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial" && !op.Timeout()
}

// pause waits and reports whether there is time left.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
