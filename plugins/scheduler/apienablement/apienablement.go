// Package apienablement keeps bindings off clusters that do not serve the kind
// of their template.
package apienablement

import "github.com/karmada-toolkit/karmada/pkg/controlplane/domain/schedule/framework"

// Name is the name of the plugin in --plugins.
const Name = "APIEnablement"

// Reasons for the user. That of the contract is the first.
const (
	reason             = "cluster(s) did not have the API resource"
	reasonNotCollected = "cluster(s) whose API resources are not collected yet"
)

type plugin struct{}

// New returns the plugin.
func New() framework.Filter { return plugin{} }

// Name returns the name of the plugin.
func (plugin) Name() string { return Name }

// Filter passes clusters that serve the kind, and those that are targets already:
// the list of APIs may be incomplete for a while.
func (plugin) Filter(pass *framework.Pass, cluster *framework.ClusterInfo) framework.Verdict {
	if pass.IsTarget(cluster) || pass.Served(cluster) {
		return framework.Verdict{}
	}
	if !cluster.APIsCollected() {
		return framework.Reject(reasonNotCollected)
	}
	return framework.Reject(reason)
}
