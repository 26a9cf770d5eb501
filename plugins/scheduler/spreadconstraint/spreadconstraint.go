// Package spreadconstraint keeps bindings that are spread over providers,
// regions or zones off clusters that do not say theirs.
package spreadconstraint

import (
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/domain/schedule/framework"
)

// Name is the name of the plugin in --plugins.
const Name = "SpreadConstraint"

const (
	noProvider = "cluster(s) did not have provider property"
	noRegion   = "cluster(s) did not have region property"
	noZones    = "cluster(s) did not have zones property"
)

type plugin struct{}

// New returns the plugin.
func New() framework.Filter { return plugin{} }

// Name returns the name of the plugin.
func (plugin) Name() string { return Name }

// Filter passes clusters that have every property which a spread constraint
// groups by.
func (plugin) Filter(pass *framework.Pass, cluster *framework.ClusterInfo) framework.Verdict {
	spec := &cluster.Object.Spec
	for i := range pass.Spec.Placement.SpreadConstraints {
		switch pass.Spec.Placement.SpreadConstraints[i].SpreadByField {
		case policyv1alpha1.SpreadByFieldProvider:
			if spec.Provider == "" {
				return framework.Reject(noProvider)
			}
		case policyv1alpha1.SpreadByFieldRegion:
			if spec.Region == "" {
				return framework.Reject(noRegion)
			}
		case policyv1alpha1.SpreadByFieldZone:
			if len(spec.Zones) == 0 {
				return framework.Reject(noZones)
			}
		}
	}
	return framework.Verdict{}
}
