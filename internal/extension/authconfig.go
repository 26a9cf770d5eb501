package extension

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
	// authConfigNamespace and authConfigName identify the ConfigMap in which an API server publishes how other servers
	// authenticate it and its clients.
	authConfigNamespace = metav1.NamespaceSystem
	authConfigName      = "extension-apiserver-authentication"
	// authConfigPeriod is how often it is read again.
	authConfigPeriod = time.Minute
)

// authConfig is the authentication configuration that an API server publishes for the servers behind it. It is read
// again every authConfigPeriod.
type authConfig struct {
	client  kubernetes.Interface
	clients authority
	front   authority
	headers atomic.Pointer[frontHeaders]
}

// frontHeaders name the headers in which the API server in front passes users on.
type frontHeaders struct{ user, uid, group, extra, names []string }

// newAuthConfig reads what the API server has published, and waits until it has: it
// may be starting at this moment. A tolerant one does not wait.
func newAuthConfig(ctx context.Context, client kubernetes.Interface, tolerant bool) (*authConfig, error) {
	c := &authConfig{client: client, clients: authority{name: "client-ca-file"}, front: authority{name: "requestheader-client-ca-file"}}
	c.headers.Store(&frontHeaders{})
	if err := c.read(ctx); err == nil || tolerant {
		return c, nil
	}
	logger := log.FromContext(ctx)
	o := wait.Options{Interval: 50 * time.Millisecond, Publish: func(reason error) {
		logger.Info("Waiting for the authentication configuration of the API server", "problem", fmt.Sprint(reason))
	}}
	if err := wait.Until(ctx, o, c.read); err != nil {
		return nil, err
	}
	return c, nil
}

// keep reads again from time to time, until ctx ends.
func (c *authConfig) keep(ctx context.Context) {
	defer wait.Every(ctx, authConfigPeriod, func() {
		if err := c.read(ctx); err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "Failed to read the authentication configuration of the API server; keeping the previous one")
		}
	})()
	<-ctx.Done()
}

func (c *authConfig) read(ctx context.Context) error {
	published, err := c.client.CoreV1().ConfigMaps(authConfigNamespace).Get(ctx, authConfigName, metav1.GetOptions{})
	if err == nil {
		err = c.take(published)
	}
	if err != nil {
		return fmt.Errorf("reading ConfigMap %s/%s: %w", authConfigNamespace, authConfigName, err)
	}
	return nil
}

// take makes what was published count, if all of it can be read.
func (c *authConfig) take(published *corev1.ConfigMap) error {
	if published.Data[c.front.name] == "" {
		return fmt.Errorf("%s is missing", c.front.name)
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
	if err := errors.Join(c.front.set(published.Data[c.front.name]), c.clients.set(published.Data[c.clients.name])); err != nil {
		return err
	}
	c.headers.Store(&h)
	return nil
}

// requestHeaders is how users are read from requests of the API server in front.
func (c *authConfig) requestHeaders() *authenticatorfactory.RequestHeaderConfig {
	return &authenticatorfactory.RequestHeaderConfig{
		CAContentProvider:   &c.front,
		UsernameHeaders:     headerrequest.StringSliceProviderFunc(func() []string { return c.headers.Load().user }),
		UIDHeaders:          headerrequest.StringSliceProviderFunc(func() []string { return c.headers.Load().uid }),
		GroupHeaders:        headerrequest.StringSliceProviderFunc(func() []string { return c.headers.Load().group }),
		ExtraHeaderPrefixes: headerrequest.StringSliceProviderFunc(func() []string { return c.headers.Load().extra }),
		AllowedClientNames:  headerrequest.StringSliceProviderFunc(func() []string { return c.headers.Load().names }),
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
