// Package clustereviction keeps bindings off clusters that they are just being
// evicted from.
package clustereviction

import "github.com/karmada-toolkit/karmada/pkg/controlplane/domain/schedule/framework"

// Name is the name of the plugin in --plugins.
const Name = "ClusterEviction"

const reason = "cluster(s) is in the process of eviction"

type plugin struct{}

// New returns the plugin.
func New() framework.Filter { return plugin{} }

// Name returns the name of the plugin.
func (plugin) Name() string { return Name }

// Filter passes clusters that no eviction task of the binding leaves.
func (plugin) Filter(pass *framework.Pass, cluster *framework.ClusterInfo) framework.Verdict {
	if len(pass.Spec.GracefulEvictionTasks) > 0 && pass.Spec.EvictingFrom(cluster.Name()) {
		return framework.Reject(reason)
	}
	return framework.Verdict{}
}
