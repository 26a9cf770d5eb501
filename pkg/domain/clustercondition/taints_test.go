package clustercondition

import (
	"testing"
	"time"

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
