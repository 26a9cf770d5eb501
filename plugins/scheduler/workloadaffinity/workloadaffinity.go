// Package workloadaffinity draws a workload to the clusters that its group
// already uses.
package workloadaffinity

import (
	"slices"

	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/domain/schedule/framework"
)

// Name is the name of the plugin in --plugins.
const Name = "WorkloadAffinity"

const reason = "ResourceBinding with the same affinity group does not target this cluster"

type plugin struct{}

// New returns the plugin.
func New() framework.Filter { return plugin{} }

// Name returns the name of the plugin.
func (plugin) Name() string { return Name }

// Filter passes clusters that every placed peer targets. The first of a group may
// go anywhere; targets of the binding itself stay.
func (plugin) Filter(pass *framework.Pass, cluster *framework.ClusterInfo) framework.Verdict {
	if len(pass.Peers.Affinity) == 0 || pass.IsTarget(cluster) {
		return framework.Verdict{}
	}
	named := func(t workv1alpha2.TargetCluster) bool { return t.Name == cluster.Name() }
	for i := range pass.Peers.Affinity {
		clusters := pass.Peers.Affinity[i].Clusters
		if len(clusters) > 0 && !slices.ContainsFunc(clusters, named) {
			return framework.Reject(reason)
		}
	}
	return framework.Verdict{}
}
