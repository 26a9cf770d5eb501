package cluster

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
)

// taintsFor returns the taints that a cluster with that Ready condition has, and
// whether they differ from those it has. It keeps all other taints.
func taintsFor(taints []corev1.Taint, ready *metav1.Condition, now time.Time) ([]corev1.Taint, bool) {
	add, remove := "", []string(nil)
	switch {
	case ready == nil:
		add = clusterv1alpha1.TaintClusterNotReady
	case ready.Status == metav1.ConditionFalse:
		add, remove = clusterv1alpha1.TaintClusterNotReady, []string{clusterv1alpha1.TaintClusterUnreachable}
	case ready.Status == metav1.ConditionUnknown:
		add, remove = clusterv1alpha1.TaintClusterUnreachable, []string{clusterv1alpha1.TaintClusterNotReady}
	case ready.Status == metav1.ConditionTrue:
		remove = []string{clusterv1alpha1.TaintClusterNotReady, clusterv1alpha1.TaintClusterUnreachable}
	}
	out := slices.DeleteFunc(slices.Clone(taints), func(t corev1.Taint) bool {
		return t.Effect == corev1.TaintEffectNoSchedule && slices.Contains(remove, t.Key)
	})
	changed := len(out) != len(taints)
	has := slices.ContainsFunc(out, func(t corev1.Taint) bool { return t.Key == add && t.Effect == corev1.TaintEffectNoSchedule })
	if add != "" && !has {
		at := metav1.NewTime(now)
		out = append(out, corev1.Taint{Key: add, Effect: corev1.TaintEffectNoSchedule, TimeAdded: &at})
		changed = true
	}
	return out, changed
}

// unhealthy reports whether there is a taint of unhealthy clusters.
func unhealthy(taints []corev1.Taint) bool {
	return slices.ContainsFunc(taints, clusterv1alpha1.IsHealthTaint)
}
