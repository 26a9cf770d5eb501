package remedy

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/kube"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	remedyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/remedy/v1alpha1"
)

func TestReconcile_WritesAndClearsActions(t *testing.T) {
	request := reconcile.Request{NamespacedName: types.NamespacedName{Name: "m1"}}
	c := fake.NewClientBuilder().WithScheme(kube.NewScheme()).WithStatusSubresource(&clusterv1alpha1.Cluster{}).WithObjects(
		&clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}, Status: clusterv1alpha1.ClusterStatus{
			KubernetesVersion: "v1.36.3",
			Conditions:        []metav1.Condition{{Type: "ServiceDomainNameResolutionReady", Status: metav1.ConditionFalse}},
		}},
		&remedyv1alpha1.Remedy{ObjectMeta: metav1.ObjectMeta{Name: "dns"}, Spec: remedyv1alpha1.RemedySpec{
			DecisionMatches: []remedyv1alpha1.DecisionMatch{{ClusterConditionMatch: &remedyv1alpha1.ClusterConditionRequirement{
				ConditionType: "ServiceDomainNameResolutionReady", Operator: remedyv1alpha1.ClusterConditionEqual, ConditionStatus: "False",
			}}},
			Actions: []remedyv1alpha1.RemedyAction{remedyv1alpha1.TrafficControl},
		}},
	).Build()
	r := &reconciler{client: c}
	read := func() *clusterv1alpha1.Cluster {
		t.Helper()
		if _, err := r.Reconcile(t.Context(), request); err != nil {
			t.Fatal(err)
		}
		cluster := &clusterv1alpha1.Cluster{}
		if err := c.Get(t.Context(), request.NamespacedName, cluster); err != nil {
			t.Fatal(err)
		}
		return cluster
	}
	cluster := read()
	if !slices.Equal(cluster.Status.RemedyActions, []string{"TrafficControl"}) || cluster.Status.KubernetesVersion != "v1.36.3" {
		t.Fatalf("the status is %+v", cluster.Status)
	}
	version := cluster.ResourceVersion
	if again := read(); again.ResourceVersion != version {
		t.Error("a second pass writes")
	}
	cluster.Status.Conditions[0].Status = metav1.ConditionTrue
	if err := c.Status().Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	if cluster = read(); len(cluster.Status.RemedyActions) != 0 {
		t.Errorf("the actions are %v", cluster.Status.RemedyActions)
	}
}

// What the agent of one cluster reports has no effect on another cluster, nor does an action in the status that it invents.
func TestReconcile_ConditionsOfAnotherCluster(t *testing.T) {
	hostile := []metav1.Condition{{Type: "ServiceDomainNameResolutionReady", Status: metav1.ConditionFalse, Reason: "m2", Message: "m2"}}
	c := fake.NewClientBuilder().WithScheme(kube.NewScheme()).WithStatusSubresource(&clusterv1alpha1.Cluster{}).WithObjects(
		&clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "evil"}, Status: clusterv1alpha1.ClusterStatus{Conditions: hostile, RemedyActions: []string{"Invented"}}},
		&clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m2"}, Status: clusterv1alpha1.ClusterStatus{
			Conditions: []metav1.Condition{{Type: "ServiceDomainNameResolutionReady", Status: metav1.ConditionTrue}},
		}},
		&remedyv1alpha1.Remedy{ObjectMeta: metav1.ObjectMeta{Name: "dns"}, Spec: remedyv1alpha1.RemedySpec{
			DecisionMatches: []remedyv1alpha1.DecisionMatch{{ClusterConditionMatch: &remedyv1alpha1.ClusterConditionRequirement{
				ConditionType: "ServiceDomainNameResolutionReady", Operator: remedyv1alpha1.ClusterConditionEqual, ConditionStatus: "False",
			}}},
			Actions: []remedyv1alpha1.RemedyAction{remedyv1alpha1.TrafficControl},
		}},
	).Build()
	r := &reconciler{client: c}
	for name, want := range map[string][]string{"evil": {"TrafficControl"}, "m2": nil} {
		key := types.NamespacedName{Name: name}
		if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); err != nil {
			t.Fatal(err)
		}
		cluster := &clusterv1alpha1.Cluster{}
		if err := c.Get(t.Context(), key, cluster); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(cluster.Status.RemedyActions, want) {
			t.Errorf("%s: %v", name, cluster.Status.RemedyActions)
		}
	}
}
