package scheduler

import (
	"context"
	"fmt"
	"maps"
	"testing"

	"github.com/karmada-toolkit/karmada/pkg/domain/schedule/core"
	"github.com/karmada-toolkit/karmada/pkg/domain/schedule/framework"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

func TestProber_EnqueuesWhatNewRoomFits(t *testing.T) {
	failed := core.Estimate{Replicas: core.Unauthentic, Err: "gone"}
	for name, tc := range map[string]struct {
		before, after map[string]core.Estimate
		want          int
	}{
		"more room":                       {map[string]core.Estimate{"m1": {Replicas: 1}, "m2": {}}, map[string]core.Estimate{"m1": {Replicas: 1}, "m2": {Replicas: 1}}, 1},
		"as before":                       {map[string]core.Estimate{"m1": {Replicas: 1}, "m2": {}}, map[string]core.Estimate{"m1": {Replicas: 1}, "m2": {}}, 0},
		"less room":                       {map[string]core.Estimate{"m1": {Replicas: 1}, "m2": {}}, map[string]core.Estimate{"m1": {}, "m2": {}}, 0},
		"no answer after one":             {map[string]core.Estimate{"m1": {Replicas: 1}, "m2": {}}, map[string]core.Estimate{"m1": {Replicas: 1}, "m2": failed}, 0},
		"the first answer of a cluster":   {map[string]core.Estimate{"m2": {}}, map[string]core.Estimate{"m1": {Replicas: 2}, "m2": {}}, 0},
		"the first answer after failures": {map[string]core.Estimate{"m1": failed, "m2": {}}, map[string]core.Estimate{"m1": {Replicas: 2}, "m2": {}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			answers := maps.Clone(tc.before)
			b, called := estimating(t, answers)
			if _, _, parked := b.queue.Pending(); parked != 1 {
				t.Fatalf("the binding is not parked: %s", condition(b.see(scope.NamespacedBinding())))
			}
			*called = nil
			maps.Copy(answers, tc.after)
			b.prober.pass(t.Context())
			if len(*called) > 0 {
				t.Errorf("called %v before the interval", *called)
			}
			b.clock.Step(probeInterval)
			b.prober.pass(t.Context())
			if len(*called) != 2 {
				t.Errorf("called %v", *called)
			}
			if active, _, _ := b.queue.Pending(); active != tc.want {
				t.Errorf("%d active, want %d", active, tc.want)
			}
		})
	}
}

func TestProber_SchedulesWhenThereIsRoom(t *testing.T) {
	answers := map[string]core.Estimate{"m1": {Replicas: 2}, "m2": {}}
	b, _ := estimating(t, answers)
	answers["m2"] = core.Estimate{Replicas: 1}
	b.clock.Step(probeInterval)
	b.prober.pass(t.Context())
	b.runQueue()
	if got := fmt.Sprint(b.see(scope.NamespacedBinding()).GetSpec().Clusters); got != "[{m1 2 []} {m2 1 []}]" {
		t.Errorf("targets %s", got)
	}
	b.clock.Step(probeInterval)
	b.prober.pass(t.Context())
	if len(b.prober.lacking) > 0 {
		t.Errorf("kept %v", b.prober.lacking)
	}
}

func TestProber_LimitsCallsAndTakesTurns(t *testing.T) {
	b, called := estimating(t, map[string]core.Estimate{"m1": {Replicas: 2}, "m2": {}})
	waiting, _ := b.bindings.get(named("web"))
	const number = probesPerPass + 10
	for i := range number - 1 {
		k := named(fmt.Sprint(i))
		b.bindings.byKey[k] = waiting
		b.queue.Claim(k)
		b.queue.Finish(k, parked)
		b.prober.record(k, map[string]core.Estimate{"m1": {Replicas: 2}})
	}
	b.decider.estimates = func(_ context.Context, _ *core.Request, _ []*framework.Cluster) map[string]core.Estimate {
		*called = append(*called, "")
		return nil
	}
	*called = nil
	b.clock.Step(probeInterval)
	for _, want := range []int{probesPerPass, number, number} {
		b.prober.pass(t.Context())
		if len(*called) != want {
			t.Errorf("%d calls, want %d", len(*called), want)
		}
	}
}
