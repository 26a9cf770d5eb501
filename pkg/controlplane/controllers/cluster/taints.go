package cluster

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
)

// taintsFor returns the taints that a cluster with that Ready condition has, and
// whether they differ from those it has. Taints of others stay.
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

// describe writes taints as the event about them does.
func describe(taints []corev1.Taint) string {
	if len(taints) == 0 {
		return "cluster now does not have taints"
	}
	parts := make([]string, len(taints))
	for i, t := range taints {
		var b strings.Builder
		b.WriteString("{Key:" + t.Key)
		if t.Value != "" {
			b.WriteString(",Value:" + t.Value)
		}
		b.WriteString(",Effect:" + string(t.Effect) + "}")
		parts[i] = b.String()
	}
	return "cluster now has taints([" + strings.Join(parts, ",") + "])"
}
