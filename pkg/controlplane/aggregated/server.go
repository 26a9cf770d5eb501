// Package aggregated is the API server of the member clusters: it stores Cluster
// objects in etcd and carries requests to the clusters' own API servers. It
// stands behind the control plane's API server as an aggregated API.
package aggregated

import (
	"context"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	genericfilters "k8s.io/apiserver/pkg/server/filters"
	restclient "k8s.io/client-go/rest"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/extension"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/aggregated/internalversion"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/aggregated/proxy"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/aggregated/registry"
	"github.com/karmada-toolkit/karmada/pkg/generated/openapi"
)

const serverName = "karmada-aggregated-apiserver"

// server is the aggregated API server before it runs.
type server struct {
	options      *Options
	controlPlane *restclient.Config
	secret       func(ctx context.Context, namespace, name string) (*corev1.Secret, error)
	now          func() time.Time
	serving      *genericapiserver.SecureServingInfo
}

// run serves until ctx ends.
func (s *server) run(ctx context.Context) error {
	scheme, err := internalversion.NewScheme()
	if err != nil {
		return err
	}
	codecs := serializer.NewCodecFactory(scheme)
	config, err := s.config(ctx, scheme, codecs)
	if err != nil {
		return err
	}
	generic, err := config.Complete(nil).New(serverName, genericapiserver.NewEmptyDelegate())
	if err != nil {
		return fmt.Errorf("preparing the server: %w", err)
	}
	group, err := s.group(scheme, codecs, config)
	if err != nil {
		return err
	}
	return extension.Serve(ctx, generic, s.options.ShutdownTimeout, group)
}

// config returns the configuration of the generic server.
func (s *server) config(ctx context.Context, scheme *runtime.Scheme, codecs serializer.CodecFactory) (*genericapiserver.Config, error) {
	config, err := s.options.StoreConfig(ctx, s.controlPlane, s.serving, extension.API{
		Title: "Karmada", Schemes: []*runtime.Scheme{scheme}, Codecs: codecs, Definitions: openapi.GetOpenAPIDefinitions,
	}, clusterv1alpha1.GroupVersion)
	if err != nil {
		return nil, err
	}
	config.LongRunningFunc = proxy.LongRunning(genericfilters.BasicLongRunningRequestCheck(sets.NewString("watch"), sets.NewString()))
	config.BuildHandlerChainFunc = func(handler http.Handler, c *genericapiserver.Config) http.Handler {
		return genericapiserver.DefaultBuildHandlerChain(checkQuantities(proxy.KeepInner(handler), codecs, c.MaxRequestBodyBytes), c)
	}
	return config, nil
}

// group returns the API group with its resources.
func (s *server) group(scheme *runtime.Scheme, codecs serializer.CodecFactory, config *genericapiserver.Config) (*genericapiserver.APIGroupInfo, error) {
	minTLS, err := cliflag.TLSVersion(s.options.MemberMinTLSVersion)
	if err != nil {
		return nil, fmt.Errorf("--member-tls-min-version: %w", err)
	}
	clusters, status, err := registry.New(registry.Options{
		Typer:            scheme,
		RESTOptions:      config.RESTOptionsGetter,
		ResourceModeling: s.options.resourceModeling(), LoopbackEndpoints: s.options.LoopbackEndpoints,
		Authorizer: config.Authorization.Authorizer, Secret: s.secret,
		Now: func() metav1.Time { return metav1.NewTime(s.now()) },
	})
	if err != nil {
		return nil, err
	}
	members, err := proxy.New(proxy.Options{
		Clusters:      clusters,
		Secret:        s.secret,
		ControlPlane:  s.controlPlane,
		MinTLSVersion: minTLS,
		MemberTimeout: s.options.MemberTimeout,
	})
	if err != nil {
		return nil, err
	}
	group := genericapiserver.NewDefaultAPIGroupInfo(clusterv1alpha1.GroupName, scheme, runtime.NewParameterCodec(scheme), codecs)
	group.VersionedResourcesStorageMap[clusterv1alpha1.GroupVersion.Version] = map[string]rest.Storage{
		"clusters":        clusters,
		"clusters/status": status,
		"clusters/proxy":  members,
	}
	return &group, nil
}

// Setup adds the aggregated API server to the manager. It listens at once, so that
// a port that is taken shows here.
func Setup(_ context.Context, mgr manager.Manager, o *Options) error {
	serving, err := o.Serving("aggregated-apiserver")
	if err != nil {
		return err
	}
	s := &server{
		options:      o,
		controlPlane: mgr.GetConfig(),
		secret:       controllers.Secrets(mgr.GetClient(), mgr.GetAPIReader()),
		now:          clock.RealClock{}.Now,
		serving:      serving,
	}
	if err := mgr.Add(controllers.Everywhere(s.run)); err != nil {
		return fmt.Errorf("adding the aggregated API server: %w", err)
	}
	return nil
}
