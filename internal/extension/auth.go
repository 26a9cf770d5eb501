package extension

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/authorization/path"
	"k8s.io/apiserver/pkg/authorization/union"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"

	"github.com/karmada-toolkit/karmada/internal/kube"
)

// configFor returns how the API server that reviews users is reached: by the kubeconfig when there is one, which is followed
// until ctx ends, else as the control plane.
func configFor(ctx context.Context, kubeconfig string, controlPlane *rest.Config) (*rest.Config, error) {
	if kubeconfig == "" {
		return controlPlane, nil
	}
	credentials, err := kube.NewCredentials(kube.CredentialsOptions{
		Load:  func() (*rest.Config, error) { return clientcmd.BuildConfigFromFlags("", kubeconfig) },
		Clock: clock.RealClock{},
	})
	if err != nil {
		return nil, fmt.Errorf("loading %s: %w", kubeconfig, err)
	}
	go credentials.Run(ctx) //nolint:errcheck // it returns none
	return credentials.Config, nil
}

// clientFor returns a client of the API server that reviews users.
func clientFor(config *rest.Config, timeout time.Duration) (kubernetes.Interface, error) {
	config = rest.CopyConfig(config)
	// These answers bound how fast requests are served.
	config.QPS, config.Burst = -1, 0
	config.Timeout = timeout
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the API server that knows the users: %w", err)
	}
	return client, nil
}

// apply sets in config how requests are authenticated, authorized and audited, and the listener of serving.
func (o *Options) apply(ctx context.Context, controlPlane *rest.Config, serving *genericapiserver.SecureServingInfo, config *genericapiserver.Config) error {
	config.SecureServing = serving
	// The server sends no requests to itself.
	config.LoopbackClientConfig = &rest.Config{Host: "https://" + serving.Listener.Addr().String()}
	config.ExternalAddress = serving.Listener.Addr().String()
	config.EnableProfiling = false
	if err := o.authenticate(ctx, controlPlane, config); err != nil {
		return err
	}
	if err := o.authorize(ctx, controlPlane, config); err != nil {
		return err
	}
	if err := o.Audit.ApplyTo(config); err != nil {
		return fmt.Errorf("preparing the audit log: %w", err)
	}
	return nil
}

// authenticate sets how requests are tied to users: by the headers of the control
// plane's API server, a client certificate or a token.
func (o *Options) authenticate(ctx context.Context, controlPlane *rest.Config, config *genericapiserver.Config) error {
	a := o.Authentication
	remote, err := configFor(ctx, a.RemoteKubeConfigFile, controlPlane)
	if err != nil {
		return err
	}
	client, err := clientFor(remote, 0)
	if err != nil {
		return err
	}
	reviews, err := clientFor(remote, a.TokenRequestTimeout)
	if err != nil {
		return err
	}
	delegated := authenticatorfactory.DelegatingAuthenticatorConfig{
		Anonymous:                a.Anonymous,
		CacheTTL:                 a.CacheTTL,
		WebhookRetryBackoff:      a.WebhookRetryBackoff,
		TokenAccessReviewClient:  reviews.AuthenticationV1(),
		TokenAccessReviewTimeout: a.TokenRequestTimeout,
	}
	if err := o.setCertificateAuthorities(ctx, client, &delegated); err != nil {
		return err
	}
	info := &config.Authentication
	info.RequestHeaderConfig = delegated.RequestHeaderConfig
	for _, ca := range []dynamiccertificates.CAContentProvider{delegated.ClientCertificateCAContentProvider, requestHeaderCA(delegated.RequestHeaderConfig)} {
		if ca == nil {
			continue
		}
		if err := info.ApplyClientCert(ca, config.SecureServing); err != nil {
			return fmt.Errorf("configuring the CA of client certificates: %w", err)
		}
	}
	authenticator, definitions, err := delegated.New()
	if err != nil {
		return fmt.Errorf("preparing authentication: %w", err)
	}
	info.Authenticator = authenticator
	config.OpenAPIConfig.SecurityDefinitions = definitions
	return nil
}

func requestHeaderCA(c *authenticatorfactory.RequestHeaderConfig) dynamiccertificates.CAContentProvider {
	if c == nil {
		return nil
	}
	return c.CAContentProvider
}

// setCertificateAuthorities sets the CAs of clients and of the API server in front of this one: those of the flags or,
// by default, those that the API server has published.
func (o *Options) setCertificateAuthorities(ctx context.Context, client kubernetes.Interface, c *authenticatorfactory.DelegatingAuthenticatorConfig) error {
	a := o.Authentication
	if a.ClientCert.ClientCA != "" {
		provider, err := a.ClientCert.GetClientCAContentProvider()
		if err != nil {
			return fmt.Errorf("loading the CA of clients: %w", err)
		}
		c.ClientCertificateCAContentProvider = provider
	}
	if a.RequestHeader.ClientCAFile != "" {
		config, err := a.RequestHeader.ToAuthenticationRequestHeaderConfig()
		if err != nil {
			return fmt.Errorf("loading the CA of the API server in front: %w", err)
		}
		c.RequestHeaderConfig = config
	}
	if a.SkipInClusterLookup || c.ClientCertificateCAContentProvider != nil && c.RequestHeaderConfig != nil {
		return nil
	}
	t, err := newAuthConfig(ctx, client, a.TolerateInClusterLookupFailure)
	if err != nil {
		return err
	}
	if c.ClientCertificateCAContentProvider == nil {
		c.ClientCertificateCAContentProvider = &t.clients
	}
	if c.RequestHeaderConfig == nil {
		c.RequestHeaderConfig = t.requestHeaders()
	}
	go t.keep(ctx)
	return nil
}

// authorize sets who may do what: administrators everything, everybody the
// probes, and for the rest the control plane reviews them, with its answers kept for
// some seconds.
func (o *Options) authorize(ctx context.Context, controlPlane *rest.Config, config *genericapiserver.Config) error {
	a := o.Authorization
	remote, err := configFor(ctx, a.RemoteKubeConfigFile, controlPlane)
	if err != nil {
		return err
	}
	client, err := clientFor(remote, a.ClientTimeout)
	if err != nil {
		return err
	}
	paths, err := path.NewAuthorizer(a.AlwaysAllowPaths)
	if err != nil {
		return fmt.Errorf("--authorization-always-allow-paths: %w", err)
	}
	delegated, err := authorizerfactory.DelegatingAuthorizerConfig{
		SubjectAccessReviewClient: client.AuthorizationV1(),
		AllowCacheTTL:             a.AllowCacheTTL,
		DenyCacheTTL:              a.DenyCacheTTL,
		WebhookRetryBackoff:       a.WebhookRetryBackoff,
	}.New()
	if err != nil {
		return fmt.Errorf("preparing authorization: %w", err)
	}
	all := []authorizer.Authorizer{paths, delegated}
	if len(a.AlwaysAllowGroups) > 0 {
		all = append([]authorizer.Authorizer{authorizerfactory.NewPrivilegedGroups(a.AlwaysAllowGroups...)}, all...)
	}
	config.Authorization.Authorizer = union.New(all...)
	return nil
}
