package aggregated

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/karmada-toolkit/karmada/internal/wait"
)

const (
	// trustNamespace and trustName are the ConfigMap in which an API server publishes how
	// the servers behind it recognise it and its clients.
	trustNamespace = metav1.NamespaceSystem
	trustName      = "extension-apiserver-authentication"
	// trustPeriod is how often it is read again.
	trustPeriod = time.Minute
)

// trust is what an API server has published, kept current.
type trust struct {
	client  kubernetes.Interface
	clients authority
	front   authority
	headers atomic.Pointer[frontHeaders]
}

// frontHeaders name the headers in which the API server in front passes users on.
type frontHeaders struct{ user, uid, group, extra, names []string }

// newTrust reads what the API server has published, and waits until it has: it
// may be starting at this moment. A tolerant one does not wait.
func newTrust(ctx context.Context, client kubernetes.Interface, tolerant bool) (*trust, error) {
	t := &trust{client: client, clients: authority{name: "client-ca-file"}, front: authority{name: "requestheader-client-ca-file"}}
	t.headers.Store(&frontHeaders{})
	if err := t.read(ctx); err == nil || tolerant {
		return t, nil
	}
	logger := log.FromContext(ctx)
	o := wait.Options{Interval: 50 * time.Millisecond, Publish: func(reason error) {
		logger.Info("Waiting for the authentication configuration of the API server", "problem", fmt.Sprint(reason))
	}}
	if err := wait.Until(ctx, o, t.read); err != nil {
		return nil, err
	}
	return t, nil
}

// keep reads again from time to time, until ctx ends.
func (t *trust) keep(ctx context.Context) {
	tick := time.NewTicker(trustPeriod)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := t.read(ctx); err != nil && ctx.Err() == nil {
				log.FromContext(ctx).Error(err, "Keeping what the API server said before of how it is recognised")
			}
		}
	}
}

func (t *trust) read(ctx context.Context) error {
	published, err := t.client.CoreV1().ConfigMaps(trustNamespace).Get(ctx, trustName, metav1.GetOptions{})
	if err == nil {
		err = t.take(published)
	}
	if err != nil {
		return fmt.Errorf("reading ConfigMap %s/%s: %w", trustNamespace, trustName, err)
	}
	return nil
}

// take makes what was published count, if all of it can be read.
func (t *trust) take(published *corev1.ConfigMap) error {
	if published.Data[t.front.name] == "" {
		return fmt.Errorf("%s is missing", t.front.name)
	}
	var h frontHeaders
	var errs []error
	for key, into := range map[string]*[]string{
		"requestheader-username-headers": &h.user, "requestheader-uid-headers": &h.uid, "requestheader-group-headers": &h.group,
		"requestheader-extra-headers-prefix": &h.extra, "requestheader-allowed-names": &h.names,
	} {
		if text := published.Data[key]; text != "" {
			if err := json.Unmarshal([]byte(text), into); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", key, err))
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if err := errors.Join(t.front.set(published.Data[t.front.name]), t.clients.set(published.Data[t.clients.name])); err != nil {
		return err
	}
	t.headers.Store(&h)
	return nil
}

// requestHeaders is how users are read from requests of the API server in front.
func (t *trust) requestHeaders() *authenticatorfactory.RequestHeaderConfig {
	return &authenticatorfactory.RequestHeaderConfig{
		CAContentProvider:   &t.front,
		UsernameHeaders:     headerrequest.StringSliceProviderFunc(func() []string { return t.headers.Load().user }),
		UIDHeaders:          headerrequest.StringSliceProviderFunc(func() []string { return t.headers.Load().uid }),
		GroupHeaders:        headerrequest.StringSliceProviderFunc(func() []string { return t.headers.Load().group }),
		ExtraHeaderPrefixes: headerrequest.StringSliceProviderFunc(func() []string { return t.headers.Load().extra }),
		AllowedClientNames:  headerrequest.StringSliceProviderFunc(func() []string { return t.headers.Load().names }),
	}
}

// authority is a bundle of CA certificates that can change.
type authority struct {
	name    string
	current atomic.Pointer[bundle]

	mu        sync.Mutex
	listeners []dynamiccertificates.Listener
}

type bundle struct {
	dynamiccertificates.CAContentProvider
}

var _ dynamiccertificates.CAContentProvider = (*authority)(nil)

func (a *authority) set(pem string) error {
	if pem == "" || bytes.Equal(a.CurrentCABundleContent(), []byte(pem)) {
		return nil
	}
	content, err := dynamiccertificates.NewStaticCAContent(a.name, []byte(pem))
	if err != nil {
		return fmt.Errorf("%s: %w", a.name, err)
	}
	a.current.Store(&bundle{content})
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, l := range a.listeners {
		l.Enqueue()
	}
	return nil
}

// Name implements dynamiccertificates.CAContentProvider.
func (a *authority) Name() string { return a.name }

// AddListener implements dynamiccertificates.CAContentProvider.
func (a *authority) AddListener(l dynamiccertificates.Listener) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.listeners = append(a.listeners, l)
}

// CurrentCABundleContent implements dynamiccertificates.CAContentProvider.
func (a *authority) CurrentCABundleContent() []byte {
	if b := a.current.Load(); b != nil {
		return b.CurrentCABundleContent()
	}
	return nil
}

// VerifyOptions implements dynamiccertificates.CAContentProvider.
func (a *authority) VerifyOptions() (x509.VerifyOptions, bool) {
	if b := a.current.Load(); b != nil {
		return b.VerifyOptions()
	}
	return x509.VerifyOptions{}, false
}
