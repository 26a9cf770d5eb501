package applicationfailover

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/events"
	"github.com/karmada-toolkit/karmada/internal/gates"
	"github.com/karmada-toolkit/karmada/internal/testenv/memory"
	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/env"
	"github.com/karmada-toolkit/karmada/pkg/domain/eviction"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

type healthy struct{ env.Interpreter }

func (healthy) HookEnabled(schema.GroupVersionKind, configv1alpha1.InterpreterOperation) bool {
	return true
}

// unhealthy returns a binding whose application is unhealthy in m1 and healthy in m2.
func unhealthy(s *scope.Binding, toleration int32, mode policyv1alpha1.PurgeMode) (workv1alpha2.Binding, reconcile.Request) {
	b := s.New()
	key := types.NamespacedName{Name: "web-deployment"}
	if s.Namespaced {
		key.Namespace = "default"
	}
	b.SetNamespace(key.Namespace)
	b.SetName(key.Name)
	b.SetUID("u")
	b.SetLabels(map[string]string{policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel: "id"})
	spec := b.GetSpec()
	spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: key.Namespace, Name: "web"}
	spec.PropagateDeps = true
	spec.Clusters = []workv1alpha2.TargetCluster{{Name: "m1", Replicas: 2}, {Name: "m2", Replicas: 1}}
	spec.Failover = &policyv1alpha1.FailoverBehavior{Application: &policyv1alpha1.ApplicationFailoverBehavior{
		DecisionConditions: policyv1alpha1.DecisionConditions{TolerationSeconds: &toleration}, PurgeMode: mode,
	}}
	b.GetStatus().AggregatedStatus = []workv1alpha2.AggregatedStatusItem{
		{ClusterName: "m1", Health: workv1alpha2.ResourceUnhealthy}, {ClusterName: "m2", Health: workv1alpha2.ResourceHealthy},
	}
	return b, reconcile.Request{NamespacedName: key}
}

type harness struct {
	*memory.Env
	*reconciler
}

func newHarness(t *testing.T, s *scope.Binding, gate bool, objs ...client.Object) *harness {
	t.Helper()
	set := gates.New(gates.GracefulEviction, gates.StatefulFailoverInjection)
	if err := set.Set(fmt.Sprintf("GracefulEviction=%v", gate)); err != nil {
		t.Fatal(err)
	}
	m := memory.New(t, objs...)
	return &harness{m, &reconciler{
		scope: s, client: m.Client, events: events.New(m.Recorder), times: newTimes(),
		env: &env.Env{Interpreter: healthy{}, Clock: m.Clock, Gates: set},
	}}
}

func (h *harness) binding(key types.NamespacedName) workv1alpha2.Binding {
	h.Helper()
	b := h.scope.New()
	h.Must(h.Stored.Get(h.Context(), key, b))
	return b
}

func (h *harness) tasks(key types.NamespacedName) []workv1alpha2.GracefulEvictionTask {
	h.Helper()
	return h.binding(key).GetSpec().GracefulEvictionTasks
}

func TestReconcile_EvictsAfterTheToleration(t *testing.T) {
	for _, mode := range []policyv1alpha1.PurgeMode{policyv1alpha1.PurgeModeDirectly, policyv1alpha1.PurgeModeGracefully, policyv1alpha1.PurgeModeNever} {
		for _, s := range scope.Bindings() {
			t.Run(s.Kind+"/"+string(mode), func(t *testing.T) {
				b, request := unhealthy(s, 5, mode)
				h := newHarness(t, s, true, b)
				result, err := h.Reconcile(t.Context(), request)
				if err != nil || result.RequeueAfter != 5*time.Second || len(h.tasks(request.NamespacedName)) != 0 {
					t.Fatalf("%+v %v", result, err)
				}
				h.Clock.Step(6 * time.Second)
				h.MustReconcile(h, request.NamespacedName)
				tasks := h.tasks(request.NamespacedName)
				if len(tasks) != 1 || tasks[0].FromCluster != "m1" || tasks[0].PurgeMode != mode || tasks[0].Producer != Producer(s) ||
					tasks[0].Reason != eviction.ReasonApplicationFailure || *tasks[0].Replicas != 2 {
					t.Errorf("the tasks are %+v", tasks)
				}
				if len(h.times.since) != 0 {
					t.Errorf("remembered: %v", h.times.since)
				}
			})
		}
	}
}

func TestReconcile_TolerationZeroIsRequeued(t *testing.T) {
	s := scope.NamespacedBinding()
	b, request := unhealthy(s, 0, policyv1alpha1.PurgeModeDirectly)
	h := newHarness(t, s, true, b)
	result, err := h.Reconcile(t.Context(), request)
	if err != nil || result.RequeueAfter != minRequeue {
		t.Fatalf("%+v %v", result, err)
	}
	h.Clock.Step(result.RequeueAfter)
	if _, err := h.Reconcile(t.Context(), request); err != nil || len(h.tasks(request.NamespacedName)) != 1 {
		t.Errorf("not evicted: %v", err)
	}
}

func TestReconcile_AFailedWriteKeepsTheTime(t *testing.T) {
	s := scope.NamespacedBinding()
	b, request := unhealthy(s, 5, policyv1alpha1.PurgeModeDirectly)
	for name, tc := range map[string]struct {
		err    error
		events int
	}{
		"conflict": {apierrors.NewConflict(workv1alpha2.Resource("resourcebindings"), "web", errors.New("changed")), 0},
		"refused":  {apierrors.NewForbidden(workv1alpha2.Resource("resourcebindings"), "web", errors.New("no")), 2},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, s, true, b.DeepCopyObject().(client.Object))
			h.FailOn("patch ", tc.err)
			h.MustReconcile(h, request.NamespacedName)
			h.Clock.Step(6 * time.Second)
			if _, err := h.Reconcile(t.Context(), request); !errors.Is(err, tc.err) {
				t.Fatal(err)
			}
			if since := h.times.since[request.NamespacedName]["m1"]; !since.Equal(start) || len(h.Recorder.Events) != tc.events {
				t.Errorf("unhealthy since %s, %d events", since, len(h.Recorder.Events))
			}
		})
	}
}

func TestReconcile_GracefulEvictionOff(t *testing.T) {
	s := scope.NamespacedBinding()
	b, request := unhealthy(s, 5, policyv1alpha1.PurgeModeGracefully)
	h := newHarness(t, s, false, b)
	h.MustReconcile(h, request.NamespacedName)
	h.Clock.Step(6 * time.Second)
	_, err := h.Reconcile(t.Context(), request)
	if !errors.Is(err, reconcile.TerminalError(nil)) || len(h.tasks(request.NamespacedName)) != 0 {
		t.Fatal(err)
	}
	if e := <-h.Recorder.Events; !strings.HasPrefix(e, "Warning EvictWorkloadFromClusterFailed ") {
		t.Errorf("the event is %q", e)
	}
}

func TestReconcile_AnErrorKeepsTheTimesOfAllClusters(t *testing.T) {
	b, request := unhealthy(scope.NamespacedBinding(), 30, policyv1alpha1.PurgeModeDirectly)
	b.GetSpec().Failover.Application.StatePreservation = &policyv1alpha1.StatePreservation{
		Rules: []policyv1alpha1.StatePreservationRule{{AliasLabelName: "id", JSONPath: "{.id}"}},
	}
	b.GetSpec().Clusters = append(b.GetSpec().Clusters, workv1alpha2.TargetCluster{Name: "m3"})
	items := b.GetStatus().AggregatedStatus
	items[0].Status = &runtime.RawExtension{Raw: []byte(`{"id":"x"}`)}
	items[1].Health = workv1alpha2.ResourceUnhealthy // without a status, its state cannot be preserved
	h := newHarness(t, scope.NamespacedBinding(), true, b)
	h.Must(h.env.Gates.Set("StatefulFailoverInjection=true"))
	h.MustReconcile(h, request.NamespacedName)
	h.Clock.Step(31 * time.Second)
	changed := h.binding(request.NamespacedName)
	changed.GetStatus().AggregatedStatus = append(items, workv1alpha2.AggregatedStatusItem{ClusterName: "m3", Health: workv1alpha2.ResourceUnhealthy})
	h.Must(h.Stored.Status().Update(t.Context(), changed))
	if _, err := h.Reconcile(t.Context(), request); err == nil {
		t.Fatal("no error for state that cannot be preserved")
	}
	want := map[string]time.Time{"m1": start, "m2": start, "m3": start.Add(31 * time.Second)}
	if got := h.times.load(changed, h.Clock.Now()); !maps.EqualFunc(got, want, time.Time.Equal) {
		t.Errorf("the times are %v, want %v", got, want)
	}
}

func TestReconcile_ForgetsWhatIsGone(t *testing.T) {
	s := scope.NamespacedBinding()
	b, request := unhealthy(s, 5, policyv1alpha1.PurgeModeDirectly)
	h := newHarness(t, s, true, b)
	if _, err := h.Reconcile(t.Context(), request); err != nil || len(h.times.since) != 1 {
		t.Fatal(err, h.times.since)
	}
	h.Must(h.Stored.Delete(t.Context(), b))
	if _, err := h.Reconcile(t.Context(), request); err != nil || len(h.times.since) != 0 {
		t.Error(err, h.times.since)
	}
}

// An application that no policy claims stays where it is: nothing would schedule it elsewhere.
func TestReconcile_WithoutAPolicyItStays(t *testing.T) {
	for _, s := range scope.Bindings() {
		b, request := unhealthy(s, 0, policyv1alpha1.PurgeModeDirectly)
		b.SetLabels(nil)
		h := newHarness(t, s, true, b)
		for range 3 {
			if got, err := h.Reconcile(t.Context(), request); err != nil || got != (reconcile.Result{}) {
				t.Errorf("%s: %+v %v", s.Kind, got, err)
			}
			h.Clock.Step(time.Hour)
		}
	}
}

func TestFailsOver(t *testing.T) {
	s, p := scope.NamespacedBinding(), failsOver()
	b, _ := unhealthy(s, 5, policyv1alpha1.PurgeModeDirectly)
	plain := b.DeepCopyObject().(workv1alpha2.Binding)
	plain.GetSpec().Failover = nil
	plain.SetGeneration(2)
	healthy := b.DeepCopyObject().(workv1alpha2.Binding)
	healthy.GetStatus().AggregatedStatus[0].Health = workv1alpha2.ResourceHealthy
	labelled := b.DeepCopyObject().(workv1alpha2.Binding)
	labelled.GetLabels()["a"] = "b"
	unclaimed := b.DeepCopyObject().(workv1alpha2.Binding)
	unclaimed.SetLabels(nil)
	for name, tc := range map[string]struct {
		before, after workv1alpha2.Binding
		want          bool
	}{
		"the behavior is removed": {b, plain, true},
		"the behavior is added":   {plain, b, true},
		"no behavior":             {plain, plain, false},
		"health":                  {b, healthy, true},
		"labels":                  {b, labelled, false},
		"a policy claims it":      {unclaimed, b, true},
	} {
		if got := p.Update(event.UpdateEvent{ObjectOld: tc.before, ObjectNew: tc.after}); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func (h *harness) annotation(key types.NamespacedName) string {
	h.Helper()
	return h.binding(key).GetAnnotations()[workv1alpha2.UnhealthySinceAnnotation]
}

func reconciled(t *testing.T, h *harness, request reconcile.Request, after time.Duration) {
	t.Helper()
	result, err := h.Reconcile(t.Context(), request)
	if err != nil || result.RequeueAfter != after {
		t.Fatalf("requeue after %s, want %s: %v", result.RequeueAfter, after, err)
	}
}

func TestReconcile_ARestartKeepsTheTimes(t *testing.T) {
	for _, s := range scope.Bindings() {
		t.Run(s.Kind, func(t *testing.T) {
			b, request := unhealthy(s, 60, policyv1alpha1.PurgeModeDirectly)
			h := newHarness(t, s, true, b)
			reconciled(t, h, request, persistAfter)
			h.Clock.Step(persistAfter)
			reconciled(t, h, request, 50*time.Second)
			if got, writes := h.annotation(request.NamespacedName), h.Writes(); got != `{"m1":"2026-01-01T00:00:00Z"}` || len(writes) != 1 {
				t.Fatalf("%q after %q", got, writes)
			}
			h.times = newTimes() // another process
			h.Clock.Step(45 * time.Second)
			h.Stable(func() { reconciled(t, h, request, 5*time.Second) })
			h.Clock.Step(6 * time.Second)
			reconciled(t, h, request, 0)
			tasks, writes := h.tasks(request.NamespacedName), h.Writes()
			if len(tasks) != 1 || h.annotation(request.NamespacedName) != "" || len(writes) != 1 {
				t.Errorf("%d tasks, %q, writes %q", len(tasks), h.annotation(request.NamespacedName), writes)
			}
		})
	}
}

func TestReconcile_AnnotationsOfUsers(t *testing.T) {
	s := scope.NamespacedBinding()
	for name, tc := range map[string]struct {
		text string
		want time.Duration
	}{
		"no JSON":                  {"x", persistAfter},
		"the future":               {`{"m1":"2030-01-01T00:00:00Z"}`, persistAfter},
		"a cluster without target": {`{"m9":"2025-12-31T23:59:50Z"}`, persistAfter},
		"a time":                   {`{"m1":"2025-12-31T23:59:45Z"}`, 45 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			b, request := unhealthy(s, 60, policyv1alpha1.PurgeModeDirectly)
			b.SetAnnotations(map[string]string{workv1alpha2.UnhealthySinceAnnotation: tc.text, "other": "kept"})
			h := newHarness(t, s, true, b)
			reconciled(t, h, request, tc.want)
		})
	}
}

func TestReconcile_AHeldClusterIsNotLeft(t *testing.T) {
	s := scope.NamespacedBinding()
	b, request := unhealthy(s, 5, policyv1alpha1.PurgeModeDirectly)
	h := newHarness(t, s, true, b)
	held := true
	h.limits.Hold = func(context.Context, string) (bool, error) { return held, nil }
	reconciled(t, h, request, 5*time.Second)
	h.Clock.Step(6 * time.Second)
	reconciled(t, h, request, time.Second)
	held = false
	reconciled(t, h, request, 0)
	if tasks := h.tasks(request.NamespacedName); len(tasks) != 1 {
		t.Errorf("the tasks are %+v", tasks)
	}
}

// exhausted is a budget of which nothing is left.
type exhausted struct{ after time.Duration }

func (b *exhausted) Take(context.Context) (time.Duration, error) { return b.after, nil }
func (b *exhausted) Return()                                     {}

func TestReconcile_AnExhaustedBudgetDelays(t *testing.T) {
	s := scope.NamespacedBinding()
	b, request := unhealthy(s, 5, policyv1alpha1.PurgeModeDirectly)
	h := newHarness(t, s, true, b)
	budget := &exhausted{after: 33 * time.Second}
	h.limits.Budget = budget
	reconciled(t, h, request, 5*time.Second)
	h.Clock.Step(6 * time.Second)
	reconciled(t, h, request, 33*time.Second)
	if tasks := h.tasks(request.NamespacedName); len(tasks) != 0 {
		t.Fatalf("the tasks are %+v", tasks)
	}
	budget.after = 0
	reconciled(t, h, request, 0)
	if tasks := h.tasks(request.NamespacedName); len(tasks) != 1 {
		t.Errorf("the tasks are %+v", tasks)
	}
}
