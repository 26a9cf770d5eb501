package controllermanager

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/karmada-toolkit/karmada/internal/gates"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/endpointslice"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/endpointslicecollect"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/endpointslicedispatch"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/multiclusterservice"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/serviceexport"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/serviceimport"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/services"
)

// collect collects slices for the enabled ones of two controllers, which share their
// watches.
func (p *parts) collect(ctx context.Context, mgr manager.Manager) error {
	var managers []services.Manager
	if p.options.Enabled("serviceExport") {
		managers = append(managers, services.Export)
	}
	if p.options.Enabled("endpointsliceCollect") && p.options.Gates.Enabled(gates.MultiClusterService) {
		managers = append(managers, services.MCS)
	}
	if len(managers) == 0 {
		return nil
	}
	return endpointslicecollect.Setup(ctx, mgr, endpointslicecollect.Deps{
		Members: p.pool, Managers: managers, Retry: p.retry(),
		Select: func(c *clusterv1alpha1.Cluster) bool { return c.Spec.SyncMode != clusterv1alpha1.Pull },
	})
}

func (p *parts) serviceExport(ctx context.Context, mgr manager.Manager) error {
	return serviceexport.Setup(ctx, mgr, serviceexport.Deps{Store: p.store, Retry: p.retry()})
}

func (p *parts) endpointSlice(ctx context.Context, mgr manager.Manager) error {
	return endpointslice.Setup(ctx, mgr, endpointslice.Deps{Retry: p.retry()})
}

func (p *parts) serviceImport(ctx context.Context, mgr manager.Manager) error {
	return serviceimport.Setup(ctx, mgr, serviceimport.Deps{Store: p.store, Events: p.options.Events, Retry: p.retry()})
}

// multiClusterService follows the feature gate MultiClusterService.
func (p *parts) multiClusterService(ctx context.Context, mgr manager.Manager) error {
	if !p.options.Gates.Enabled(gates.MultiClusterService) {
		return nil
	}
	return multiclusterservice.Setup(ctx, mgr, multiclusterservice.Deps{Store: p.store, Events: p.options.Events, Retry: p.retry()})
}

// dispatch dispatches slices if that is enabled. Otherwise it lets go of the Works that
// were collected before, whose finalizers would hold their clusters.
func (p *parts) dispatch(ctx context.Context, mgr manager.Manager) error {
	return endpointslicedispatch.Setup(ctx, mgr, endpointslicedispatch.Deps{
		Enabled: p.options.Enabled("endpointsliceDispatch") && p.options.Gates.Enabled(gates.MultiClusterService),
		Events:  p.options.Events, Retry: p.retry(),
	})
}
