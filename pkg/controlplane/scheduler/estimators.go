package scheduler

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/karmada-toolkit/karmada/pkg/controlplane/domain/schedule/core"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/domain/schedule/framework"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/estimator/client/managed"
)

// newEstimates returns the answers of the accurate estimators of clusters, over
// connections that end with the manager, and what ends the connection to a cluster
// that was deleted.
func newEstimates(mgr manager.Manager, e *EstimatorOptions) (estimates Estimates, forget func(cluster string), err error) {
	pool, err := managed.NewPool(mgr, e.Options)
	if err != nil {
		return nil, nil, err
	}
	return func(ctx context.Context, request *core.Request, clusters []*framework.Cluster) map[string]core.Estimate {
		return pool.Estimates(ctx, request, clusters, e.DisabledInPullMode)
	}, pool.Forget, nil
}
