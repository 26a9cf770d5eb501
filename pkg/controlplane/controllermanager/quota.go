package controllermanager

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/gates"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/federatedquota"
)

// quotas sets up the controllers of federated quotas.
type quotas struct {
	deps federatedquota.Deps
}

func newQuotas(o *Options, retry controllers.Retry) *quotas {
	return &quotas{federatedquota.Deps{
		Enforcement: o.Gates.Enabled(gates.FederatedQuotaEnforcement), SyncPeriod: o.QuotaSyncPeriod, Events: o.Events, Retry: retry,
	}}
}

func (q *quotas) sync(ctx context.Context, mgr manager.Manager) error {
	return federatedquota.SetupSync(ctx, mgr, q.deps)
}

func (q *quotas) status(ctx context.Context, mgr manager.Manager) error {
	return federatedquota.SetupStatus(ctx, mgr, q.deps)
}

// enforcement follows the feature gate FederatedQuotaEnforcement.
func (q *quotas) enforcement(ctx context.Context, mgr manager.Manager) error {
	if !q.deps.Enforcement {
		return nil
	}
	return federatedquota.SetupEnforcement(ctx, mgr, q.deps)
}
