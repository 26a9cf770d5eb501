package remedy

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/karmada-toolkit/karmada/internal/testenv/memory"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	remedyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/remedy/v1alpha1"
)

// dns returns a remedy for clusters that do not resolve names of Services.
func dns() *remedyv1alpha1.Remedy {
	return &remedyv1alpha1.Remedy{ObjectMeta: metav1.ObjectMeta{Name: "dns"}, Spec: remedyv1alpha1.RemedySpec{
		DecisionMatches: []remedyv1alpha1.DecisionMatch{{ClusterConditionMatch: &remedyv1alpha1.ClusterConditionRequirement{
			ConditionType: "ServiceDomainNameResolutionReady", Operator: remedyv1alpha1.ClusterConditionEqual, ConditionStatus: "False",
		}}},
		Actions: []remedyv1alpha1.RemedyAction{remedyv1alpha1.TrafficControl},
	}}
}

func TestReconcile_WritesAndClearsActions(t *testing.T) {
	key := memory.Key("", "m1")
	m := memory.New(t,
		&clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}, Status: clusterv1alpha1.ClusterStatus{
			KubernetesVersion: "v1.36.3",
			Conditions:        []metav1.Condition{{Type: "ServiceDomainNameResolutionReady", Status: metav1.ConditionFalse}},
		}},
		dns(),
	)
	r := &reconciler{client: m.Client}
	read := func() *clusterv1alpha1.Cluster {
		t.Helper()
		m.MustReconcile(r, key)
		return memory.Get[*clusterv1alpha1.Cluster](m, key)
	}
	cluster := read()
	if !slices.Equal(cluster.Status.RemedyActions, []string{"TrafficControl"}) || cluster.Status.KubernetesVersion != "v1.36.3" {
		t.Fatalf("the status is %+v", cluster.Status)
	}
	m.Stable(func() { m.MustReconcile(r, key) })
	memory.Change(m, key, func(c *clusterv1alpha1.Cluster) { c.Status.Conditions[0].Status = metav1.ConditionTrue })
	if cluster = read(); len(cluster.Status.RemedyActions) != 0 {
		t.Errorf("the actions are %v", cluster.Status.RemedyActions)
	}
}

// What the agent of one cluster reports has no effect on another cluster, nor does an action in the status that it invents.
func TestReconcile_ConditionsOfAnotherCluster(t *testing.T) {
	hostile := []metav1.Condition{{Type: "ServiceDomainNameResolutionReady", Status: metav1.ConditionFalse, Reason: "m2", Message: "m2"}}
	m := memory.New(t,
		&clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "evil"}, Status: clusterv1alpha1.ClusterStatus{Conditions: hostile, RemedyActions: []string{"Invented"}}},
		&clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m2"}, Status: clusterv1alpha1.ClusterStatus{
			Conditions: []metav1.Condition{{Type: "ServiceDomainNameResolutionReady", Status: metav1.ConditionTrue}},
		}},
		dns(),
	)
	r := &reconciler{client: m.Client}
	for name, want := range map[string][]string{"evil": {"TrafficControl"}, "m2": nil} {
		key := memory.Key("", name)
		m.MustReconcile(r, key)
		cluster := memory.Get[*clusterv1alpha1.Cluster](m, key)
		if !slices.Equal(cluster.Status.RemedyActions, want) {
			t.Errorf("%s: %v", name, cluster.Status.RemedyActions)
		}
	}
}
