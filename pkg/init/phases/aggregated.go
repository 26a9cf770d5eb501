package phases

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
	"github.com/karmada-toolkit/karmada/pkg/init/rollout"
)

// Aggregated is the phase that installs the aggregated API server, AggregatedAPI the one that registers its API.
const (
	Aggregated    = "aggregated"
	AggregatedAPI = "aggregated-api"
)

func aggregated() Phase {
	return Phase{
		Name: Aggregated, Doc: "Install the aggregated API server", Needs: afterEtcd(),
		host: aggregatedObjects, run: deploy(components.AggregatedAPIServer),
	}
}

func aggregatedObjects(in *Inputs) ([]client.Object, error) {
	return []client.Object{components.AggregatedHostService(in.Config), components.AggregatedDeployment(in.Config)}, nil
}

func aggregatedAPI() Phase {
	return Phase{
		Name: AggregatedAPI, Doc: "Register the aggregated API and wait until it is served", Needs: []string{APIServer, Aggregated},
		controlPlane: aggregatedAPIObjects, run: writeThen(waitForAggregatedAPI),
	}
}

func aggregatedAPIObjects(in *Inputs) ([]client.Object, error) {
	host := fmt.Sprintf("%s.%s.svc", in.Name(components.AggregatedService), in.Namespace)
	return append(components.SystemNamespaces(in.System()), components.AggregatedAPI(in.System(), host, 443, in.Certificates.CABundle())...), nil
}

// waitForAggregatedAPI waits until the aggregated API is served. After a restart the status of the
// APIService is that of before, so requests decide.
func waitForAggregatedAPI(ctx context.Context, s *State, p Phase, cp client.Client, in *Inputs) (string, error) {
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
