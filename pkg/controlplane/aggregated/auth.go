package aggregated

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/authorization/path"
	"k8s.io/apiserver/pkg/authorization/union"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// trustNamespace and trustName are the ConfigMap in which an API server says how
// the servers behind it recognise it and its clients.
const (
	trustNamespace = metav1.NamespaceSystem
	trustName      = "extension-apiserver-authentication"
)

// clientFor returns a client of the API server that is asked about users: that of
// the kubeconfig when there is one, else the control plane.
func clientFor(kubeconfig string, controlPlane *rest.Config, timeout time.Duration) (kubernetes.Interface, error) {
	config := rest.CopyConfig(controlPlane)
	if kubeconfig != "" {
		var err error
		if config, err = clientcmd.BuildConfigFromFlags("", kubeconfig); err != nil {
			return nil, fmt.Errorf("loading %s: %w", kubeconfig, err)
		}
	}
	// These answers bound how fast requests are served.
	config.QPS, config.Burst = -1, 0
	config.Timeout = timeout
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the API server that knows the users: %w", err)
	}
	return client, nil
}

// authenticate sets how requests are tied to users: by the headers of the control
// plane's API server, a client certificate or a token.
func (o *Options) authenticate(ctx context.Context, controlPlane *rest.Config, config *genericapiserver.Config) error {
	a := o.Authentication
	client, err := clientFor(a.RemoteKubeConfigFile, controlPlane, 0)
	if err != nil {
		return err
	}
	reviews, err := clientFor(a.RemoteKubeConfigFile, controlPlane, a.TokenRequestTimeout)
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
	if delegated.ClientCertificateCAContentProvider, err = o.clientCA(ctx, client); err != nil {
		return err
	}
	if delegated.RequestHeaderConfig, err = o.requestHeaders(ctx, client); err != nil {
		return err
	}
	info := &config.Authentication
	info.RequestHeaderConfig = delegated.RequestHeaderConfig
	for _, ca := range []dynamiccertificates.CAContentProvider{delegated.ClientCertificateCAContentProvider, requestHeaderCA(delegated.RequestHeaderConfig)} {
		if ca == nil {
			continue
		}
		if err := info.ApplyClientCert(ca, config.SecureServing); err != nil {
			return fmt.Errorf("trusting client certificates: %w", err)
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

// clientCA returns who signs certificates of clients.
func (o *Options) clientCA(ctx context.Context, client kubernetes.Interface) (dynamiccertificates.CAContentProvider, error) {
	a := o.Authentication
	if a.ClientCert.ClientCA != "" {
		ca, err := a.ClientCert.GetClientCAContentProvider()
		if err != nil {
			return nil, fmt.Errorf("loading the CA of clients: %w", err)
		}
		return ca, nil
	}
	if a.SkipInClusterLookup {
		return nil, nil //nolint:nilnil // no certificates of clients
	}
	ca, err := dynamiccertificates.NewDynamicCAFromConfigMapController("client-ca", trustNamespace, trustName, "client-ca-file", client)
	if err != nil {
		return nil, fmt.Errorf("preparing to read the CA of clients: %w", err)
	}
	go ca.Run(ctx, 1)
	return running{ca}, nil
}

// requestHeaders returns how the API server in front is recognised.
func (o *Options) requestHeaders(ctx context.Context, client kubernetes.Interface) (*authenticatorfactory.RequestHeaderConfig, error) {
	a := o.Authentication
	if a.RequestHeader.ClientCAFile != "" {
		config, err := a.RequestHeader.ToAuthenticationRequestHeaderConfig()
		if err != nil {
			return nil, fmt.Errorf("loading the CA of the API server in front: %w", err)
		}
		return config, nil
	}
	if a.SkipInClusterLookup {
		return nil, nil //nolint:nilnil // no API server in front
	}
	ca, err := dynamiccertificates.NewDynamicCAFromConfigMapController("front-proxy-ca", trustNamespace, trustName, "requestheader-client-ca-file", client)
	if err != nil {
		return nil, fmt.Errorf("preparing to read the CA of the API server in front: %w", err)
	}
	headers := headerrequest.NewRequestHeaderAuthRequestController(trustName, trustNamespace, client,
		"requestheader-username-headers", "requestheader-uid-headers", "requestheader-group-headers",
		"requestheader-extra-headers-prefix", "requestheader-allowed-names")
	if err := untilTrusted(ctx, client, a.TolerateInClusterLookupFailure); err != nil {
		return nil, err
	}
	go ca.Run(ctx, 1)
	go headers.Run(ctx, 1)
	err = wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
		return len(ca.CurrentCABundleContent()) > 0 && len(headers.UsernameHeaders()) > 0, nil
	})
	if err != nil && !a.TolerateInClusterLookupFailure {
		return nil, fmt.Errorf("reading how the API server in front is recognised: %w", err)
	}
	return &authenticatorfactory.RequestHeaderConfig{
		CAContentProvider:   running{ca},
		UsernameHeaders:     headerrequest.StringSliceProviderFunc(headers.UsernameHeaders),
		UIDHeaders:          headerrequest.StringSliceProviderFunc(headers.UIDHeaders),
		GroupHeaders:        headerrequest.StringSliceProviderFunc(headers.GroupHeaders),
		ExtraHeaderPrefixes: headerrequest.StringSliceProviderFunc(headers.ExtraHeaderPrefixes),
		AllowedClientNames:  headerrequest.StringSliceProviderFunc(headers.AllowedClientNames),
	}, nil
}

// untilTrusted waits until the API server has published how it is recognised: it
// may be starting at this moment.
func untilTrusted(ctx context.Context, client kubernetes.Interface, tolerant bool) error {
	logger := log.FromContext(ctx)
	said := time.NewTicker(2 * time.Second)
	defer said.Stop()
	retry := time.NewTicker(50 * time.Millisecond)
	defer retry.Stop()
	for {
		trust, err := client.CoreV1().ConfigMaps(trustNamespace).Get(ctx, trustName, metav1.GetOptions{})
		if err == nil && trust.Data["requestheader-client-ca-file"] == "" {
			err = errors.New("it has no requestheader-client-ca-file")
		}
		if err == nil || tolerant {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("reading ConfigMap %s/%s: %w", trustNamespace, trustName, err)
		case <-said.C:
			logger.Info("Waiting for the API server to say how it is recognised", "ConfigMap", trustNamespace+"/"+trustName, "problem", err.Error())
		case <-retry.C:
		}
	}
}

// running hides that a provider can be started: it was already.
type running struct {
	dynamiccertificates.CAContentProvider
}

// authorize sets who may do what: administrators everything, everybody the
// probes, and for the rest the control plane is asked, with its answers kept for
// some seconds.
func (o *Options) authorize(controlPlane *rest.Config, config *genericapiserver.Config) error {
	a := o.Authorization
	client, err := clientFor(a.RemoteKubeConfigFile, controlPlane, a.ClientTimeout)
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
