package kubelite

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	apiextensionsapiserver "k8s.io/apiextensions-apiserver/pkg/apiserver"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/endpoints/discovery/aggregated"
	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/apiserver/pkg/server/filters"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	"k8s.io/apiserver/pkg/util/openapi"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	aggregatorscheme "k8s.io/kube-aggregator/pkg/apiserver/scheme"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/controlplane"
	controlplaneapiserver "k8s.io/kubernetes/pkg/controlplane/apiserver"
	generatedopenapi "k8s.io/kubernetes/pkg/generated/openapi"
	"k8s.io/kubernetes/pkg/kubeapiserver"
	"k8s.io/utils/clock"

	"github.com/karmada-toolkit/karmada/internal/pki"
)

// informerResync is the resync period of the API server's own informers.
const informerResync = 10 * time.Minute

// apiServerConfig puts a kube-apiserver's configuration together from its options, as kube-apiserver does, with one
// difference: the key of its connections to itself is an ECDSA one. The two RSA keys that kube-apiserver makes at
// every start take a fifth of the time until it is ready.
func apiServerConfig(opts options.CompletedOptions, self loopback) (*app.Config, error) {
	generic, shared, storage, err := genericConfig(opts, self)
	if err != nil {
		return nil, err
	}
	kubeAPIs, resolver, initializers, err := app.CreateKubeAPIServerConfig(opts, generic, shared, storage)
	if err != nil {
		return nil, err
	}
	if err := fixPublishedAuthority(&kubeAPIs.ControlPlane.ClusterAuthenticationInfo); err != nil {
		return nil, err
	}
	controlPlane := kubeAPIs.ControlPlane
	authentication := webhook.NewDefaultAuthenticationInfoResolverWrapper(controlPlane.ProxyTransport, controlPlane.Generic.EgressSelector,
		controlPlane.Generic.LoopbackClientConfig, controlPlane.Generic.TracerProvider)
	extensions, err := controlplaneapiserver.CreateAPIExtensionsConfig(*controlPlane.Generic, controlPlane.VersionedInformers, initializers,
		opts.CompletedOptions, opts.MasterCount, resolver, authentication)
	if err != nil {
		return nil, err
	}
	aggregator, err := controlplaneapiserver.CreateAggregatorConfig(*controlPlane.Generic, opts.CompletedOptions, controlPlane.VersionedInformers,
		resolver, controlPlane.ProxyTransport, controlPlane.Extra.PeerProxy, initializers)
	if err != nil {
		return nil, err
	}
	return &app.Config{Options: opts, KubeAPIs: kubeAPIs, ApiExtensions: extensions, Aggregator: aggregator}, nil
}

// genericConfig is the part that the core, extension and aggregation servers share.
func genericConfig(opts options.CompletedOptions, self loopback) (*genericapiserver.Config, informers.SharedInformerFactory, *serverstorage.DefaultStorageFactory, error) {
	config := genericapiserver.NewConfig(legacyscheme.Codecs)
	resources := controlplane.DefaultAPIResourceConfigSource()
	config.MergedResourceConfig = resources
	config.AggregatedDiscoveryGroupManager = aggregated.NewResourceManager("apis")
	config.LongRunningFunc = filters.BasicLongRunningRequestCheck(
		sets.NewString("watch", "proxy"), sets.NewString("attach", "exec", "proxy", "log", "portforward"))
	describeAPI(config)
	if err := errors.Join(opts.GenericServerRunOptions.ApplyTo(config), opts.SecureServing.SecureServingOptions.ApplyTo(&config.SecureServing)); err != nil {
		return nil, nil, nil, err
	}
	if err := fixServingCertificate(config.SecureServing); err != nil {
		return nil, nil, nil, err
	}
	if err := connectToItself(config, self); err != nil {
		return nil, nil, nil, fmt.Errorf("preparing connections to itself: %w", err)
	}
	client, err := kubernetes.NewForConfig(config.LoopbackClientConfig)
	if err != nil {
		return nil, nil, nil, err
	}
	config.BuildHandlerChainFunc = func(api http.Handler, c *genericapiserver.Config) http.Handler {
		return genericapiserver.DefaultBuildHandlerChain(refuseContainers(api, client), c)
	}
	shared := informers.NewSharedInformerFactoryWithOptions(client, informerResync, informers.WithTransform(dropManagedFields))
	if err := errors.Join(opts.Features.ApplyTo(config, client, shared), opts.APIEnablement.ApplyTo(config, resources, legacyscheme.Scheme)); err != nil {
		return nil, nil, nil, err
	}
	storage, err := storageFactory(opts, config)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("configuring the storage: %w", err)
	}
	if err := authenticateAndAuthorize(opts, config, client, shared); err != nil {
		return nil, nil, nil, err
	}
	return config, shared, storage, opts.Audit.ApplyTo(config)
}

// describeAPI sets up the OpenAPI documents.
func describeAPI(config *genericapiserver.Config) {
	definitions := openapi.GetOpenAPIDefinitionsWithoutDisabledFeatures(generatedopenapi.GetOpenAPIDefinitions)
	schemes := []*runtime.Scheme{legacyscheme.Scheme, apiextensionsapiserver.Scheme, aggregatorscheme.Scheme}
	namer := openapinamer.NewDefinitionNamer(schemes...)
	config.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(definitions, namer)
	config.OpenAPIConfig.Info.Title = "Kubernetes"
	config.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(definitions, namer)
	config.OpenAPIV3Config.Info.Title = "Kubernetes"
}

// loopback is what the server's connections to itself need: a token for all rights, which the components use too,
// and the time for a certificate.
type loopback struct {
	token string
	now   time.Time
}

// connectToItself makes a certificate for the server's connections to itself, served under a name that no other
// client asks for.
func connectToItself(config *genericapiserver.Config, self loopback) error {
	name := genericapiserver.LoopbackClientServerNameOverride
	ca, err := pki.NewCA(pki.CAConfig{CommonName: name + "-ca"}, nil, self.now)
	if err != nil {
		return err
	}
	leaf, err := pki.NewLeaf(pki.LeafConfig{CommonName: name, Hosts: []string{name}, Validity: pki.CAValidity}, ca, self.now)
	if err != nil {
		return err
	}
	key, err := leaf.KeyPEM()
	if err != nil {
		return err
	}
	provider, err := dynamiccertificates.NewStaticSNICertKeyContent("self-signed loopback", leaf.CertPEM(), key, name)
	if err != nil {
		return err
	}
	config.SecureServing.SNICerts = append([]dynamiccertificates.SNICertKeyContentProvider{provider}, config.SecureServing.SNICerts...)
	config.LoopbackClientConfig, err = config.SecureServing.NewLoopbackClientConfig(self.token, ca.CertPEM())
	if err != nil {
		return err
	}
	config.LoopbackClientConfig.ContentType = protobuf
	config.LoopbackClientConfig.DisableCompression = true
	return nil
}

// storageFactory configures how each resource is stored in etcd.
func storageFactory(opts options.CompletedOptions, config *genericapiserver.Config) (*serverstorage.DefaultStorageFactory, error) {
	opts.Etcd.StorageConfig.Transport.TracerProvider = config.TracerProvider
	factoryConfig := kubeapiserver.NewStorageFactoryConfigEffectiveVersion(config.EffectiveVersion)
	factoryConfig.APIResourceConfig = config.MergedResourceConfig
	factoryConfig.DefaultResourceEncoding.SetEffectiveVersion(config.EffectiveVersion)
	factory, err := factoryConfig.Complete(opts.Etcd).New()
	if err != nil {
		return nil, err
	}
	factory.StorageConfig.StorageObjectCountTracker = config.StorageObjectCountTracker
	return factory, opts.Etcd.ApplyWithStorageFactoryTo(factory, config)
}

func authenticateAndAuthorize(opts options.CompletedOptions, config *genericapiserver.Config, client kubernetes.Interface, shared informers.SharedInformerFactory) error {
	ctx := wait.ContextForChannel(config.DrainedNotify())
	if err := fixClientAuthority(opts); err != nil {
		return err
	}
	if err := opts.Authentication.ApplyTo(ctx, &config.Authentication, config.SecureServing, config.EgressSelector,
		config.OpenAPIConfig, config.OpenAPIV3Config, client, shared, config.APIServerID); err != nil {
		return fmt.Errorf("configuring authentication: %w", err)
	}
	if err := fixRequestHeaderAuthority(opts, config); err != nil {
		return err
	}
	config.Authentication.Authenticator = newCertificateCache(config.Authentication.Authenticator, clock.RealClock{})
	authorizer, rules, _, err := controlplaneapiserver.BuildAuthorizer(ctx, opts.CompletedOptions, config.EgressSelector, config.APIServerID, shared)
	if err != nil {
		return fmt.Errorf("configuring authorization: %w", err)
	}
	config.Authorization.Authorizer, config.RuleResolver = authorizer, rules
	return nil
}
