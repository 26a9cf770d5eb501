package controllermanager

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/karmada-toolkit/karmada/internal/gates"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/agentcsr"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/agentrbac"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/cluster"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/clusterstatus"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/controllers/massfailure"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/orphans"
	"github.com/karmada-toolkit/karmada/pkg/member/access"
)

// clusters sets up the controllers that admit clusters and observe them.
type clusters struct {
	// wentBack is called when a cluster was found to be restored from an older copy.
	wentBack func(cluster, from, to string)
	options  *Options
	members  *access.Pool
	// guard receives what is observed.
	guard *massfailure.Guard
}

func (c *clusters) agentCSR(ctx context.Context, mgr manager.Manager) error {
	return agentcsr.Setup(ctx, mgr, agentcsr.Deps{Grant: agentrbac.NewGranter(mgr).Grant})
}

func (c *clusters) cluster(ctx context.Context, mgr manager.Manager) error {
	o := c.options
	return cluster.Setup(ctx, mgr, cluster.Deps{
		Workers: o.ClusterSyncs, MonitorPeriod: o.MonitorPeriod,
		MonitorGracePeriod: o.MonitorGracePeriod, StartupGracePeriod: o.StartupGracePeriod,
		FlapWindow: o.Failover.FlapWindow, Reported: c.guard.Observe, Gone: c.members.Forget,
	})
}

func (c *clusters) clusterStatus(ctx context.Context, mgr manager.Manager) error {
	o := c.options
	lost, err := orphans.Setup(mgr, orphans.Deps{Member: func(ctx context.Context, cluster *clusterv1alpha1.Cluster) (orphans.API, error) {
		return c.members.Member(ctx, cluster)
	}})
	if err != nil {
		return err
	}
	c.wentBack = lost.WentBack
	return clusterstatus.Setup(ctx, mgr, clusterstatus.Deps{
		Members: c.members, Frequency: o.StatusFrequency, Conditions: lost.Conditions, Probed: c.guard.Observe,
		SuccessThreshold: o.SuccessThreshold, FailureThreshold: o.FailureThreshold,
		Resources: o.ResourceModeling,
		Modeling:  o.Gates.Enabled(gates.CustomizedClusterResourceModeling),
	})
}
