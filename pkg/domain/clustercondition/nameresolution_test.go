package clustercondition_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/karmada-toolkit/karmada/pkg/domain/clustercondition"
)

func TestNameResolution(t *testing.T) {
	now := time.Unix(10_000, 0)
	node := func(ready, resolves corev1.ConditionStatus, age time.Duration) corev1.Node {
		n := corev1.Node{}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}
		if resolves != "" {
			n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{
				Type: "ServiceDomainNameResolutionReady", Status: resolves, LastHeartbeatTime: metav1.NewTime(now.Add(-age)),
			})
		}
		return n
	}
	const yes, no, unknown = corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown
	for _, tc := range []struct {
		name  string
		nodes []corev1.Node
		want  metav1.ConditionStatus // empty: nothing is known
	}{
		{"no nodes", nil, ""},
		{"no Ready node", []corev1.Node{node(no, no, 0), node(unknown, no, 0)}, ""},
		{"all resolve", []corev1.Node{node(yes, yes, 0), node(yes, yes, 0)}, "True"},
		{"one resolves", []corev1.Node{node(yes, no, 0), node(yes, yes, 0)}, "True"},
		{"none resolves", []corev1.Node{node(yes, no, 0), node(yes, no, 0)}, "False"},
		{"a node that is not Ready does not count", []corev1.Node{node(yes, no, 0), node(no, yes, 0)}, "False"},
		{"a Ready node without the condition", []corev1.Node{node(yes, no, 0), node(yes, "", 0)}, ""},
		{"an unknown condition", []corev1.Node{node(yes, yes, 0), node(yes, unknown, 0)}, ""},
		{"at the end of its time", []corev1.Node{node(yes, no, time.Minute)}, "False"},
		{"too old", []corev1.Node{node(yes, no, time.Minute+time.Second)}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, known := clustercondition.NameResolution(tc.nodes, now, time.Minute)
			if known != (tc.want != "") || known && got.Status != tc.want {
				t.Errorf("got %s, %t", got.Status, known)
			}
			wantReason, wantMessage := "ServiceDomainNameResolutionReady", "service domain name resolution is ready"
			if tc.want == "False" {
				wantReason, wantMessage = "ServiceDomainNameResolutionFailed", "service domain name resolution is unready"
			}
			if known && (got.Reason != wantReason || got.Message != wantMessage) {
				t.Errorf("got %s: %s", got.Reason, got.Message)
			}
		})
	}
}
