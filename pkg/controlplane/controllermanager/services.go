package controllermanager

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/gates"
	"github.com/karmada-toolkit/karmada/internal/status"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	networkingv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/networking/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/endpointslice"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/endpointslicecollect"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/endpointslicedispatch"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/multiclusterservice"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/serviceexport"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/serviceimport"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/servicestatus"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/templates"
	"github.com/karmada-toolkit/karmada/pkg/domain/services"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
)

// networking sets up the controllers of services that span clusters.
type networking struct {
	options *Options
	store   *templates.Store
	members *access.Pool
	retry   controllers.Retry
	// conditions writes those of MultiClusterServices, so that each of the two controllers sees what the other wrote.
	conditions *status.Writer[*networkingv1alpha1.MultiClusterService, *corev1.ServiceStatus]
}

// collect collects slices for the enabled ones of two controllers, which share their
// watches.
func (n *networking) collect(ctx context.Context, mgr manager.Manager) error {
	var managers []services.Manager
	if n.options.Enabled("serviceExport") {
		managers = append(managers, services.Export)
	}
	if n.options.Enabled("endpointsliceCollect") && n.options.Gates.Enabled(gates.MultiClusterService) {
		managers = append(managers, services.MCS)
	}
	if len(managers) == 0 {
		return nil
	}
	return endpointslicecollect.Setup(ctx, mgr, endpointslicecollect.Deps{
		Members: n.members, Managers: managers, Retry: n.retry, Select: pushed,
	})
}

func (n *networking) serviceExport(ctx context.Context, mgr manager.Manager) error {
	return errors.Join(
		serviceexport.Setup(ctx, mgr, serviceexport.Deps{Store: n.store, Retry: n.retry}),
		servicestatus.Setup(ctx, mgr, servicestatus.Deps{Members: n.members, Select: pushed, Retry: n.retry}),
	)
}

func pushed(c *clusterv1alpha1.Cluster) bool { return c.Spec.SyncMode != clusterv1alpha1.Pull }

func (n *networking) endpointSlice(ctx context.Context, mgr manager.Manager) error {
	return endpointslice.Setup(ctx, mgr, endpointslice.Deps{Retry: n.retry})
}

func (n *networking) serviceImport(ctx context.Context, mgr manager.Manager) error {
	return serviceimport.Setup(ctx, mgr, serviceimport.Deps{Store: n.store, Events: n.options.Events, Retry: n.retry})
}

// multiClusterService follows the feature gate MultiClusterService.
func (n *networking) multiClusterService(ctx context.Context, mgr manager.Manager) error {
	if !n.options.Gates.Enabled(gates.MultiClusterService) {
		return nil
	}
	return multiclusterservice.Setup(ctx, mgr, multiclusterservice.Deps{Store: n.store, Events: n.options.Events, Conditions: n.conditions, Retry: n.retry})
}

// dispatch dispatches slices if that is enabled. Otherwise it lets go of the Works that
// were collected before, whose finalizers would hold their clusters.
func (n *networking) dispatch(ctx context.Context, mgr manager.Manager) error {
	return endpointslicedispatch.Setup(ctx, mgr, endpointslicedispatch.Deps{
		Enabled: n.options.Enabled("endpointsliceDispatch") && n.options.Gates.Enabled(gates.MultiClusterService),
		Events:  n.options.Events, Conditions: n.conditions, Retry: n.retry,
	})
}
