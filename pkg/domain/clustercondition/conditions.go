package clustercondition

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
)

// CredentialsRefused is in the message of the condition Ready of a cluster that does not accept the credentials of the control plane.
const CredentialsRefused = "the cluster refuses the credentials of the control plane, or has another certificate authority" //nolint:gosec // no credentials

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

// maxReadyChanges is the number of changes of the Ready condition within the window that is not flapping yet.
const maxReadyChanges = 3

// FlapFacts are what decides whether the Ready condition of a cluster changes often.
type FlapFacts struct {
	// Now is the current time, and Window the time that counts.
	Now    time.Time
	Window time.Duration
	// Changes are when the condition changed, as far as is known; they are not changed. Last is its last change, zero if
	// there is no condition.
	Changes []time.Time
	Last    time.Time
	// Flapping reports whether the cluster was flapping before.
	Flapping bool
}

// Flapping returns the changes that still count, whether the cluster is flapping, and the time after which it may not be
// any longer; 0 if it is not. A cluster flaps after more than three changes within the window, until there was none for
// as long.
func Flapping(f FlapFacts) (changes []time.Time, flapping bool, after time.Duration) {
	changes = slices.Clone(f.Changes)
	if !f.Last.IsZero() {
		changes = append(changes, f.Last)
	}
	slices.SortFunc(changes, time.Time.Compare)
	changes = slices.CompactFunc(changes, time.Time.Equal)
	changes = slices.DeleteFunc(changes, func(at time.Time) bool { return at.After(f.Now) || f.Now.Sub(at) >= f.Window })
	if n := len(changes); n > maxReadyChanges+1 {
		changes = changes[n-maxReadyChanges-1:]
	}
	if n := len(changes); n > maxReadyChanges || n > 0 && f.Flapping {
		return changes, true, changes[n-1].Add(f.Window).Sub(f.Now)
	}
	return changes, false, 0
}

// Flaps returns that a cluster is tainted because its Ready condition changes often, and until when if that is known, in
// words; nothing if it is not.
func Flaps(c *clusterv1alpha1.Cluster) string {
	until := c.Annotations[clusterv1alpha1.FlappingUntilAnnotation]
	switch {
	case !slices.ContainsFunc(c.Spec.Taints, func(t corev1.Taint) bool { return t.Key == clusterv1alpha1.TaintClusterFlapping }):
		return ""
	case until == "":
		return "flapping"
	}
	return "flapping until " + until
}
