package clustercondition

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
)

func TestDescribe(t *testing.T) {
	if got := Describe(nil); got != "cluster now does not have taints" {
		t.Error(got)
	}
	got := Describe([]corev1.Taint{{Key: "a", Value: "b", Effect: "NoSchedule"}, {Key: "c", Effect: "NoExecute"}})
	if got != "cluster now has taints([{Key:a,Value:b,Effect:NoSchedule},{Key:c,Effect:NoExecute}])" {
		t.Error(got)
	}
}

func TestTaints_RemovedAndAddedAgain(t *testing.T) {
	before, now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 1, 1, 1, 0, 0, 0, time.UTC)
	ready := []policyv1alpha1.MatchCondition{{ConditionType: "Ready", Operator: policyv1alpha1.MatchConditionOpIn, StatusValues: []metav1.ConditionStatus{"True"}}}
	cluster := &clusterv1alpha1.Cluster{
		Spec:   clusterv1alpha1.ClusterSpec{Taints: []corev1.Taint{{Key: "a", Effect: "NoExecute", TimeAdded: &metav1.Time{Time: before}}}},
		Status: clusterv1alpha1.ClusterStatus{Conditions: []metav1.Condition{{Type: "Ready", Status: "True"}}},
	}
	taints := []policyv1alpha1.Taint{{Key: "a", Effect: "NoExecute"}}
	remove := &policyv1alpha1.ClusterTaintPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "remove"}, Spec: policyv1alpha1.ClusterTaintPolicySpec{RemoveOnConditions: ready, Taints: taints},
	}
	add := &policyv1alpha1.ClusterTaintPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "then-add"}, Spec: policyv1alpha1.ClusterTaintPolicySpec{AddOnConditions: ready, Taints: taints},
	}
	got, changed := Taints(cluster, []*policyv1alpha1.ClusterTaintPolicy{add, remove}, now)
	if !changed || len(got) != 1 || !got[0].TimeAdded.Time.Equal(now) {
		t.Errorf("got %v, changed %t; want a taint of now", got, changed)
	}
	if got, changed := Taints(cluster, []*policyv1alpha1.ClusterTaintPolicy{add}, now); changed || !got[0].TimeAdded.Time.Equal(before) {
		t.Errorf("got %v, changed %t; want no change", got, changed)
	}
}

func TestHealthTaints(t *testing.T) {
	const notReady, unreachable = clusterv1alpha1.TaintClusterNotReady, clusterv1alpha1.TaintClusterUnreachable
	taint := func(key string, effect corev1.TaintEffect) corev1.Taint {
		return corev1.Taint{Key: key, Effect: effect}
	}
	ready := func(status metav1.ConditionStatus) *metav1.Condition { return &metav1.Condition{Status: status} }
	own := []corev1.Taint{taint("mine", "NoSchedule"), taint(notReady, "NoExecute")}
	with := func(keys ...string) []corev1.Taint {
		out := slices.Clone(own)
		for _, key := range keys {
			out = append(out, taint(key, "NoSchedule"))
		}
		return out
	}
	for _, tc := range []struct {
		name    string
		have    []corev1.Taint
		ready   *metav1.Condition
		want    []corev1.Taint
		changed bool
	}{
		{"nothing is known", with(), nil, with(notReady), true},
		{"nothing is known still", with(notReady), nil, with(notReady), false},
		{"not ready", with(unreachable), ready("False"), with(notReady), true},
		{"unknown", with(notReady), ready("Unknown"), with(unreachable), true},
		{"unknown still", with(unreachable), ready("Unknown"), with(unreachable), false},
		{"ready", with(notReady, unreachable), ready("True"), with(), true},
		{"ready still", with(), ready("True"), with(), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, changed := HealthTaints(tc.have, tc.ready, time.Unix(7, 0))
			for i := range got {
				if at := got[i].TimeAdded; at != nil && at.Unix() != 7 {
					t.Errorf("added at %s", at)
				}
				got[i].TimeAdded = nil
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || changed != tc.changed {
				t.Errorf("changed %v %s", changed, diff)
			}
		})
	}
}
