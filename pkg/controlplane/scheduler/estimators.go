package scheduler

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	estimator "github.com/karmada-toolkit/karmada/pkg/controlplane/estimator/client"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/scheduler/core"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/scheduler/framework"
)

// newEstimates returns the answers of the accurate estimators of clusters, over
// connections that end with the manager. The Services are read live: they are few,
// and needed only to connect.
func newEstimates(mgr manager.Manager, e *EstimatorOptions) (Estimates, error) {
	live := mgr.GetAPIReader()
	pool, err := estimator.NewPool(estimator.Options{
		Services: func(ctx context.Context, namespace, name string) (*corev1.Service, error) {
			service := &corev1.Service{}
			err := live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, service)
			return service, err
		},
		Namespace: e.ServiceNamespace, Prefix: e.ServicePrefix, Port: e.Port, Timeout: e.Timeout,
		CertFile: e.CertFile, KeyFile: e.KeyFile, CAFile: e.CAFile, InsecureSkipVerify: e.InsecureSkipVerify,
	})
	if err != nil {
		return nil, fmt.Errorf("estimators: %w", err)
	}
	if err := mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		<-ctx.Done()
		pool.Close()
		return nil
	})); err != nil {
		return nil, fmt.Errorf("estimators: %w", err)
	}
	return func(ctx context.Context, request *core.Request, clusters []*framework.Cluster) map[string]core.Estimate {
		return pool.Estimates(ctx, request, clusters, e.DisabledInPullMode)
	}, nil
}
