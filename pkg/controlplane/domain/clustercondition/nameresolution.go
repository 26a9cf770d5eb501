package clustercondition

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
)

// Reasons of the condition ServiceDomainNameResolutionReady, of nodes and of clusters.
const (
	ReasonNameResolutionReady  = "ServiceDomainNameResolutionReady"
	ReasonNameResolutionFailed = "ServiceDomainNameResolutionFailed"
)

// NameResolution returns the condition ServiceDomainNameResolutionReady of a cluster: False if it is False on all Ready
// nodes, else True. It returns false if nothing is known: there is no Ready node, or one whose condition is missing or
// was not renewed for longer than stale.
func NameResolution(nodes []corev1.Node, now time.Time, stale time.Duration) (metav1.Condition, bool) {
	ready, failed := 0, 0
	for i := range nodes {
		if c := NodeCondition(&nodes[i], corev1.NodeReady); c == nil || c.Status != corev1.ConditionTrue {
			continue
		}
		c := NodeCondition(&nodes[i], clusterv1alpha1.ServiceDomainNameResolutionReady)
		if c == nil || c.Status == corev1.ConditionUnknown || now.Sub(c.LastHeartbeatTime.Time) > stale {
			return metav1.Condition{}, false
		}
		ready++
		if c.Status == corev1.ConditionFalse {
			failed++
		}
	}
	out := metav1.Condition{
		Type: clusterv1alpha1.ServiceDomainNameResolutionReady, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(now),
		Reason: ReasonNameResolutionReady, Message: "service domain name resolution is ready",
	}
	if failed == ready {
		out.Status, out.Reason, out.Message = metav1.ConditionFalse, ReasonNameResolutionFailed, "service domain name resolution is unready"
	}
	return out, ready > 0
}

// NodeCondition returns a condition of a node, or nil.
func NodeCondition(node *corev1.Node, name corev1.NodeConditionType) *corev1.NodeCondition {
	i := slices.IndexFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == name })
	if i < 0 {
		return nil
	}
	return &node.Status.Conditions[i]
}
