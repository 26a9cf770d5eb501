package scheduler

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	estimator "github.com/karmada-toolkit/karmada/pkg/controlplane/estimator/client"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/scheduler/core"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/scheduler/framework"
)

// newEstimates returns the answers of the accurate estimators of clusters, over
// connections that end with the manager.
func newEstimates(mgr manager.Manager, e *EstimatorOptions) (Estimates, error) {
	pool, err := estimator.ForManager(mgr, e.Options)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, request *core.Request, clusters []*framework.Cluster) map[string]core.Estimate {
		return pool.Estimates(ctx, request, clusters, e.DisabledInPullMode)
	}, nil
}
