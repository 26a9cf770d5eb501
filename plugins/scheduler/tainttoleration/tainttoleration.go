// Package tainttoleration keeps bindings off clusters whose taints they do not
// tolerate.
package tainttoleration

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/karmada-toolkit/karmada/pkg/controlplane/scheduler/framework"
)

// Name is the name of the plugin in --plugins.
const Name = "TaintToleration"

const reason = "cluster(s) had untolerated taint"

type plugin struct{}

// New returns the plugin.
func New() framework.Filter { return plugin{} }

// Name returns the name of the plugin.
func (plugin) Name() string { return Name }

// Filter passes clusters whose NoSchedule and NoExecute taints are all tolerated,
// and those that are targets already.
func (plugin) Filter(pass *framework.Pass, cluster *framework.ClusterInfo) framework.Verdict {
	if len(cluster.Taints) == 0 || pass.IsTarget(cluster) {
		return framework.Verdict{}
	}
	for i := range cluster.Taints {
		if !tolerated(pass.Spec.Placement.ClusterTolerations, &cluster.Taints[i].Taint) {
			return framework.Verdict{Reason: reason, Detail: cluster.Taints[i].Text}
		}
	}
	return framework.Verdict{}
}

func tolerated(tolerations []corev1.Toleration, taint *corev1.Taint) bool {
	for i := range tolerations {
		t := &tolerations[i]
		if t.Effect != "" && t.Effect != taint.Effect || t.Key != "" && t.Key != taint.Key {
			continue
		}
		switch t.Operator {
		case corev1.TolerationOpExists:
			return true
		case "", corev1.TolerationOpEqual:
			if t.Value == taint.Value {
				return true
			}
		}
	}
	return false
}
