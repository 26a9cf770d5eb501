package extension

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/util/compatibility"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/rest"
	"k8s.io/kube-openapi/pkg/common"
)

// API is what a server serves.
type API struct {
	// Title is the title of the OpenAPI documents.
	Title string
	// Schemes have the kinds that are served.
	Schemes []*runtime.Scheme
	// Codecs encode and decode them.
	Codecs serializer.CodecFactory
	// Definitions are the OpenAPI definitions of the kinds.
	Definitions common.GetOpenAPIDefinitions
	// ShutdownTimeout bounds the wait for connections at the end.
	ShutdownTimeout time.Duration
}

// Config returns the configuration of a server that authenticates, authorizes and audits requests as the settings say.
func (o *Options) Config(ctx context.Context, controlPlane *rest.Config, serving *genericapiserver.SecureServingInfo, api API) (*genericapiserver.Config, error) {
	config := genericapiserver.NewConfig(api.Codecs)
	config.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	config.FeatureGate = utilfeature.DefaultFeatureGate
	config.ShutdownWatchTerminationGracePeriod = api.ShutdownTimeout
	namer := openapinamer.NewDefinitionNamer(api.Schemes...)
	config.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(api.Definitions, namer)
	config.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(api.Definitions, namer)
	config.OpenAPIConfig.Info.Title, config.OpenAPIV3Config.Info.Title = api.Title, api.Title
	if err := o.apply(ctx, controlPlane, serving, config); err != nil {
		return nil, err
	}
	return config, nil
}

// Serve adds API groups to a server and serves until ctx ends.
func Serve(ctx context.Context, server *genericapiserver.GenericAPIServer, shutdownTimeout time.Duration, groups ...*genericapiserver.APIGroupInfo) error {
	server.ShutdownTimeout = shutdownTimeout
	for _, group := range groups {
		if err := server.InstallAPIGroup(group); err != nil {
			return fmt.Errorf("installing %s: %w", group.PrioritizedVersions[0].Group, err)
		}
	}
	if err := server.PrepareRun().RunWithContext(ctx); err != nil {
		return fmt.Errorf("serving: %w", err)
	}
	return nil
}
