// Package example shows a scheduler plugin out of tree: it keeps new bindings off
// clusters in maintenance and prefers clusters of the template's favorite
// provider. A binary of one's own registers it before the role starts:
//
//	o := scheduler.NewOptions()
//	o.OutOfTree = framework.Registry{example.Name: example.Factory}
//	err := scheduler.Setup(ctx, mgr, o)
//
// It then runs with --plugins=* and is left out with --plugins=*,-Maintenance.
package example

import "github.com/karmada-toolkit/karmada/pkg/domain/schedule/framework"

// Name is the name of the plugin in --plugins.
const Name = "Maintenance"

// MaintenanceLabel on a Cluster, set to "true", keeps new bindings off it.
const MaintenanceLabel = "example.com/maintenance"

const reason = "cluster(s) were in maintenance"

type plugin struct{ favorite string }

var (
	_ framework.Filter = plugin{}
	_ framework.Score  = plugin{}
)

// New returns the plugin; favorite is the provider that it prefers.
func New(favorite string) framework.Plugin { return plugin{favorite: favorite} }

// Factory makes the plugin without a favorite provider.
func Factory() (framework.Plugin, error) { return New(""), nil }

// Name returns the name of the plugin.
func (plugin) Name() string { return Name }

// Filter passes clusters that are not in maintenance, and those that are targets
// already.
func (plugin) Filter(pass *framework.Pass, cluster *framework.ClusterInfo) framework.Verdict {
	if cluster.Object.Labels[MaintenanceLabel] == "true" && !pass.IsTarget(cluster) {
		return framework.Reject(reason)
	}
	return framework.Verdict{}
}

// Score prefers clusters of the favorite provider.
func (p plugin) Score(_ *framework.Pass, cluster *framework.ClusterInfo) (int64, error) {
	if p.favorite != "" && cluster.Object.Spec.Provider == p.favorite {
		return framework.MaxScore, nil
	}
	return 0, nil
}
