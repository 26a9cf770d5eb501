// Package tainttoleration keeps bindings off clusters whose taints they do not
// tolerate.
package tainttoleration

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/karmada-toolkit/karmada/pkg/controlplane/domain/schedule/framework"
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
// and those that are targets already. A toleration whose seconds are over does not
// count: the binding would be evicted at once, and scheduled again, without end.
func (plugin) Filter(pass *framework.Pass, cluster *framework.ClusterInfo) framework.Verdict {
	if len(cluster.Taints) == 0 || pass.IsTarget(cluster) {
		return framework.Verdict{}
	}
	for i := range cluster.Taints {
		taint := &cluster.Taints[i]
		used := pass.Tolerating(&taint.Taint)
		if used == nil || over(used, cluster.Taints, pass.Now) {
			return framework.Verdict{Reason: reason, Detail: taint.Text}
		}
	}
	return framework.Verdict{}
}

// over reports whether the seconds of a toleration are over for one of the taints that it tolerates, as the taint
// manager counts them.
func over(t *corev1.Toleration, taints []framework.Taint, now time.Time) bool {
	if t.TolerationSeconds == nil || now.IsZero() {
		return false
	}
	return slices.ContainsFunc(taints, func(taint framework.Taint) bool {
		return taint.Effect == corev1.TaintEffectNoExecute && taint.TimeAdded != nil && framework.Tolerates(t, &taint.Taint) &&
			!now.Before(taint.TimeAdded.Add(time.Duration(*t.TolerationSeconds)*time.Second))
	})
}
