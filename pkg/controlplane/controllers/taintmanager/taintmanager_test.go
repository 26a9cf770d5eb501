package taintmanager

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/build"
	"github.com/karmada-toolkit/karmada/internal/controllers"
	"github.com/karmada-toolkit/karmada/internal/events"
	"github.com/karmada-toolkit/karmada/internal/testenv/memory"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/env"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/evictions"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

var now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func tainted(taints ...corev1.Taint) *clusterv1alpha1.Cluster {
	return build.Cluster("m1", build.Taints(taints...))
}

func noExecute() corev1.Taint {
	return corev1.Taint{Key: "down", Effect: corev1.TaintEffectNoExecute, TimeAdded: &metav1.Time{Time: now}}
}

// binding returns a binding in m1 and m2 whose policy has tolerations, as JSON.
func binding(s *scope.Binding, name, tolerations string, priority int32) workv1alpha2.Binding {
	b := s.New()
	if s.Namespaced {
		b.SetNamespace("default")
	}
	b.SetName(name)
	b.SetLabels(map[string]string{policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel: "id"})
	b.SetAnnotations(map[string]string{policyv1alpha1.AppliedPlacementAnnotation: `{"clusterTolerations":[` + tolerations + `]}`})
	b.GetSpec().Resource = workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: b.GetNamespace(), Name: name}
	b.GetSpec().Clusters = []workv1alpha2.TargetCluster{{Name: "m1"}, {Name: "m2"}}
	if priority != 0 {
		b.GetSpec().SchedulePriority = &workv1alpha2.SchedulePriority{Priority: priority}
	}
	return b
}

type harness struct {
	*memory.Env
	*reconciler
	queue *queue
}

// newHarness returns a controller with the queue of one scope, whose workers do not run.
func newHarness(t *testing.T, s *scope.Binding, o Options, objs ...client.Object) *harness {
	t.Helper()
	m := memory.New(t, objs...)
	q := newQueue(&env.Env{Client: m.Client, Clock: m.Clock}, s, events.New(m.Recorder), newMetrics(prometheus.NewRegistry()), o)
	t.Cleanup(q.items.ShutDown)
	return &harness{m, &reconciler{client: m.Client, options: o, queues: []*queue{q}}, q}
}

func (h *harness) tasks(b workv1alpha2.Binding) []workv1alpha2.GracefulEvictionTask {
	h.Helper()
	got := h.queue.scope.New()
	h.Must(h.Stored.Get(h.Context(), client.ObjectKeyFromObject(b), got))
	return got.GetSpec().GracefulEvictionTasks
}

var request = reconcile.Request{NamespacedName: types.NamespacedName{Name: "m1"}}

func TestProcess(t *testing.T) {
	const tolerant = `{"key":"down","operator":"Exists"`
	for name, tc := range map[string]struct {
		cluster     *clusterv1alpha1.Cluster
		tolerations string
		off         bool
		evicted     bool
		after       time.Duration
	}{
		"not tolerated":      {cluster: tainted(noExecute()), evicted: true},
		"tolerated":          {cluster: tainted(noExecute()), tolerations: tolerant + "}"},
		"tolerated for 5 s":  {cluster: tainted(noExecute()), tolerations: tolerant + `,"tolerationSeconds":5}`, after: 5 * time.Second},
		"eviction is off":    {cluster: tainted(noExecute()), off: true},
		"another effect":     {cluster: tainted(corev1.Taint{Key: "down", Effect: corev1.TaintEffectNoSchedule})},
		"the cluster is new": {cluster: tainted()},
	} {
		for _, s := range scope.Bindings() {
			t.Run(s.Kind+"/"+name, func(t *testing.T) {
				b := binding(s, "b", tc.tolerations, 0)
				h := newHarness(t, s, Options{Evict: !tc.off, PurgeMode: policyv1alpha1.PurgeModeDirectly}, tc.cluster, b)
				got, err := h.queue.process(t.Context(), item{"m1", client.ObjectKeyFromObject(b)})
				if want := (outcome{evicted: tc.evicted, after: tc.after}); err != nil || got != want {
					t.Fatalf("%+v %v", got, err)
				}
				tasks := h.tasks(b)
				if tc.evicted != (len(tasks) == 1) || tc.evicted && (tasks[0].CreationTimestamp == nil || tasks[0].FromCluster != "m1" || tasks[0].PurgeMode != policyv1alpha1.PurgeModeDirectly || !tasks[0].CreationTimestamp.Time.Equal(now)) {
					t.Errorf("the tasks are %+v", tasks)
				}
			})
		}
	}
}

func TestProcess_WhatIsGoneIsDropped(t *testing.T) {
	s := scope.NamespacedBinding()
	b := binding(s, "b", "", 0)
	h := newHarness(t, s, Options{Evict: true}, b)
	for _, i := range []item{{"m1", client.ObjectKeyFromObject(b)}, {"m1", types.NamespacedName{Namespace: "default", Name: "gone"}}} {
		if got, err := h.queue.process(t.Context(), i); got != (outcome{}) || err != nil {
			t.Errorf("%v: %+v %v", i, got, err)
		}
	}
}

func TestReconcile_EvictsEveryBindingOnce(t *testing.T) {
	for _, s := range scope.Bindings() {
		t.Run(s.Kind, func(t *testing.T) {
			objs := []client.Object{tainted(noExecute())}
			for i := range 30 {
				objs = append(objs, binding(s, fmt.Sprintf("b%d", i), "", 0))
			}
			h := newHarness(t, s, Options{Evict: true, Rate: 1e9}, objs...)
			result, err := h.Reconcile(t.Context(), request)
			if err != nil || result.RequeueAfter != resync {
				t.Fatal(result, err)
			}
			h.MustReconcile(h, request.NamespacedName) // enqueued again before they are evicted
			for range 30 {
				done := make(chan struct{})
				go func() {
					defer close(done)
					controllers.Next(t.Context(), h.queue.items, h.queue.handle)
				}()
				for open := true; open; {
					select {
					case <-done:
						open = false
					default:
						if h.Clock.HasWaiters() {
							h.Clock.Step(time.Second)
						}
					}
				}
			}
			seen := map[string]int{}
			for _, write := range h.Writes() {
				seen[write]++
			}
			if len(seen) != 30 || h.queue.items.Len() != 0 {
				t.Errorf("evicted %d of 30, %d remain", len(seen), h.queue.items.Len())
			}
			for name, n := range seen {
				if n != 1 {
					t.Errorf("%s is evicted %d times", name, n)
				}
			}
		})
	}
}

// While evictions are off nothing is enqueued, and the bindings of a tainted cluster are not searched again.
func TestReconcile_NothingWhileEvictionsAreOff(t *testing.T) {
	s := scope.NamespacedBinding()
	h := newHarness(t, s, Options{}, tainted(noExecute()), binding(s, "b", "", 0))
	if got, err := h.Reconcile(t.Context(), request); err != nil || got != (reconcile.Result{}) || h.queue.items.Len() != 0 {
		t.Errorf("%+v %v, %d enqueued", got, err, h.queue.items.Len())
	}
}

// A workload that no policy claims stays, with one event: nothing would schedule it elsewhere.
func TestProcess_WithoutAPolicyItStays(t *testing.T) {
	for _, s := range scope.Bindings() {
		b := binding(s, "b", "", 0)
		b.SetLabels(nil)
		b.SetUID("binding")
		b.GetSpec().Resource.UID = "template"
		h := newHarness(t, s, Options{Evict: true}, tainted(noExecute()), b)
		for range 3 {
			if got, err := h.queue.process(t.Context(), item{"m1", client.ObjectKeyFromObject(b)}); err != nil || got != (outcome{}) {
				t.Fatalf("%+v %v", got, err)
			}
		}
		if len(h.tasks(b)) > 0 || len(h.Recorder.Events) != 2 { // of the binding and of the template
			t.Errorf("%s: %d tasks, %d events", s.Kind, len(h.tasks(b)), len(h.Recorder.Events))
		}
		if got := <-h.Recorder.Events; !strings.Contains(got, "Warning EvictWorkloadFromClusterSkipped Evict from cluster m1 skipped: no policy applies") {
			t.Error(got)
		}
	}
}

func TestReconcile_HigherPriorityFirst(t *testing.T) {
	s := scope.NamespacedBinding()
	h := newHarness(t, s, Options{Evict: true}, tainted(noExecute()),
		binding(s, "a-low", "", 1), binding(s, "b-high", "", 100), binding(s, "c-none", "", 0), binding(s, "d-middle", "", 50))
	h.MustReconcile(h, request.NamespacedName)
	for _, want := range []string{"b-high", "d-middle", "a-low", "c-none"} {
		got, _, _ := h.queue.items.GetWithPriority()
		h.queue.items.Done(got)
		if got.binding.Name != want {
			t.Errorf("got %s, want %s", got.binding.Name, want)
		}
	}
}

func TestReconcile_NoTaintNoWork(t *testing.T) {
	s := scope.NamespacedBinding()
	h := newHarness(t, s, Options{Evict: true}, tainted(), binding(s, "b", "", 0))
	if result, err := h.Reconcile(t.Context(), request); err != nil || result.RequeueAfter != 0 || h.queue.items.Len() != 0 {
		t.Error(result, err, h.queue.items.Len())
	}
}

func TestProcess_AFailedWriteIsRetriedAndRecorded(t *testing.T) {
	s := scope.NamespacedBinding()
	b := binding(s, "b", "", 0)
	refused := apierrors.NewForbidden(workv1alpha2.Resource("resourcebindings"), "b", errors.New("no"))
	h := newHarness(t, s, Options{Evict: true}, tainted(noExecute()), b)
	h.FailOn("patch ", refused)
	h.MustReconcile(h, request.NamespacedName)
	if !controllers.Next(t.Context(), h.queue.items, h.queue.handle) {
		t.Fatal("the queue ended")
	}
	key := item{"m1", client.ObjectKeyFromObject(b)}
	if got, _, _ := h.queue.items.GetWithPriority(); got != key || len(h.Recorder.Events) != 2 {
		t.Errorf("requeued %v, %d events", got, len(h.Recorder.Events))
	}
}

// Others may write the binding meanwhile: nothing failed.
func TestProcess_AConflictIsRetriedWithoutAnEvent(t *testing.T) {
	s := scope.NamespacedBinding()
	b := binding(s, "b", "", 0)
	h := newHarness(t, s, Options{Evict: true}, tainted(noExecute()), b)
	h.FailOn("patch ", apierrors.NewConflict(workv1alpha2.Resource("resourcebindings"), "b", errors.New("changed")))
	if _, err := h.queue.process(t.Context(), item{"m1", client.ObjectKeyFromObject(b)}); !apierrors.IsConflict(err) || len(h.Recorder.Events) > 0 {
		t.Errorf("%v, %d events", err, len(h.Recorder.Events))
	}
}

// evicting is a scheduler that calls a function for each eviction.
type evicting func(*workv1alpha2.ResourceBindingSpec) bool

func (evicting) Create(context.Context, *scope.Binding, workv1alpha2.Binding) (bool, error) {
	return false, nil
}

func (e evicting) Evict(_ context.Context, _ *scope.Binding, _ workv1alpha2.Binding, spec *workv1alpha2.ResourceBindingSpec) (bool, error) {
	return e(spec), nil
}

// What is scheduled in the same process is written there, with new targets.
func TestProcess_Schedules(t *testing.T) {
	for _, done := range []bool{true, false} {
		s := scope.NamespacedBinding()
		b := binding(s, "b", "", 0)
		var got *workv1alpha2.ResourceBindingSpec
		h := newHarness(t, s, Options{Evict: true}, tainted(noExecute()), b)
		h.queue.env.Scheduler = evicting(func(spec *workv1alpha2.ResourceBindingSpec) bool {
			got = spec
			return done
		})
		if out, err := h.queue.process(t.Context(), item{"m1", client.ObjectKeyFromObject(b)}); !out.evicted || err != nil {
			t.Fatalf("%+v %v", out, err)
		}
		if got == nil || len(got.Clusters) != 1 || len(got.GracefulEvictionTasks) != 1 || got.GracefulEvictionTasks[0].CreationTimestamp.IsZero() {
			t.Errorf("the spec is %+v", got)
		}
		if written := len(h.tasks(b)) == 1; written == done {
			t.Errorf("scheduled: %v, the tasks are written: %v", done, written)
		}
	}
}

func TestTaintsChanged(t *testing.T) {
	p := taintsChanged()
	if !p.Update(event.UpdateEvent{ObjectOld: tainted(), ObjectNew: tainted(noExecute())}) || p.Update(event.UpdateEvent{ObjectOld: tainted(), ObjectNew: tainted()}) {
		t.Error("exactly changes of taints must pass")
	}
}

func TestReconcile_AHeldClusterIsNotEvicted(t *testing.T) {
	for _, s := range scope.Bindings() {
		t.Run(s.Kind, func(t *testing.T) {
			held := true
			b := binding(s, "b", "", 0)
			h := newHarness(t, s, Options{Evict: true, Rate: 1e9, Limits: evictions.Limits{Hold: func(_ context.Context, cluster string) (bool, error) { return held && cluster == "m1", nil }}},
				tainted(noExecute()), b)
			if result, err := h.Reconcile(t.Context(), request); err != nil || result.RequeueAfter != heldResync || h.queue.items.Len() != 0 {
				t.Fatal(result, err, h.queue.items.Len())
			}
			// A binding that was enqueued before.
			key := item{"m1", client.ObjectKeyFromObject(b)}
			if got, err := h.queue.process(t.Context(), key); got != (outcome{}) || err != nil || len(h.tasks(b)) != 0 {
				t.Fatalf("%+v %v", got, err)
			}
			held = false
			if result, err := h.Reconcile(t.Context(), request); err != nil || result.RequeueAfter != resync || h.queue.items.Len() != 1 {
				t.Fatal(result, err, h.queue.items.Len())
			}
			if got, err := h.queue.process(t.Context(), key); !got.evicted || err != nil {
				t.Errorf("%+v %v", got, err)
			}
		})
	}
}

// fakeBudget has a number of evictions left.
type fakeBudget struct{ left, returned int }

func (b *fakeBudget) Take(context.Context) (time.Duration, error) {
	if b.left == 0 {
		return 7 * time.Second, nil
	}
	b.left--
	return 0, nil
}

func (b *fakeBudget) Return() { b.returned++ }

func TestProcess_Budget(t *testing.T) {
	s := scope.NamespacedBinding()
	a, b := binding(s, "a", "", 0), binding(s, "b", "", 0)
	tolerant := binding(s, "c", `{"operator":"Exists"}`, 0)
	budget := &fakeBudget{left: 1}
	h := newHarness(t, s, Options{Evict: true, Limits: evictions.Limits{Budget: budget}}, tainted(noExecute()), a, b, tolerant)
	for _, step := range []struct {
		binding workv1alpha2.Binding
		want    outcome
	}{{tolerant, outcome{}}, {a, outcome{evicted: true}}, {b, outcome{exhausted: 7 * time.Second}}} {
		if got, err := h.queue.process(t.Context(), item{"m1", client.ObjectKeyFromObject(step.binding)}); got != step.want || err != nil {
			t.Errorf("%s: %+v %v, want %+v", step.binding.GetName(), got, err, step.want)
		}
	}
	if len(h.tasks(b)) != 0 || budget.returned != 0 {
		t.Errorf("%v, %d returned", h.tasks(b), budget.returned)
	}
}

func TestProcess_AFailedWriteReturnsItsBudget(t *testing.T) {
	s := scope.NamespacedBinding()
	b := binding(s, "b", "", 0)
	budget := &fakeBudget{left: 1}
	h := newHarness(t, s, Options{Evict: true, Limits: evictions.Limits{Budget: budget}}, tainted(noExecute()), b)
	h.FailOn("patch ", errors.New("no"))
	if _, err := h.queue.process(t.Context(), item{"m1", client.ObjectKeyFromObject(b)}); err == nil || budget.returned != 1 {
		t.Errorf("%v, %d returned", err, budget.returned)
	}
}

// A binding whose targets are tainted together leaves them with one write: the scheduler must not give the replicas of the
// first to the second. One that is held stays.
func TestProcess_LeavesAllTaintedClustersAtOnce(t *testing.T) {
	cluster := func(name string) *clusterv1alpha1.Cluster {
		c := tainted(noExecute())
		c.Name = name
		return c
	}
	healthy := tainted()
	healthy.Name = "m3"
	for name, tc := range map[string]struct {
		held string
		want []string
	}{
		"two dead":         {want: []string{"m1", "m2"}},
		"one of them held": {held: "m2", want: []string{"m1"}},
	} {
		for _, s := range scope.Bindings() {
			t.Run(s.Kind+"/"+name, func(t *testing.T) {
				b := binding(s, "b", "", 0)
				b.GetSpec().Clusters = append(b.GetSpec().Clusters, workv1alpha2.TargetCluster{Name: "m3"})
				budget := &fakeBudget{left: 1}
				d := Options{Evict: true, Limits: evictions.Limits{Budget: budget, Hold: func(_ context.Context, cluster string) (bool, error) { return cluster == tc.held, nil }}}
				h := newHarness(t, s, d, cluster("m1"), cluster("m2"), healthy, b)
				got, err := h.queue.process(t.Context(), item{"m1", client.ObjectKeyFromObject(b)})
				if err != nil || !got.evicted {
					t.Fatalf("%+v %v", got, err)
				}
				var from []string
				for _, task := range h.tasks(b) {
					from = append(from, task.FromCluster)
				}
				if !slices.Equal(from, tc.want) {
					t.Errorf("evicted from %v, want %v", from, tc.want)
				}
			})
		}
	}
}

// More workers evict at the same pace.
func TestQueue_Pace(t *testing.T) {
	for rate, want := range map[float32]time.Duration{0: pause / workers, 0.5: 2 * time.Second / workers, 19: time.Second / 19 / workers, 10_000: 100 * time.Microsecond / workers} {
		q := &queue{options: Options{Rate: rate}}
		if got := q.interval() / time.Duration(q.workers()); got.Round(time.Microsecond) != want.Round(time.Microsecond) {
			t.Errorf("rate %v: one eviction in %s, want %s", rate, got, want)
		}
	}
}

func TestReconcile_CountsOnlyTaintedClusters(t *testing.T) {
	s := scope.Bindings()[0]
	h := newHarness(t, s, Options{Evict: true}, tainted(noExecute()), binding(s, "a", "", 0))
	request := reconcile.Request{NamespacedName: types.NamespacedName{Name: "m1"}}
	spec := func(taints string) func() error {
		return func() error {
			return h.Stored.Patch(t.Context(), tainted(), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"taints":`+taints+`}}`)))
		}
	}
	for _, step := range []struct {
		name   string
		change func() error
		want   int
	}{
		{"tainted", func() error { return nil }, 1},
		{"no taint", spec("null"), 0},
		{"tainted again", spec(`[{"key":"down","effect":"NoExecute"}]`), 1},
		{"deleted", func() error { return h.Stored.Delete(t.Context(), tainted()) }, 0},
	} {
		h.Must(step.change())
		if _, err := h.Reconcile(t.Context(), request); err != nil {
			t.Fatal(err)
		}
		if got := testutil.CollectAndCount(h.queue.metrics.all.kinds); got != step.want {
			t.Errorf("%s: %d clusters, want %d", step.name, got, step.want)
		}
	}
}
