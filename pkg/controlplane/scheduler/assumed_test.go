package scheduler

import (
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

func replicasOn(a *assumptions, cluster string) (n int32) {
	for _, w := range a.others(named("another"))[cluster] {
		for _, c := range w.Components {
			n += c.Replicas
		}
	}
	return n
}

func TestAssumptions(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(0, 0))
	a := &assumptions{enabled: true, clock: clock}
	spec := &workv1alpha2.ResourceBindingSpec{Replicas: 5}
	on := func(m1, m2 int32) []workv1alpha2.TargetCluster {
		return []workv1alpha2.TargetCluster{{Name: "m1", Replicas: m1}, {Name: "m2", Replicas: m2}}
	}
	expect := func(when string, m1, m2 int32) {
		t.Helper()
		if x, y := replicasOn(a, "m1"), replicasOn(a, "m2"); x != m1 || y != m2 {
			t.Errorf("%s: %d on m1, %d on m2 are assumed, want %d and %d", when, x, y, m1, m2)
		}
	}
	a.record(named("web"), spec, nil, on(3, 2))
	expect("placed", 3, 2)
	if len(a.others(named("web"))) > 0 {
		t.Error("a binding counts its own replicas twice")
	}
	healthy := &workv1alpha2.ResourceBindingStatus{AggregatedStatus: []workv1alpha2.AggregatedStatusItem{{ClusterName: "m1", Health: workv1alpha2.ResourceHealthy}}}
	a.observe(named("web"), &workv1alpha2.ResourceBindingStatus{}, healthy)
	expect("healthy on m1", 0, 2)
	a.record(named("web"), spec, on(3, 2), on(7, 2))
	expect("scaled up on m1", 4, 2)
	a.record(named("web"), spec, on(7, 2), on(7, 2)[:1])
	expect("taken off m2", 4, 0)
	clock.Step(assumedFor + time.Second)
	expect("expired", 0, 0)
	a.sweep()
	if len(a.byKey) > 0 {
		t.Error("not swept")
	}
	a.record(named("web"), spec, nil, on(1, 1))
	a.drop(named("web"))
	expect("deleted", 0, 0)
}

func TestAssumptions_NothingUnlessEnabled(t *testing.T) {
	a := &assumptions{clock: clocktesting.NewFakeClock(time.Unix(0, 0))}
	a.record(named("web"), &workv1alpha2.ResourceBindingSpec{Replicas: 1}, nil, []workv1alpha2.TargetCluster{{Name: "m1", Replicas: 1}})
	if replicasOn(a, "m1") > 0 {
		t.Error("assumed")
	}
}
