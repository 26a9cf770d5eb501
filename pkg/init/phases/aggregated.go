package phases

import (
	"context"
	"errors"
	"fmt"

	"github.com/karmada-toolkit/karmada/internal/wait"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
	"github.com/karmada-toolkit/karmada/pkg/init/rollout"
)

// awaitAggregatedAPI waits until the aggregated API is served. After a restart the status of the
// APIService is that of before, so requests decide.
func awaitAggregatedAPI(ctx context.Context, s *State, p Phase) (string, error) {
	cp, in, err := s.controlPlaneAndInputs(ctx)
	if err != nil {
		return "", err
	}
	rc, err := s.ControlPlaneConfig()
	if err != nil {
		return "", err
	}
	name := components.APIServiceName(clusterv1alpha1.GroupVersion)
	err = s.wait(ctx, s.Config.Timeout(), p.Name, "the aggregated API to be available", func(ctx context.Context) error {
		if err := rollout.CheckAPI(ctx, cp, name); err != nil {
			return err
		}
		return rollout.CheckServed(ctx, rc, clusterv1alpha1.GroupVersion, in.Config.Workloads[components.APIServer].Replicas)
	})
	if err != nil {
		return "", fmt.Errorf("APIService %s is not available: %w", name, err)
	}
	return "available, ", nil
}

// awaitAPIs waits until the APIs of an addon are served.
func awaitAPIs(addon string) func(context.Context, *State, Phase) (string, error) {
	return func(ctx context.Context, s *State, p Phase) (string, error) {
		apis := components.AddonAPIs(addon)
		if len(apis) == 0 {
			return "ready, ", nil // the control plane is connected to only where that is needed
		}
		cp, err := s.ControlPlane(ctx)
		if err != nil {
			return "", err
		}
		for _, gv := range apis {
			api := components.APIServiceName(gv)
			err := s.wait(ctx, s.Config.Addons.Timeout(), p.Name, "API "+api, func(ctx context.Context) error { return rollout.CheckAPI(ctx, cp, api) })
			if errors.Is(err, wait.ErrTimeout) {
				err = fmt.Errorf("%w; see --apiservice-timeout", err)
			}
			if err != nil {
				return "", fmt.Errorf("APIService %s: %w", api, err)
			}
		}
		return "ready, ", nil
	}
}
