package metricsadapter

import (
	"context"
	"fmt"

	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/util/compatibility"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/metrics/pkg/apis/metrics"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/apiserver"

	"github.com/karmada-toolkit/karmada/internal/metricsapi"
	"github.com/karmada-toolkit/karmada/pkg/generated/openapi"
)

const serverName = "karmada-metrics-adapter"

// Start implements manager.Runnable: it serves until ctx ends.
func (s *server) Start(ctx context.Context) error {
	r := &requester{members: s.members, timeout: s.options.MemberTimeout}
	group, err := metricsapi.NewGroup(&usage{r})
	if err != nil {
		return err
	}
	config := genericapiserver.NewConfig(apiserver.Codecs)
	config.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	config.FeatureGate = utilfeature.DefaultFeatureGate
	config.ShutdownWatchTerminationGracePeriod = s.options.ShutdownTimeout
	namer := openapinamer.NewDefinitionNamer(apiserver.Scheme, group.Scheme)
	config.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(openapi.GetOpenAPIDefinitions, namer)
	config.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(openapi.GetOpenAPIDefinitions, namer)
	config.OpenAPIConfig.Info.Title, config.OpenAPIV3Config.Info.Title = serverName, serverName
	if err := s.options.Apply(ctx, s.controlPlane, s.serving, config); err != nil {
		return err
	}
	adapter := apiserver.Config{GenericConfig: config}
	complete := adapter.Complete(nil)
	served, err := complete.New(serverName, &custom{requester: r, ctx: ctx}, external{})
	if err != nil {
		return fmt.Errorf("preparing the metrics adapter: %w", err)
	}
	generic := served.GenericAPIServer
	generic.ShutdownTimeout = s.options.ShutdownTimeout
	if err := generic.InstallAPIGroup(group); err != nil {
		return fmt.Errorf("installing %s: %w", metrics.GroupName, err)
	}
	if err := generic.PrepareRun().RunWithContext(ctx); err != nil {
		return fmt.Errorf("serving metrics: %w", err)
	}
	return nil
}
