package controllermanager

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/karmada-toolkit/karmada/internal/gates"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/federatedquota"
)

// quotaDeps returns the dependencies of the controllers of federated quotas.
func (p *parts) quotaDeps() federatedquota.Deps {
	o := p.options
	return federatedquota.Deps{
		Enforcement: o.Gates.Enabled(gates.FederatedQuotaEnforcement), SyncPeriod: o.QuotaSyncPeriod, Events: o.Events, Retry: p.retry(),
	}
}

func (p *parts) quotaSync(ctx context.Context, mgr manager.Manager) error {
	return federatedquota.SetupSync(ctx, mgr, p.quotaDeps())
}

func (p *parts) quotaStatus(ctx context.Context, mgr manager.Manager) error {
	return federatedquota.SetupStatus(ctx, mgr, p.quotaDeps())
}

// quotaEnforcement follows the feature gate FederatedQuotaEnforcement.
func (p *parts) quotaEnforcement(ctx context.Context, mgr manager.Manager) error {
	d := p.quotaDeps()
	if !d.Enforcement {
		return nil
	}
	return federatedquota.SetupEnforcement(ctx, mgr, d)
}
