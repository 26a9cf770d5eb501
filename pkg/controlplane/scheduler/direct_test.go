package scheduler

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/schedule/core"
	"github.com/karmada-toolkit/karmada/pkg/domain/schedule/framework"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
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
				b.queue.Sweep()
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
	pending(t, q, 0, 0, 0)
	c.Step(3 * time.Second)
	q.Sweep()
	pop(t, q, "a")
	q.PushAfter(named("a"), 0, 3*time.Second) // it is being handled
	q.Finish(named("a"), finished)
	pending(t, q, 0, 0, 0)
	c.Step(3 * time.Second)
	q.Sweep()
	pending(t, q, 1, 0, 0)
	q.PushAfter(named("a"), 0, 3*time.Second)
	pending(t, q, 1, 0, 0)
	pop(t, q, "a")
	q.Finish(named("a"), parked)
	q.PushAfter(named("a"), 0, 3*time.Second) // a cluster that it left may take it again
	pending(t, q, 1, 0, 0)
}

// Tasks and new targets are one write, with the condition and the generation in the status, and nothing follows.
func TestEvictions_OneWriteOfTasksAndTargets(t *testing.T) {
	for _, sc := range scope.Bindings() {
		b, binding, spec := evicting(t, sc, 10)
		done, err := b.evictions().Evict(t.Context(), sc, binding, spec)
		if !done || err != nil || kinds(b.writes) != "spec status" {
			t.Fatalf("%v %v: %v", done, err, b.writes)
		}
		after := b.see(sc)
		b.runQueue()
		if len(b.writes) > 0 {
			t.Errorf("nothing changed, still wrote %v", b.writes)
		}
		if diff := cmp.Diff([]workv1alpha2.TargetCluster{{Name: "m1", Replicas: 3}}, after.GetSpec().Clusters); diff != "" {
			t.Error(diff)
		}
		if len(after.GetSpec().GracefulEvictionTasks) != 1 || after.GetStatus().SchedulerObservedGeneration != after.GetGeneration() {
			t.Errorf("tasks %+v, observed %d of generation %d", after.GetSpec().GracefulEvictionTasks, after.GetStatus().SchedulerObservedGeneration, after.GetGeneration())
		}
	}
}

// A status that could not be written after an eviction follows, also after a restart.
func TestEvictions_TheStatusFollowsTheTargets(t *testing.T) {
	for _, restart := range []bool{true, false} {
		sc := scope.NamespacedBinding()
		b, binding, spec := evicting(t, sc, 10)
		never := binding.DeepCopyObject().(workv1alpha2.Binding)
		never.GetStatus().Conditions = nil
		if err := b.client.Status().Update(t.Context(), never); err != nil {
			t.Fatal(err)
		}
		b.refuse = func(write string) error {
			if kinds([]string{write}) == "status" {
				return errors.New("killed")
			}
			return nil
		}
		if done, err := b.evictions().Evict(t.Context(), sc, never, spec); !done || err != nil {
			t.Fatalf("%v %v: %v", done, err, b.writes)
		}
		b.refuse = nil
		if restart {
			b.scheduler = b.start()
			b.observer.clusterChanged(cluster("m1", 10), true)
			b.observer.clusterChanged(cluster("m2", 10), true)
		} else {
			b.clock.Step(longestBackoff)
			b.queue.Sweep()
		}
		b.see(sc)
		b.runQueue()
		if after := b.see(sc); condition(after) != "True Success Binding has been scheduled successfully." ||
			after.GetStatus().SchedulerObservedGeneration != after.GetGeneration() {
			t.Errorf("restart %t: status %+v", restart, after.GetStatus())
		}
	}
}

func TestEvictions_LeavesTheWriteToTheCaller(t *testing.T) {
	for name, tc := range map[string]struct {
		room    int64
		change  func(workv1alpha2.Binding)
		refuse  error
		stopped bool
	}{
		"no scheduler runs":    {room: 10, stopped: true},
		"no room":              {room: 1},
		"another scheduler":    {room: 10, change: func(b workv1alpha2.Binding) { b.GetSpec().SchedulerName = "other" }},
		"no policy claims it":  {room: 10, change: func(b workv1alpha2.Binding) { b.SetLabels(nil) }},
		"a quota refuses them": {room: 10, refuse: apierrors.NewForbidden(workv1alpha2.Resource("resourcebindings"), "web", nil)},
	} {
		t.Run(name, func(t *testing.T) {
			sc := scope.NamespacedBinding()
			b, binding, spec := evicting(t, sc, tc.room)
			if tc.change != nil {
				tc.change(binding)
				spec.SchedulerName = binding.GetSpec().SchedulerName
			}
			b.refuse = func(string) error { return tc.refuse }
			e := b.evictions()
			if tc.stopped {
				e = &Direct{}
			}
			if done, err := e.Evict(t.Context(), sc, binding, spec); done || err != nil || tc.refuse == nil && len(b.writes) > 0 {
				t.Errorf("%v %v: %v", done, err, b.writes)
			}
		})
	}
}

// A binding that a worker handles is left to it: its late write of the status would undo that of the eviction.
func TestEvictions_OneAtATime(t *testing.T) {
	sc := scope.NamespacedBinding()
	b, binding, spec := evicting(t, sc, 10)
	k := keyOf(binding)
	b.queue.Push(k, 0)
	if got, shutdown := b.queue.Get(); shutdown || got != k {
		t.Fatalf("popped %v", got)
	}
	if done, err := b.evictions().Evict(t.Context(), sc, binding, spec); done || err != nil || len(b.writes) > 0 {
		t.Errorf("%v %v: %v", done, err, b.writes)
	}
	b.queue.Finish(k, finished)
	b.refuse = func(string) error { // others change it during the eviction
		b.queue.Push(k, 0)
		if b.queue.Claim(k) {
			t.Error("it is handed out to two")
		}
		return nil
	}
	if done, err := b.evictions().Evict(t.Context(), sc, binding, spec); !done || err != nil {
		t.Errorf("%v %v", done, err)
	}
	pending(t, b.queue, 1, 0, 0)
}

func TestEvictions_Conflict(t *testing.T) {
	sc := scope.NamespacedBinding()
	b, binding, spec := evicting(t, sc, 10)
	changed := binding.DeepCopyObject().(workv1alpha2.Binding)
	changed.SetAnnotations(map[string]string{"changed": "by others"})
	b.update(changed)
	if done, err := b.evictions().Evict(t.Context(), sc, binding, spec); done || !apierrors.IsConflict(err) {
		t.Errorf("%v %v", done, err)
	}
}

// evicting returns a scheduled binding, and the spec with which it leaves m2 for m1, which has room for some pods.
func evicting(t *testing.T, sc *scope.Binding, room int64) (*bench, workv1alpha2.Binding, *workv1alpha2.ResourceBindingSpec) {
	t.Helper()
	b := newBench(t, fill(sc.New(), sc, dividedPlacement()))
	b.observer.clusterChanged(cluster("m2", 10), true)
	b.see(sc)
	b.runQueue()
	binding := b.see(sc).DeepCopyObject().(workv1alpha2.Binding)
	b.observer.clusterChanged(cluster("m1", room), true)
	spec := binding.GetSpec().DeepCopy()
	spec.Clusters = nil
	spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "m2", Reason: "TaintUntolerated", Producer: "TaintManager"}}
	b.writes = nil
	return b, binding, spec
}

func (b *bench) evictions() *Direct {
	e := &Direct{}
	e.running.Store(b.scheduler)
	return e
}

// A binding is created with its targets, and the status follows: with that of the clusters or, a while later, by the scheduler.
func TestCreate_WithTargets(t *testing.T) {
	for name, tc := range map[string]struct {
		placement *policyv1alpha1.Placement
		// confirm is set if the status of the clusters is written, changed if the binding changes.
		confirm, changed      bool
		atOnce, soon, delayed string
	}{
		"by the scheduler":            {placement: dividedPlacement(), delayed: "status"},
		"with that of the clusters":   {placement: dividedPlacement(), confirm: true},
		"what follows the clusters":   {placement: &policyv1alpha1.Placement{}, delayed: "status"},
		"the same, with the clusters": {placement: &policyv1alpha1.Placement{}, confirm: true},
		"scaled meanwhile":            {placement: dividedPlacement(), changed: true, soon: "spec status"},
		"terms, of which the status has one": {placement: &policyv1alpha1.Placement{
			ClusterAffinities: []policyv1alpha1.ClusterAffinityTerm{{AffinityName: "a"}},
		}, atOnce: "status"},
	} {
		for _, sc := range scope.Bindings() {
			t.Run(name+"/"+sc.Kind, func(t *testing.T) {
				b := newBench(t)
				b.observer.clusterChanged(cluster("m1", 10), true)
				binding := fill(sc.New(), sc, tc.placement)
				binding.SetCreationTimestamp(metav1.NewTime(b.clock.Now()))
				if done, err := b.evictions().Create(t.Context(), sc, binding); !done || err != nil || kinds(b.writes) != tc.atOnce {
					t.Fatalf("%v %v: %v", done, err, b.writes)
				}
				wrote := func(want string) {
					t.Helper()
					b.see(sc)
					if got := kinds(b.runQueue()); got != want {
						t.Errorf("wrote %q, want %q", got, want)
					}
				}
				recorded := len(b.recorded)
				wrote("")
				if now := b.see(sc).DeepCopyObject().(workv1alpha2.Binding); tc.confirm {
					core.ConfirmCreated(now, now.GetStatus())
					if err := b.client.Status().Update(t.Context(), now); err != nil {
						t.Fatal(err)
					}
				} else if tc.changed {
					now.GetSpec().Replicas++
					now.SetGeneration(2)
					b.update(now)
				}
				wrote(tc.soon)
				b.clock.Step(createdDelay.Stable)
				b.queue.Sweep()
				wrote(tc.delayed)
				after := b.see(sc)
				if condition(after) != "True Success Binding has been scheduled successfully." || after.GetStatus().SchedulerObservedGeneration != after.GetGeneration() || after.GetStatus().LastScheduledTime == nil {
					t.Errorf("status %+v", after.GetStatus())
				}
				if len(b.recorded) != recorded && !tc.changed {
					t.Errorf("events %q", b.recorded)
				}
			})
		}
	}
}

func TestCreate_Again(t *testing.T) {
	for _, sc := range scope.Bindings() {
		b := newBench(t)
		b.observer.clusterChanged(cluster("m1", 10), true)
		for again := range 2 {
			done, err := b.evictions().Create(t.Context(), sc, fill(sc.New(), sc, dividedPlacement()))
			if done == (again == 1) || apierrors.IsAlreadyExists(err) != (again == 1) {
				t.Errorf("%d: %v %v", again, done, err)
			}
		}
	}
}

// The status of what was created before a restart follows at once.
func TestCreate_TheStatusFollows(t *testing.T) {
	sc := scope.NamespacedBinding()
	b := newBench(t)
	b.observer.clusterChanged(cluster("m1", 10), true)
	if done, err := b.evictions().Create(t.Context(), sc, fill(sc.New(), sc, dividedPlacement())); !done || err != nil {
		t.Fatalf("%v %v: %v", done, err, b.writes)
	}
	b.scheduler = b.start()
	b.observer.clusterChanged(cluster("m1", 10), true)
	b.see(sc)
	if got := kinds(b.runQueue()); got != "status" {
		t.Errorf("wrote %q", got)
	}
}

func TestCreate_LeavesItToTheCaller(t *testing.T) {
	for name, change := range map[string]func(*bench, workv1alpha2.Binding){
		"no room":           func(_ *bench, b workv1alpha2.Binding) { b.GetSpec().Replicas = 11 },
		"another scheduler": func(_ *bench, b workv1alpha2.Binding) { b.GetSpec().SchedulerName = "other" },
		"suspended": func(_ *bench, b workv1alpha2.Binding) {
			b.GetSpec().Suspension = &workv1alpha2.Suspension{Scheduling: new(true)}
		},
		"others wait":               func(x *bench, _ workv1alpha2.Binding) { x.queue.fifo = false; x.queue.Push(named("other"), 0) },
		"the API server refuses it": func(_ *bench, b workv1alpha2.Binding) { b.SetResourceVersion("1") },
		"estimators": func(x *bench, _ workv1alpha2.Binding) {
			x.decider.estimates = func(context.Context, *core.Request, []*framework.Cluster) map[string]core.Estimate { panic("called") }
		},
	} {
		t.Run(name, func(t *testing.T) {
			sc := scope.NamespacedBinding()
			b := newBench(t)
			b.observer.clusterChanged(cluster("m1", 10), true)
			binding := fill(sc.New(), sc, dividedPlacement())
			change(b, binding)
			want := binding.DeepCopyObject()
			if done, err := b.evictions().Create(t.Context(), sc, binding); done || err != nil || len(b.writes) > 0 {
				t.Errorf("%v %v: %v", done, err, b.writes)
			}
			if diff := cmp.Diff(want, binding); diff != "" {
				t.Errorf("the binding changed: %s", diff)
			}
		})
	}
}
