package execution

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// TestNext has all combinations of what decides: the step is that of the first row that applies.
func TestNext(t *testing.T) {
	type facts struct{ exists, accepted, ready, leaves, deleted, held, suspended, stays bool }
	rules := []struct {
		when func(facts) bool
		want Step
	}{
		{func(f facts) bool { return f.exists && !f.accepted }, StepAnswer},
		{func(f facts) bool { return f.deleted && !f.held }, StepNone},
		{func(f facts) bool { return f.deleted && !f.exists }, StepRemoveFinalizer},
		{func(f facts) bool { return f.deleted && f.ready }, StepRemove},
		{func(f facts) bool { return f.deleted && f.leaves }, StepRemoveFinalizer},
		{func(f facts) bool { return f.deleted || !f.exists || f.stays }, StepNone},
		{func(f facts) bool { return !f.ready }, StepReport},
		{func(f facts) bool { return f.suspended }, StepObserve},
		{func(f facts) bool { return !f.held }, StepAddFinalizer},
		{func(facts) bool { return true }, StepApply},
	}
	for n := range 1 << 8 {
		bit := func(i int) bool { return n>>i&1 == 1 }
		f := facts{bit(0), bit(1), bit(2), bit(3), bit(4), bit(5), bit(6), bit(7)}
		work, cluster := &workv1alpha1.Work{}, &clusterv1alpha1.Cluster{}
		work.Spec.SuspendDispatching = &f.suspended
		if f.deleted {
			work.DeletionTimestamp = new(metav1.Now())
		}
		if f.held {
			work.Finalizers = []string{"another", workv1alpha2.ExecutionControllerFinalizer}
		}
		if f.leaves {
			cluster.DeletionTimestamp = new(metav1.Now())
		}
		if f.ready {
			meta.SetStatusCondition(&cluster.Status.Conditions, metav1.Condition{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue})
		}
		if !f.exists {
			cluster = nil
		}
		for _, rule := range rules {
			if !rule.when(f) {
				continue
			}
			if got := Next(work, cluster, f.accepted, f.stays); got != rule.want {
				t.Errorf("%+v: step %d, want %d", f, got, rule.want)
			}
			break
		}
	}
}
