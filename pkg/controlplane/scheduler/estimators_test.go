package scheduler

import (
	"context"
	"maps"
	"slices"
	"testing"

	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/domain/schedule/core"
	"github.com/karmada-toolkit/karmada/pkg/domain/schedule/framework"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

// estimating returns a scheduler of a binding for m1 and m2, beside m3, with these answers of estimators, and the
// names of the clusters whose estimators were called.
func estimating(t *testing.T, answers map[string]core.Estimate) (b *bench, called *[]string) {
	t.Helper()
	sc := scope.NamespacedBinding()
	placement := dividedPlacement()
	placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"m1", "m2"}}
	b = newBench(t, fill(sc.New(), sc, placement))
	called = &[]string{}
	b.decider.estimates = func(_ context.Context, _ *core.Request, clusters []*framework.Cluster) map[string]core.Estimate {
		for _, c := range clusters {
			*called = append(*called, c.Name())
		}
		return maps.Clone(answers)
	}
	for _, name := range []string{"m1", "m2", "m3"} {
		b.observer.clusterChanged(cluster(name, 2), true)
	}
	b.see(sc)
	b.runQueue()
	return b, called
}

func TestShell_EstimatorsOfSelectedClustersAreCalled(t *testing.T) {
	_, called := estimating(t, nil)
	if slices.Sort(*called); !slices.Equal(*called, []string{"m1", "m2"}) {
		t.Errorf("called %v", *called)
	}
}

func TestShell_EstimatorFailuresAreInTheCondition(t *testing.T) {
	none := core.Unauthentic
	for name, tc := range map[string]struct {
		answers map[string]core.Estimate
		want    string
	}{
		"all answer":         {map[string]core.Estimate{"m1": {Replicas: 2}, "m2": {Replicas: 2}}, "True Success Binding has been scheduled successfully."},
		"there are none":     {nil, "True Success Binding has been scheduled successfully."},
		"one does not":       {map[string]core.Estimate{"m1": {Replicas: none, Err: "gone"}, "m2": {Replicas: 2}}, "True Success Binding has been scheduled successfully. No estimate from the scheduler-estimator of m1 (gone); the resource summary was used."},
		"less room than due": {map[string]core.Estimate{"m1": {Replicas: none, Err: "gone"}, "m2": {Replicas: 0}}, "False Unschedulable failed to assign replicas: failed to scale up: Clusters available replicas 2 are not enough to schedule. Room for more: m1 2 (pods), m2 0 (scheduler-estimator); see \"karmadactl capacity --for deployment/web -n ns\". No estimate from the scheduler-estimator of m1 (gone); the resource summary was used."},
	} {
		t.Run(name, func(t *testing.T) {
			b, _ := estimating(t, tc.answers)
			if got := condition(b.see(scope.NamespacedBinding())); got != tc.want {
				t.Error(got)
			}
		})
	}
}
