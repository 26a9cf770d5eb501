// Package clusteraffinity keeps bindings on the clusters that their placement
// selects.
package clusteraffinity

import "github.com/karmada-toolkit/karmada/pkg/controlplane/domain/schedule/framework"

// Name is the name of the plugin in --plugins.
const Name = "ClusterAffinity"

const reason = "cluster(s) did not match the placement cluster affinity constraint"

type plugin struct{}

var (
	_ framework.Filter = plugin{}
	_ framework.Score  = plugin{}
)

// New returns the plugin.
func New() framework.Filter { return plugin{} }

// Name returns the name of the plugin.
func (plugin) Name() string { return Name }

// Filter passes clusters that the affinity in use or, for workloads, one of its
// overflow affinities selects.
func (plugin) Filter(pass *framework.Pass, cluster *framework.ClusterInfo) framework.Verdict {
	if pass.Tier(cluster) == framework.OutsideTiers {
		return framework.Reject(reason)
	}
	return framework.Verdict{}
}

// Score prefers no cluster.
func (plugin) Score(*framework.Pass, *framework.ClusterInfo) (int64, error) { return 0, nil }
