package bindingstatus

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/karmada-toolkit/karmada/internal/events"
	"github.com/karmada-toolkit/karmada/internal/status"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/env"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

// change changes the binding, and its status, as other controllers do.
func (b *bench) change(change func(workv1alpha2.Binding)) {
	b.Helper()
	binding := b.current()
	change(binding)
	wanted := *binding.GetStatus()
	b.Must(b.Stored.Update(b.Context(), binding))
	*binding.GetStatus() = wanted
	b.Must(b.Stored.Status().Update(b.Context(), binding))
}

// evicted moves the workload from a cluster to another, without a confirmation of the scheduler.
func evicted(from string, mode policyv1alpha1.PurgeMode, to ...string) func(workv1alpha2.Binding) {
	return func(b workv1alpha2.Binding) {
		b.SetGeneration(b.GetGeneration() + 1)
		created := metav1.Unix(1000, 0)
		*b.GetSpec() = *spec(to...)
		b.GetSpec().GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: from, PurgeMode: mode, CreationTimestamp: &created}}
	}
}

func confirm(b workv1alpha2.Binding) { b.GetStatus().SchedulerObservedGeneration = b.GetGeneration() }

func (b *bench) reported() []string {
	var out []string
	for _, item := range b.status().AggregatedStatus {
		out = append(out, item.ClusterName)
	}
	return out
}

// A workload that moves is written once, when it is healthy in its new cluster: nothing changes for the template, and the
// old cluster is not reported any longer.
func TestReconcile_WritesAnEvictionOnce(t *testing.T) {
	eachScope(t, func(t *testing.T, s *scope.Binding) {
		for _, mode := range []policyv1alpha1.PurgeMode{policyv1alpha1.PurgeModeGracefully, policyv1alpha1.PurgeModeDirectly} {
			b := newBench(t, s, "m1")
			b.use(&env.Env{Interpreter: b.interp}, Options{EndEvictions: true})
			b.set(workIn("m1", "True", "Healthy", "{}"))
			b.want(status.WrittenTTL, "binding", "template")
			b.Clock.Step(time.Minute)
			b.change(evicted("m1", mode))
			b.want(21 * time.Second)
			b.change(evicted("m1", mode, "m2"))
			b.change(confirm)
			b.set(workIn("m2", "", "", ""))
			b.want(21 * time.Second)
			if diff := cmp.Diff([]string{"m1"}, b.reported()); diff != "" {
				t.Errorf("%s: %s", mode, diff)
			}
			b.set(workIn("m2", "True", "Healthy", "{}"))
			b.want(status.WrittenTTL, "binding")
			if diff := cmp.Diff([]string{"m2"}, b.reported()); diff != "" {
				t.Errorf("%s: %s", mode, diff)
			}
			b.change(func(b workv1alpha2.Binding) { b.GetSpec().GracefulEvictionTasks = nil })
			b.want(0)
		}
	})
}

// endEvictions has the reconciler end evictions, with a client that counts generations as API servers do.
func (b *bench) endEvictions(write func(client.Object) error) {
	b.use(&env.Env{Interpreter: b.interp}, Options{EndEvictions: true})
	b.r.bindings.evictions = &evictions{interceptor.NewClient(b.Client, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if err := write(obj); err != nil {
				return err
			}
			b.patches = append(b.patches, "tasks")
			if err := c.Patch(ctx, obj, patch, opts...); err != nil {
				return err
			}
			obj.SetGeneration(obj.GetGeneration() + 1)
			err := c.Update(ctx, obj)
			if b.meanwhile != nil {
				b.meanwhile()
			}
			return err
		},
	}), events.New(b.Recorder)}
}

// moving has a workload of one replica evicted from m1 to m2.
func moving(mode policyv1alpha1.ReplicaSchedulingType) func(workv1alpha2.Binding) {
	return func(b workv1alpha2.Binding) {
		evicted("m1", policyv1alpha1.PurgeModeGracefully, "m2")(b)
		b.GetSpec().Replicas = 1
		b.GetSpec().Placement = &policyv1alpha1.Placement{ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{ReplicaSchedulingType: mode}}
	}
}

// The tasks of a workload that is healthy elsewhere end just before the status that has it, which confirms the generation
// that this made, unless the scheduler has to decide about it.
func TestReconcile_EndsTheTasks(t *testing.T) {
	conflict := apierrors.NewConflict(workv1alpha2.Resource("resourcebindings"), "a-deployment", errors.New("changed"))
	for name, tc := range map[string]struct {
		mode      policyv1alpha1.ReplicaSchedulingType
		suppress  bool
		answer    error
		patches   []string
		confirmed bool
	}{
		"divided":               {mode: policyv1alpha1.ReplicaSchedulingTypeDivided, patches: []string{"tasks", "binding"}, confirmed: true},
		"duplicated":            {mode: policyv1alpha1.ReplicaSchedulingTypeDuplicated, patches: []string{"tasks", "binding"}},
		"others wrote it":       {mode: policyv1alpha1.ReplicaSchedulingTypeDivided, patches: []string{"binding"}, answer: conflict},
		"a user keeps the task": {mode: policyv1alpha1.ReplicaSchedulingTypeDivided, patches: []string{"binding"}, suppress: true},
	} {
		eachScope(t, func(t *testing.T, s *scope.Binding) {
			b := newBench(t, s, "m1")
			b.endEvictions(func(client.Object) error { return tc.answer })
			b.set(workIn("m1", "True", "Healthy", "{}"))
			b.want(status.WrittenTTL, "binding", "template")
			b.Clock.Step(time.Minute)
			b.change(func(binding workv1alpha2.Binding) {
				moving(tc.mode)(binding)
				if tc.suppress {
					binding.GetSpec().GracefulEvictionTasks[0].SuppressDeletion = new(true)
				}
			})
			b.change(confirm)
			b.set(workIn("m2", "True", "Healthy", "{}"))
			b.Events()
			b.patches = nil
			if _, err := b.reconcile(); err != nil {
				t.Fatal(name, err)
			}
			if got := slices.DeleteFunc(b.patches, func(p string) bool { return p == "template" }); !slices.Equal(got, tc.patches) {
				t.Errorf("%s: patched %q, want %q", name, got, tc.patches)
			}
			after := b.current()
			ends := slices.Contains(tc.patches, "tasks")
			if ends == (len(after.GetSpec().GracefulEvictionTasks) > 0) {
				t.Errorf("%s: the tasks are %+v", name, after.GetSpec().GracefulEvictionTasks)
			}
			if got := after.GetStatus().SchedulerObservedGeneration == after.GetGeneration(); ends && got != tc.confirmed {
				t.Errorf("%s: observed %d of %d", name, after.GetStatus().SchedulerObservedGeneration, after.GetGeneration())
			}
			if got := slices.Contains(b.Events(), "Normal EvictWorkloadFromClusterSucceed Evict from cluster m1 succeed."); got != ends {
				t.Errorf("%s: the event is there: %v", name, got)
			}
		})
	}
}

// A binding that others change and the scheduler confirms between the two writes stays confirmed.
func TestReconcile_EndsTheTasksWhileOthersWrite(t *testing.T) {
	eachScope(t, func(t *testing.T, s *scope.Binding) {
		b := newBench(t, s, "m1")
		b.endEvictions(func(client.Object) error { return nil })
		b.set(workIn("m1", "True", "Healthy", "{}"))
		b.want(status.WrittenTTL, "binding", "template")
		b.Clock.Step(time.Minute)
		b.change(moving(policyv1alpha1.ReplicaSchedulingTypeDivided))
		b.change(confirm)
		b.set(workIn("m2", "True", "Healthy", "{}"))
		b.meanwhile = func() {
			live := b.current()
			live.SetGeneration(live.GetGeneration() + 1)
			b.Must(b.Stored.Update(t.Context(), live))
			live.GetStatus().SchedulerObservedGeneration = live.GetGeneration()
			b.Must(b.Stored.Status().Update(t.Context(), live))
		}
		if _, err := b.reconcile(); err != nil {
			t.Fatal(err)
		}
		after := b.current()
		if len(after.GetSpec().GracefulEvictionTasks) > 0 || after.GetStatus().SchedulerObservedGeneration != after.GetGeneration() {
			t.Errorf("tasks %+v, observed %d of %d", after.GetSpec().GracefulEvictionTasks, after.GetStatus().SchedulerObservedGeneration, after.GetGeneration())
		}
		if diff := cmp.Diff([]string{"m2"}, b.reported()); diff != "" {
			t.Error(diff)
		}
	})
}

// Where no controller ends evictions, the old cluster is reported until a user does.
func TestReconcile_EvictionsThatDoNotEnd(t *testing.T) {
	b := newBench(t, scope.NamespacedBinding(), "m1")
	b.set(workIn("m1", "True", "Healthy", "{}"))
	b.set(workIn("m2", "True", "Healthy", "{}"))
	b.change(evicted("m1", policyv1alpha1.PurgeModeGracefully, "m2"))
	b.change(confirm)
	b.want(status.WrittenTTL, "binding", "template")
	if diff := cmp.Diff([]string{"m1", "m2"}, b.reported()); diff != "" {
		t.Error(diff)
	}
}

// A workload that finds no other cluster is reported after the delay, and then as before.
func TestReconcile_EvictionWithoutRoomElsewhere(t *testing.T) {
	b := newBench(t, scope.NamespacedBinding(), "m1")
	b.use(&env.Env{Interpreter: b.interp}, Options{EndEvictions: true})
	b.set(workIn("m1", "True", "Healthy", "{}"))
	b.want(status.WrittenTTL, "binding", "template")
	b.Clock.Step(time.Minute)
	b.change(evicted("m1", policyv1alpha1.PurgeModeGracefully))
	b.want(21 * time.Second)
	b.Clock.Step(21 * time.Second)
	b.want(status.WrittenTTL, "binding") // the template has the same status
	if meta.IsStatusConditionTrue(b.status().Conditions, workv1alpha2.FullyApplied) {
		t.Error("a workload without targets is fully applied")
	}
	b.set(workIn("m1", "True", "Unhealthy", "{}"))
	b.want(21 * time.Second)
	b.Clock.Step(21 * time.Second)
	b.want(status.WrittenTTL, "binding")
	if got := b.status().AggregatedStatus; len(got) != 1 || got[0].Health != workv1alpha2.ResourceUnhealthy {
		t.Errorf("items: %+v", got)
	}
}

func unschedulable(b workv1alpha2.Binding) {
	meta.SetStatusCondition(&b.GetStatus().Conditions, metav1.Condition{
		Type: workv1alpha2.Scheduled, Status: metav1.ConditionFalse, Reason: workv1alpha2.BindingReasonNoClusterFit,
	})
}

// A workload that the scheduler finds no other cluster for does not move: its status is written at once.
func TestReconcile_EvictionThatCannotBeScheduled(t *testing.T) {
	eachScope(t, func(t *testing.T, s *scope.Binding) {
		b := newBench(t, s, "m1")
		b.use(&env.Env{Interpreter: b.interp}, Options{EndEvictions: true})
		b.set(workIn("m1", "True", "Healthy", "{}"))
		b.want(status.WrittenTTL, "binding", "template")
		b.Clock.Step(time.Minute)
		b.change(evicted("m1", policyv1alpha1.PurgeModeDirectly))
		b.want(21 * time.Second)
		b.change(unschedulable)
		b.want(status.WrittenTTL, "binding", "template")
		if got := b.reported(); len(got) > 0 {
			t.Errorf("reported: %q", got)
		}
	})
}

func TestBindingPredicate_PassesEvictionsThatCannotBeScheduled(t *testing.T) {
	before := &workv1alpha2.ResourceBinding{Status: workv1alpha2.ResourceBindingStatus{LastScheduledTime: &metav1.Time{}}}
	before.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "m1"}}
	after := before.DeepCopy()
	if bindingPredicate().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}) {
		t.Error("passed without a change")
	}
	unschedulable(after)
	if !bindingPredicate().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}) {
		t.Error("left out")
	}
}

func TestBindingPredicate_PassesConfirmedEvictions(t *testing.T) {
	before := &workv1alpha2.ResourceBinding{Status: workv1alpha2.ResourceBindingStatus{LastScheduledTime: &metav1.Time{}}}
	after := before.DeepCopy()
	after.Status.SchedulerObservedGeneration = 2
	if bindingPredicate().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}) {
		t.Error("passed without an eviction")
	}
	after.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "m1"}}
	if !bindingPredicate().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}) {
		t.Error("left out")
	}
}
