package agent

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
)

func TestMembership_ConditionOfARefusedAddress(t *testing.T) {
	m := &membership{}
	cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m3"}}
	if got := m.conditions(cluster); len(got) != 0 {
		t.Errorf("without a refusal there is %v", got)
	}
	m.refused.Store(new("it is a loopback address"))
	got := m.conditions(cluster)
	if len(got) != 1 || got[0].Status != metav1.ConditionFalse || !strings.Contains(got[0].Message, "it is a loopback address") || !strings.Contains(got[0].Message, "kubectl patch cluster m3") {
		t.Fatalf("got %v", got)
	}
	// An administrator sets another address while the agent runs.
	cluster.Status.Conditions, cluster.Spec.APIEndpoint = got, "https://10.0.0.3:6443"
	if got = m.conditions(cluster); len(got) != 1 || got[0].Status != metav1.ConditionTrue {
		t.Errorf("with an address there is %v", got)
	}
	cluster.Status.Conditions = nil
	if got = m.conditions(cluster); len(got) != 0 {
		t.Errorf("of a cluster that always had its address there is %v", got)
	}
}
