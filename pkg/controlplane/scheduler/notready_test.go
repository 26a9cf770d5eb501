package scheduler

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

func TestShell_NotReadyWaitsForReady(t *testing.T) {
	sc := scope.NamespacedBinding()
	b := newBench(t, fill(sc.New(), sc, dividedPlacement()))
	b.observer.clusterChanged(withReady("m1", metav1.ConditionFalse), true)
	b.see(sc)
	b.runQueue()
	want := "False Unschedulable failed to assign replicas: failed to scale up: Clusters available replicas 0 are not enough to schedule. " +
		`Room for more: m1 0 (not Ready); see "karmadactl capacity --for deployment/web -n ns".`
	if got := condition(b.see(sc)); got != want {
		t.Error(got)
	}
	b.observer.clusterChanged(withReady("m1", metav1.ConditionTrue), false)
	b.observer.wake()
	b.runQueue()
	if got := b.see(sc).GetSpec().Clusters; len(got) != 1 || got[0].Replicas != 3 {
		t.Errorf("got %v", got)
	}
}

// withReady returns a cluster with room whose condition Ready has a status.
func withReady(name string, status metav1.ConditionStatus) *clusterv1alpha1.Cluster {
	c := cluster(name, 9)
	c.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: status}}
	return c
}
