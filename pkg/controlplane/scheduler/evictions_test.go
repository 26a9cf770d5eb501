package scheduler

import (
	"testing"
	"time"

	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/scope"
)

// The end of an eviction is confirmed by what ended it or, a while later, by the scheduler. What follows the clusters is
// scheduled at once.
func TestShell_TheEndOfAnEviction(t *testing.T) {
	for name, tc := range map[string]struct {
		placement *policyv1alpha1.Placement
		// also changes the binding in the write that ends the task, confirm in the next one.
		also, confirm   func(workv1alpha2.Binding)
		atOnce, delayed string
	}{
		"confirmed by what ended it": {placement: dividedPlacement(), confirm: func(b workv1alpha2.Binding) {
			b.GetStatus().SchedulerObservedGeneration = b.GetGeneration()
		}},
		"not confirmed":        {placement: dividedPlacement(), delayed: "status"},
		"follows the clusters": {placement: &policyv1alpha1.Placement{}, atOnce: "status"},
		"scaled with it": {placement: dividedPlacement(), atOnce: "spec status", also: func(b workv1alpha2.Binding) {
			b.GetSpec().Replicas++
		}},
	} {
		for _, sc := range scope.Bindings() {
			t.Run(name+"/"+sc.Kind, func(t *testing.T) {
				binding := fill(sc.New(), sc, tc.placement)
				binding.GetSpec().GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "m2"}}
				b := newBench(t, binding)
				b.observer.clusterChanged(cluster("m1", 10), true)
				b.see(sc)
				b.runQueue()
				ended := b.see(sc).DeepCopyObject().(workv1alpha2.Binding)
				ended.GetSpec().GracefulEvictionTasks = nil
				if tc.also != nil {
					tc.also(ended)
				}
				ended.SetGeneration(ended.GetGeneration() + 1)
				b.update(ended)
				b.see(sc)
				if got := kinds(b.runQueue()); got != tc.atOnce {
					t.Errorf("wrote %q at once, want %q", got, tc.atOnce)
				}
				if tc.confirm != nil {
					confirmed := b.see(sc).DeepCopyObject().(workv1alpha2.Binding)
					tc.confirm(confirmed)
					if err := b.client.Status().Update(t.Context(), confirmed); err != nil {
						t.Fatal(err)
					}
					b.see(sc)
				}
				b.clock.Step(confirmDelay + time.Second)
				b.queue.Sweep(false)
				if got := kinds(b.runQueue()); got != tc.delayed {
					t.Errorf("wrote %q later, want %q", got, tc.delayed)
				}
				if after := b.see(sc); after.GetStatus().SchedulerObservedGeneration != after.GetGeneration() {
					t.Errorf("observed %d of generation %d", after.GetStatus().SchedulerObservedGeneration, after.GetGeneration())
				}
			})
		}
	}
}

func (b *bench) update(binding workv1alpha2.Binding) {
	b.Helper()
	if err := b.client.Update(b.Context(), binding); err != nil {
		b.Fatal(err)
	}
}

func TestQueue_PushAfterAddsOnlyWhatIsNotThere(t *testing.T) {
	q, c := newTestQueue()
	q.PushAfter(named("a"), 0, 3*time.Second)
	pending(t, q, 0, 1, 0)
	c.Step(3 * time.Second)
	q.Sweep(false)
	pop(t, q, "a")
	q.PushAfter(named("a"), 0, 3*time.Second) // it is being handled
	q.Done(named("a"), finished)
	pending(t, q, 1, 0, 0)
	q.PushAfter(named("a"), 0, 3*time.Second)
	pending(t, q, 1, 0, 0)
	pop(t, q, "a")
	q.Done(named("a"), parked)
	q.PushAfter(named("a"), 0, 3*time.Second) // a cluster that it left may take it again
	pending(t, q, 1, 0, 0)
}
