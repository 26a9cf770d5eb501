// Package clusterlocality prefers the clusters that a binding is on already.
package clusterlocality

import "github.com/karmada-toolkit/karmada/pkg/controlplane/domain/schedule/framework"

// Name is the name of the plugin in --plugins.
const Name = "ClusterLocality"

type plugin struct{}

// New returns the plugin.
func New() framework.Score { return plugin{} }

// Name returns the name of the plugin.
func (plugin) Name() string { return Name }

// Score gives the most to clusters in the target list and nothing to others.
func (plugin) Score(pass *framework.Pass, cluster *framework.ClusterInfo) (int64, error) {
	if pass.IsTarget(cluster) {
		return framework.MaxScore, nil
	}
	return 0, nil
}
