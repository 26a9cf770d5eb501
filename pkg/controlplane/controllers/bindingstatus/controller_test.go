package bindingstatus

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/events"
	"github.com/karmada-toolkit/karmada/internal/status"
	"github.com/karmada-toolkit/karmada/internal/testenv/memory"
	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/env"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

// counting aggregates the member statuses by counting them.
type counting struct {
	env.Interpreter
	err error
}

func (counting) HookEnabled(gvk schema.GroupVersionKind, op configv1alpha1.InterpreterOperation) bool {
	return gvk.Kind == "Deployment" && op == configv1alpha1.InterpreterOperationAggregateStatus
}

func (c counting) AggregateStatus(obj *unstructured.Unstructured, items []workv1alpha2.AggregatedStatusItem) (*unstructured.Unstructured, error) {
	obj.Object["status"] = map[string]any{"replicas": int64(len(items))}
	return obj, c.err
}

// bench is one binding with its template and Works.
type bench struct {
	*memory.Env
	scope    *scope.Binding
	interp   *counting
	r        *reconciler
	key      client.ObjectKey
	patches  []string
	conflict int
	// behind makes the caches show the binding and the template as they were then.
	behind []client.Object
	// meanwhile is called after eviction tasks are written, see endEvictions.
	meanwhile func()
}

// Get implements Templates.
func (b *bench) Get(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) (*unstructured.Unstructured, error) {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(gvk)
	return obj, b.cached(ctx, b.Client, client.ObjectKey{Namespace: namespace, Name: name}, obj)
}

// cached reads an object as the caches show it.
func (b *bench) cached(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	for _, old := range b.behind {
		if reflect.TypeOf(old) == reflect.TypeOf(obj) && client.ObjectKeyFromObject(old) == key {
			reflect.ValueOf(obj).Elem().Set(reflect.ValueOf(old.DeepCopyObject()).Elem())
			return nil
		}
	}
	return c.Get(ctx, key, obj, opts...)
}

func newBench(t *testing.T, s *scope.Binding, clusters ...string) *bench {
	t.Helper()
	b := &bench{scope: s, interp: &counting{}}
	binding := s.New()
	binding.SetName("a-deployment")
	if s.Namespaced {
		binding.SetNamespace("default")
	}
	binding.SetUID("binding")
	binding.SetLabels(map[string]string{s.IDLabel: "id"})
	*binding.GetSpec() = *spec(clusters...)
	binding.GetStatus().Conditions = []metav1.Condition{{Type: "Scheduled", Status: metav1.ConditionTrue, Reason: "Success"}}
	b.key = client.ObjectKeyFromObject(binding)
	template := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"namespace": "default", "name": "a", "uid": "template"},
	}}
	b.Env = memory.New(t, binding, template)
	b.Clock.SetTime(time.Unix(1000, 0))
	b.Index(&workv1alpha1.Work{}, indexName(s), indexer(s))
	b.Before = b.before
	b.use(&env.Env{Interpreter: b.interp}, Options{})
	return b
}

// use makes a new reconciler.
func (b *bench) use(e *env.Env, o Options) {
	e.Client, e.Live, e.Clock, o.Templates = interceptor.NewClient(b.Client, interceptor.Funcs{Get: b.cached}), b.Client, b.Clock, b
	b.r = newReconciler(e, b.scope, b.Recorder, o)
}

// before records which statuses are written.
func (b *bench) before(write string) error {
	switch {
	case strings.HasPrefix(write, "status Deployment "):
		b.patches = append(b.patches, "template")
	case strings.HasPrefix(write, "status "):
		if b.conflict > 0 {
			b.conflict--
			return apierrors.NewConflict(schema.GroupResource{Resource: "bindings"}, b.key.Name, errors.New("changed"))
		}
		b.patches = append(b.patches, "binding")
	}
	return nil
}

// set creates or replaces a Work.
func (b *bench) set(work workv1alpha1.Work) {
	b.Helper()
	work.Labels = map[string]string{b.scope.IDLabel: "id"}
	old := &workv1alpha1.Work{}
	if b.Stored.Get(b.Context(), client.ObjectKeyFromObject(&work), old) == nil {
		b.Must(b.Stored.Delete(b.Context(), old))
	}
	b.Must(b.Stored.Create(b.Context(), &work))
}

func (b *bench) reconcile() (time.Duration, error) {
	res, err := b.r.Reconcile(b.Context(), reconcile.Request{NamespacedName: b.key})
	return res.RequeueAfter, err
}

// want reconciles and checks what was patched.
func (b *bench) want(wait time.Duration, patches ...string) {
	b.Helper()
	b.patches = nil
	got, err := b.reconcile()
	if err != nil || got != wait {
		b.Errorf("waits %s, want %s, %v", got, wait, err)
	}
	if diff := cmp.Diff(patches, b.patches); diff != "" {
		b.Errorf("patches: %s", diff)
	}
}

// current returns the binding.
func (b *bench) current() workv1alpha2.Binding {
	b.Helper()
	binding := b.scope.New()
	b.Must(b.Stored.Get(b.Context(), b.key, binding))
	return binding
}

func (b *bench) status() *workv1alpha2.ResourceBindingStatus {
	b.Helper()
	return b.current().GetStatus()
}

func eachScope(t *testing.T, run func(*testing.T, *scope.Binding)) {
	t.Helper()
	for _, s := range scope.Bindings() {
		t.Run(s.Kind, func(t *testing.T) { run(t, s) })
	}
}

func TestReconcile_WritesACompleteStatusOnce(t *testing.T) {
	eachScope(t, func(t *testing.T, s *scope.Binding) {
		b := newBench(t, s, "m1", "m2")
		b.want(0)
		b.set(workIn("m1", "", "", ""))
		b.set(workIn("m2", "", "", ""))
		b.want(0)
		b.set(workIn("m1", "True", "Healthy", "{}"))
		b.want(3 * time.Second)
		b.Clock.Step(500 * time.Millisecond)
		b.set(workIn("m2", "True", "Healthy", "{}"))
		b.want(status.WrittenTTL, "binding", "template")
		got := b.status()
		if !meta.IsStatusConditionTrue(got.Conditions, "FullyApplied") || !meta.IsStatusConditionTrue(got.Conditions, "Scheduled") || len(got.AggregatedStatus) != 2 {
			t.Errorf("status: %+v", got)
		}
		b.want(0)
		if got := b.Events(); len(got) != 0 {
			t.Errorf("events: %v", got)
		}
	})
}

func TestReconcile_WritesAnUnstableStatusAfterItsDelay(t *testing.T) {
	b := newBench(t, scope.NamespacedBinding(), "m1")
	b.set(workIn("m1", "True", "Unhealthy", "{}"))
	b.want(time.Second)
	b.Clock.Step(time.Second)
	b.want(status.WrittenTTL, "binding", "template")
	if got := b.Events(); len(got) != 0 {
		t.Errorf("events: %v", got)
	}
	b.Clock.Step(time.Second)
	b.set(workIn("m1", "True", "Healthy", "{}"))
	b.want(status.WrittenTTL, "binding") // the template's status is the same
	if got := b.Events(); len(got) != 0 {
		t.Errorf("events: %v", got)
	}
}

func TestReconcile_Failure(t *testing.T) {
	b := newBench(t, scope.NamespacedBinding(), "m1")
	b.set(workIn("m1", "False", "", ""))
	b.want(150 * time.Millisecond)
	b.Clock.Step(150 * time.Millisecond)
	b.want(status.WrittenTTL, "binding", "template")
	got := b.status()
	c := meta.FindStatusCondition(got.Conditions, "FullyApplied")
	if c == nil || c.Status != "False" || c.Reason != "FullyAppliedFailed" || c.Message != "Failed to apply all works, see status.aggregatedStatus for details" {
		t.Errorf("condition: %v", c)
	}
	if got.AggregatedStatus[0].AppliedMessage != "message of m1" {
		t.Errorf("items: %v", got.AggregatedStatus)
	}
}

func TestReconcile_NoTarget(t *testing.T) {
	b := newBench(t, scope.NamespacedBinding())
	b.want(status.WrittenTTL, "binding")
	c := meta.FindStatusCondition(b.status().Conditions, "FullyApplied")
	if c == nil || c.Status != "False" || c.Reason != "FullyAppliedFailed" || c.Message != "The binding has no target cluster, see condition Scheduled" {
		t.Errorf("condition: %v", c)
	}
}

func TestReconcile_RetriesConflicts(t *testing.T) {
	b := newBench(t, scope.NamespacedBinding(), "m1")
	b.set(workIn("m1", "True", "Healthy", "{}"))
	b.conflict = 2
	b.want(status.WrittenTTL, "binding", "template")
	if !meta.IsStatusConditionTrue(b.status().Conditions, "Scheduled") {
		t.Error("the condition of the scheduler is lost")
	}
	b.set(workIn("m1", "True", "Unhealthy", "{}"))
	b.Clock.Step(time.Minute)
	b.want(time.Second)
	b.Clock.Step(time.Minute)
	b.conflict = 100
	if _, err := b.reconcile(); !apierrors.IsConflict(err) {
		t.Error(err)
	}
}

func TestReconcile_InterpreterFails(t *testing.T) {
	b := newBench(t, scope.NamespacedBinding(), "m1")
	b.set(workIn("m1", "True", "Healthy", "{}"))
	b.interp.err = errors.New("boom")
	for range 2 {
		if _, err := b.reconcile(); err == nil {
			t.Fatal("no error")
		}
	}
	want := "Warning AggregateStatusFailed aggregating the status: boom"
	if got := b.Events(); !slices.Equal(got, []string{want, want}) { // on the binding and on the template
		t.Errorf("events: %v", got)
	}
	b.interp.err = nil
	b.want(status.WrittenTTL, "template")
	// The same failure is recorded again.
	b.interp.err = errors.New("boom")
	b.set(workIn("m1", "True", "Healthy", `{"a":1}`))
	b.Clock.Step(time.Minute)
	if _, err := b.reconcile(); err == nil {
		t.Fatal("no error")
	}
	if got := b.Events(); !slices.Equal(got, []string{want, want}) {
		t.Errorf("events: %v", got)
	}
}

func TestReconcile_DeletedOrReplacedTemplate(t *testing.T) {
	for _, uid := range []string{"", "another"} {
		b := newBench(t, scope.NamespacedBinding(), "m1")
		b.set(workIn("m1", "True", "Healthy", "{}"))
		template, err := b.Get(t.Context(), schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, "default", "a")
		b.Must(err)
		b.Must(b.Stored.Delete(t.Context(), template))
		if uid != "" {
			template.SetResourceVersion("")
			template.SetUID("another")
			b.Must(b.Stored.Create(t.Context(), template))
		}
		b.want(status.WrittenTTL, "binding")
	}
}

func TestReconcile_DeletedBinding(t *testing.T) {
	b := newBench(t, scope.NamespacedBinding(), "m1")
	b.set(workIn("m1", "True", "Unhealthy", "{}"))
	b.want(time.Second)
	b.delete()
	b.want(0)
	if _, ok := b.r.states.Get(b.key); ok || b.r.bindings.debouncer.Len() != 0 {
		t.Error("something is remembered")
	}
}

func (b *bench) delete() {
	b.Helper()
	b.Must(b.Stored.Delete(b.Context(), b.current()))
}

// The status of a template does not outlive its binding, whatever is observed of its deletion.
func TestReconcile_TheStatusEndsWithTheBinding(t *testing.T) {
	for name, meanwhile := range map[string]func(*bench, workv1alpha2.Binding){
		"gone": func(b *bench, _ workv1alpha2.Binding) { b.delete() },
		"replaced": func(b *bench, binding workv1alpha2.Binding) {
			b.delete()
			binding.SetResourceVersion("")
			binding.SetUID("another")
			*binding.GetStatus() = workv1alpha2.ResourceBindingStatus{}
			b.Must(b.Stored.Create(b.Context(), binding))
			b.Must(b.Stored.DeleteAllOf(b.Context(), &workv1alpha1.Work{}, client.InNamespace("karmada-es-m1")))
		},
		"being deleted": func(b *bench, binding workv1alpha2.Binding) {
			binding.SetFinalizers([]string{b.scope.Finalizer})
			b.Must(b.Stored.Update(b.Context(), binding))
			b.delete()
		},
		"being deleted, after a restart": func(b *bench, binding workv1alpha2.Binding) {
			binding.SetFinalizers([]string{b.scope.Finalizer})
			b.Must(b.Stored.Update(b.Context(), binding))
			b.delete()
			b.use(&env.Env{Interpreter: b.interp}, Options{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			eachScope(t, func(t *testing.T, s *scope.Binding) {
				b := newBench(t, s, "m1")
				b.set(workIn("m1", "True", "Healthy", "{}"))
				b.want(status.WrittenTTL, "binding", "template")
				meanwhile(b, b.current())
				b.want(0, "template")
				if got, _, _ := unstructured.NestedInt64(b.template().Object, "status", "replicas"); got != 0 {
					t.Errorf("got %d replicas", got)
				}
				b.want(0)
			})
		})
	}
}

func TestReconcile_WritesAStatusThatARestoreUndidAgain(t *testing.T) {
	eachScope(t, func(t *testing.T, s *scope.Binding) {
		b := newBench(t, s, "m1")
		binding, template := b.current(), b.template()
		b.set(workIn("m1", "True", "Healthy", "{}"))
		b.want(status.WrittenTTL, "binding", "template")
		// The caches show the versions from before the writes: they are behind, or etcd was restored.
		b.behind = []client.Object{binding, template}
		b.want(status.WrittenTTL)
		b.Clock.Step(status.WrittenTTL)
		lost := b.template()
		delete(lost.Object, "status")
		b.Must(b.Stored.Status().Update(t.Context(), lost))
		stored := b.current()
		*stored.GetStatus() = *binding.GetStatus()
		b.Must(b.Stored.Status().Update(t.Context(), stored))
		b.want(status.WrittenTTL, "binding", "binding", "template") // the first one conflicts
		if got := b.status(); len(got.AggregatedStatus) != 1 || !meta.IsStatusConditionTrue(got.Conditions, "FullyApplied") {
			t.Errorf("status: %+v", got)
		}
		b.behind = nil
		b.want(0)
	})
}

// A new Work without a status counts as not applied: its cluster may never report.
func TestWorkPredicate_PassesNewWorksWithoutStatus(t *testing.T) {
	work := &workv1alpha1.Work{}
	if !workPredicate().Create(event.CreateEvent{Object: work}) {
		t.Error("a new Work is left out")
	}
	if workPredicate().Update(event.UpdateEvent{ObjectOld: work, ObjectNew: work.DeepCopy()}) {
		t.Error("a Work whose status is the same is passed")
	}
}

func TestBindingOf(t *testing.T) {
	for _, s := range scope.Bindings() {
		work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
			workv1alpha2.ResourceBindingNamespaceAnnotation: "ns", workv1alpha2.ResourceBindingNameAnnotation: "rb",
			workv1alpha2.ClusterResourceBindingAnnotation: "crb",
		}}}
		want := map[string]string{
			"resource-binding-status-controller":         "ns/rb",
			"cluster-resource-binding-status-controller": "/crb",
		}[s.StatusController]
		if got := s.KeyOf(work).String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if got := s.KeyOf(&workv1alpha1.Work{}); got.Name != "" {
			t.Errorf("got %v", got)
		}
	}
}

func TestReconcile_RecordsEverySuccess(t *testing.T) {
	b := newBench(t, scope.NamespacedBinding(), "m1")
	b.use(&env.Env{Interpreter: b.interp, Events: events.Contract}, Options{})
	b.set(workIn("m1", "True", "Unhealthy", "{}"))
	b.want(time.Second)
	b.Clock.Step(time.Second)
	b.want(status.WrittenTTL, "binding", "template")
	want := []string{
		"Normal AggregateStatusSucceed Update ResourceBinding(" + b.key.String() + ") with AggregatedStatus successfully.",
		"Normal AggregateStatusSucceed Update Resource with AggregatedStatus successfully.",
	}
	if diff := cmp.Diff(want, b.Events()); diff != "" {
		t.Error(diff)
	}
	b.want(0)
	if got := b.Events(); len(got) > 0 {
		t.Errorf("recorded again: %v", got)
	}
}

// A binding made by hand, with a status made by hand, must not reset the status of
// a template in another namespace.
func TestReconcile_TemplateOfAnotherNamespace(t *testing.T) {
	for namespace, want := range map[string][]string{"default": {"binding", "template"}, "other": {"binding"}} {
		t.Run(namespace, func(t *testing.T) {
			b := newBench(t, scope.NamespacedBinding(), "m1")
			memory.Change(b.Env, b.key, func(binding *workv1alpha2.ResourceBinding) {
				binding.Spec.Resource.Namespace = namespace
				binding.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "m1", Applied: true}}
				binding.Status.Conditions = []metav1.Condition{fullyAppliedCondition(&summary{fullyApplied: true}, b.Clock.Now())}
			})
			template := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"namespace": "other", "name": "a", "uid": "template"},
			}}
			b.Must(b.Stored.Create(t.Context(), template))
			_, err := b.reconcile()
			b.Must(err)
			b.Clock.Step(time.Minute)
			_, err = b.reconcile()
			b.Must(err)
			if diff := cmp.Diff(want, b.patches); diff != "" {
				t.Error(diff)
			}
		})
	}
}
