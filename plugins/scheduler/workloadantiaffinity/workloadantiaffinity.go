// Package workloadantiaffinity keeps a workload off the clusters that its group
// already uses.
package workloadantiaffinity

import (
	"slices"

	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/domain/schedule/framework"
)

// Name is the name of the plugin in --plugins.
const Name = "WorkloadAntiAffinity"

const reason = "cluster already has workload with the same anti-affinity group"

type plugin struct{}

// New returns the plugin.
func New() framework.Filter { return plugin{} }

// Name returns the name of the plugin.
func (plugin) Name() string { return Name }

// Filter passes clusters that no peer targets; targets of the binding itself
// stay.
func (plugin) Filter(pass *framework.Pass, cluster *framework.ClusterInfo) framework.Verdict {
	if len(pass.Peers.AntiAffinity) == 0 || pass.IsTarget(cluster) {
		return framework.Verdict{}
	}
	named := func(t workv1alpha2.TargetCluster) bool { return t.Name == cluster.Name() }
	for i := range pass.Peers.AntiAffinity {
		if slices.ContainsFunc(pass.Peers.AntiAffinity[i].Clusters, named) {
			return framework.Reject(reason)
		}
	}
	return framework.Verdict{}
}
