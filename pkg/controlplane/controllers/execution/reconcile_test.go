package execution

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/execution"
	"github.com/karmada-toolkit/karmada/pkg/member/access/accesstest"
)

func TestReconcile_ConfigMap(t *testing.T) {
	b := newBench(t, configMap)
	b.mustSync()
	if obj := b.member.Get(configMapPath); obj == nil || obj.GetLabels()[workv1alpha2.ManagedByKarmadaLabel] != "true" {
		t.Fatalf("in the member: %v", obj)
	}
	work := b.work()
	if applied(work) != appliedOK || len(work.Status.ManifestStatuses) != 1 || work.Status.ManifestStatuses[0].Health != "Healthy" || b.writes() != 1 {
		t.Errorf("status after %d writes: %+v", b.writes(), work.Status)
	}
	if got := b.Events(); !slices.Equal(got, []string{"Normal SyncSucceed Successfully applied resource(default/a) to cluster m1"}) {
		t.Errorf("events: %v", got)
	}
	b.observed(configMapPath)
	b.member.Writes()
	b.mustSync()
	if got := b.member.Writes(); len(got) != 0 || b.writes() != 1 || len(b.Events()) != 0 {
		t.Errorf("the second reconciliation wrote %v", got)
	}
}

func TestReconcile_HealthyDeploymentIsReportedAtOnce(t *testing.T) {
	b := newBench(t, deployment)
	if wait := b.mustSync(); wait != time.Second || b.writes() != 0 {
		t.Fatalf("waits %s after %d writes", wait, b.writes())
	}
	obj := b.member.Get(deploymentPath)
	obj.Object["status"] = map[string]any{"observedGeneration": int64(1), "replicas": int64(1), "updatedReplicas": int64(1), "availableReplicas": int64(1), "readyReplicas": int64(1)}
	b.member.Put(deploymentPath, obj)
	b.observed(deploymentPath)
	b.Clock.Step(200 * time.Millisecond)
	b.mustSync()
	work := b.work()
	if b.writes() != 1 || applied(work) != appliedOK || work.Status.ManifestStatuses[0].Health != "Healthy" ||
		!strings.Contains(string(work.Status.ManifestStatuses[0].Status.Raw), `"readyReplicas":1`) {
		t.Errorf("status after %d writes: %+v", b.writes(), work.Status)
	}
}

// longStatus reflects a long status.
type longStatus struct{ Interpreter }

func (longStatus) ReflectStatus(*unstructured.Unstructured) (*runtime.RawExtension, error) {
	return &runtime.RawExtension{Raw: []byte(`{"x":"` + strings.Repeat("x", 600<<10) + `"}`)}, nil
}

func TestReconcile_StatusAboveTheLimitIsOmitted(t *testing.T) {
	b := newBench(t, deployment)
	b.runner.rules = longStatus{b.runner.deps.Interpreter}
	b.mustSync()
	obj := b.member.Get(deploymentPath)
	obj.Object["status"] = map[string]any{
		"observedGeneration": int64(1), "replicas": int64(1), "updatedReplicas": int64(1), "availableReplicas": int64(1), "readyReplicas": int64(1),
	}
	b.member.Put(deploymentPath, obj)
	b.observed(deploymentPath)
	b.Clock.Step(200 * time.Millisecond)
	b.mustSync()
	work := b.work()
	if len(work.Status.ManifestStatuses) != 1 || work.Status.ManifestStatuses[0].Status != nil || work.Status.ManifestStatuses[0].Health != "Healthy" {
		t.Errorf("status %.200s", fmt.Sprint(work.Status.ManifestStatuses))
	}
	if c := meta.FindStatusCondition(work.Status.Conditions, execution.ConditionInterpreted); c == nil || !strings.Contains(c.Message, "more than 524288") {
		t.Errorf("condition %+v", c)
	}
}

func TestReconcile_UnhealthyDeploymentIsReportedAfterTheDelay(t *testing.T) {
	b := newBench(t, deployment)
	b.Clock.Step(b.mustSync())
	b.mustSync()
	if work := b.work(); b.writes() != 1 || applied(work) != appliedOK || work.Status.ManifestStatuses[0].Health != "Unhealthy" {
		t.Errorf("status after %d writes: %+v", b.writes(), work.Status)
	}
}

func TestReconcile_FailureMustLast(t *testing.T) {
	b := newBench(t, configMap)
	b.member.Fail(func(r *http.Request) int {
		if r.Method == http.MethodPost {
			return http.StatusInternalServerError
		}
		return 0
	})
	wait, err := b.sync()
	if err == nil || wait != 250*time.Millisecond || b.writes() != 0 || len(b.Events()) != 0 {
		t.Fatalf("waits %s, %v", wait, err)
	}
	b.Clock.Step(wait)
	_, err = b.sync()
	if err == nil || !strings.HasPrefix(applied(b.work()), "False Failed to apply all manifests (0/1): ") {
		t.Errorf("applied: %s, %v", applied(b.work()), err)
	}
	events := b.Events()
	if len(events) != 2 || !strings.HasPrefix(events[0], "Warning SyncFailed Failed to sync work(karmada-es-m1/w) to cluster(m1), err: ") ||
		!strings.HasPrefix(events[1], "Warning SyncFailed Failed to create or update resource(default/a) in member cluster(m1): ") {
		t.Errorf("events: %v", events)
	}
	b.Clock.Step(time.Minute)
	_, _ = b.sync()
	if b.writes() != 1 || len(b.Events()) != 0 {
		t.Error("the same failure is published again")
	}
	b.member.Fail(nil)
	b.Clock.Step(time.Minute)
	b.mustSync()
	if applied(b.work()) != appliedOK {
		t.Errorf("applied: %s", applied(b.work()))
	}
}

func TestReconcile_ShortFailureIsNotReported(t *testing.T) {
	b := newBench(t, configMap)
	b.member.Fail(func(*http.Request) int { return http.StatusInternalServerError })
	if _, err := b.sync(); err == nil {
		t.Fatal("no error")
	}
	b.member.Fail(nil)
	b.Clock.Step(10 * time.Millisecond)
	b.mustSync()
	if got := b.Events(); b.writes() != 1 || len(got) != 1 || !strings.HasPrefix(got[0], "Normal") {
		t.Errorf("%d writes, events %v", b.writes(), got)
	}
}

func TestReconcile_Ownership(t *testing.T) {
	taken := func(change func(*unstructured.Unstructured)) *unstructured.Unstructured {
		obj := decode(t, configMap)
		obj.Object["data"] = map[string]any{"k": "theirs"}
		change(obj)
		return obj
	}
	mark := func(obj *unstructured.Unstructured) {
		obj.SetLabels(map[string]string{workv1alpha2.ManagedByKarmadaLabel: "true"})
	}
	from := func(name string) func(*unstructured.Unstructured) {
		return func(obj *unstructured.Unstructured) {
			mark(obj)
			obj.SetAnnotations(map[string]string{workv1alpha2.WorkNamespaceAnnotation: "karmada-es-m1", workv1alpha2.WorkNameAnnotation: name})
		}
	}
	for _, tc := range []struct {
		name, conflict string
		change         func(*unstructured.Unstructured)
		want           string
	}{
		{"an object that is not managed is not changed", "abort", func(*unstructured.Unstructured) {}, "theirs"},
		{"unless the conflict resolution is overwrite", "overwrite", func(*unstructured.Unstructured) {}, "v"},
		{"a managed object is taken over", "abort", mark, "v"},
		{"an object of this Work is taken over", "abort", from("w"), "v"},
		{"an object of another Work is not changed", "abort", from("other"), "theirs"},
		{"an object of another Work is taken over with overwrite", "overwrite", from("other"), "v"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newBench(t, configMap)
			b.edit(func(w *workv1alpha1.Work) { fill(b.T, w, configMap, tc.conflict) })
			b.member.Put(configMapPath, taken(tc.change))
			_, err := b.sync()
			got, _, _ := unstructured.NestedString(b.member.Get(configMapPath).Object, "data", "k")
			if got != tc.want || (err == nil) != (tc.want == "v") {
				t.Errorf("got %s, %v", got, err)
			}
			if err != nil && !strings.Contains(err.Error(), "resource(kind=ConfigMap, default/a) already exists in the cluster m1 and the work.karmada.io/conflict-resolution strategy value is abort, Karmada will not manage this resource; to take it over, set the annotation \"work.karmada.io/conflict-resolution: overwrite\" on the template, or \"conflictResolution: Overwrite\" in the policy") {
				t.Error(err)
			}
			b.member.Writes()
			_, _ = b.sync()
			for _, w := range b.member.Writes() {
				t.Errorf("a retry wrote: %s", w)
			}
		})
	}
}

func TestReconcile_DriftIsReverted(t *testing.T) {
	b := newBench(t, configMap)
	b.mustSync()
	b.observed(configMapPath)
	obj := b.member.Get(configMapPath)
	obj.Object["data"] = map[string]any{"k": "other"}
	obj.SetLabels(map[string]string{workv1alpha2.ManagedByKarmadaLabel: "true", "mine": "stays"})
	b.member.Put(configMapPath, obj)
	b.observed(configMapPath)
	b.member.Writes()
	b.mustSync()
	obj = b.member.Get(configMapPath)
	if v, _, _ := unstructured.NestedString(obj.Object, "data", "k"); v != "v" || obj.GetLabels()["mine"] != "stays" {
		t.Errorf("in the member: %v", obj.Object)
	}
	if got := b.member.Writes(); !slices.Equal(got, []string{"PUT " + configMapPath}) {
		t.Errorf("writes: %v", got)
	}
}

func TestReconcile_DeletedObjectIsCreatedAgain(t *testing.T) {
	b := newBench(t, configMap)
	b.mustSync()
	b.observed(configMapPath)
	b.member.Remove(configMapPath)
	b.observed(configMapPath)
	b.mustSync()
	if b.member.Get(configMapPath) == nil {
		t.Error("not there")
	}
}

// An object is deleted while nobody observes it: the next list shows that.
func TestReconcile_ObjectDeletedUnobservedIsCreatedAgain(t *testing.T) {
	b := newBench(t, configMap)
	b.mustSync()
	b.observed(configMapPath)
	s := b.state()
	s.objects[0].kind.objects.Stop()
	b.member.Remove(configMapPath)
	b.mustSync()
	if b.member.Get(configMapPath) != nil {
		t.Fatal("created without having been observed")
	}
	s.objects[0].kind.objects.Start(t.Context())
	b.observed(configMapPath)
	b.mustSync()
	if b.member.Get(configMapPath) == nil {
		t.Error("not there")
	}
}

func TestReconcile_RestartWritesNothing(t *testing.T) {
	b := newBench(t, configMap)
	b.mustSync()
	version := b.work().ResourceVersion
	b.member.Writes()
	b.Events()
	fresh := newRunner(t.Context(), b.c, "m1")
	t.Cleanup(fresh.stop)
	b.runner = fresh
	if wait := b.mustSync(); wait <= 0 || wait > execution.SyncTimeout {
		t.Errorf("does not wait until the informer has synced: %s", wait)
	}
	b.observed(configMapPath)
	b.mustSync()
	if got := b.member.Writes(); len(got) != 0 || b.work().ResourceVersion != version || len(b.Events()) != 0 {
		t.Errorf("writes: %v", got)
	}
}

func TestReconcile_Suspended(t *testing.T) {
	b := newBench(t, configMap, func(w *workv1alpha1.Work) { w.Spec.SuspendDispatching = new(true) })
	b.mustSync()
	c := meta.FindStatusCondition(b.work().Status.Conditions, workv1alpha1.WorkDispatching)
	if c == nil || c.Status != metav1.ConditionFalse || c.Reason != "SuspendDispatching" || c.Message != "Work dispatching is in a suspended state." {
		t.Errorf("dispatching: %v", c)
	}
	if got := b.Events(); !slices.Equal(got, []string{"Normal WorkDispatching Work dispatching is in a suspended state."}) {
		t.Errorf("events: %v", got)
	}
	if b.member.Get(configMapPath) != nil {
		t.Error("in the member")
	}
	b.edit(func(w *workv1alpha1.Work) { w.Spec.SuspendDispatching = new(false) })
	b.Clock.Step(time.Second)
	b.mustSync()
	if got := b.Events(); len(got) != 2 || got[1] != "Normal WorkDispatching Work is being dispatched to member clusters." {
		t.Errorf("events: %v", got)
	}
	if b.member.Get(configMapPath) == nil {
		t.Error("not in the member")
	}
}

func TestReconcile_SuspendedReportsADeletedObject(t *testing.T) {
	b := newBench(t, configMap)
	b.mustSync()
	b.observed(configMapPath)
	b.edit(func(w *workv1alpha1.Work) { w.Spec.SuspendDispatching = new(true) })
	b.member.Remove(configMapPath)
	b.observed(configMapPath)
	b.Clock.Step(time.Minute)
	b.mustSync()
	if got := b.work().Status.ManifestStatuses[0].Health; got != "Unknown" {
		t.Errorf("health %s", got)
	}
	if b.member.Get(configMapPath) != nil {
		t.Error("it was created again")
	}
}

func TestReconcile_ClusterNotReady(t *testing.T) {
	b := newBench(t, configMap)
	b.cluster(func(c *clusterv1alpha1.Cluster) { c.Status.Conditions[0].Status = metav1.ConditionFalse })
	b.mustSync()
	if got := b.member.Writes(); len(got) != 0 || applied(b.work()) != "absent" {
		t.Errorf("writes %v, applied %s", got, applied(b.work()))
	}
}

func TestReconcile_ClusterThatIsNotAcceptedIsIgnored(t *testing.T) {
	b := newBench(t, configMap)
	b.cluster(func(c *clusterv1alpha1.Cluster) { c.Spec.SyncMode = clusterv1alpha1.Pull })
	b.mustSync()
	if len(b.member.Writes()) != 0 || b.writes() != 0 {
		t.Error("it was written to")
	}
}

func TestReconcile_ClusterCannotBeOpened(t *testing.T) {
	b := newBench(t, configMap)
	b.opened = errors.New("no secret")
	if _, err := b.sync(); err == nil || b.writes() != 0 {
		t.Errorf("got %v", err)
	}
}

// delete marks the Work as being deleted.
func (b *bench) delete() {
	b.Helper()
	b.Must(b.Stored.Delete(b.Context(), b.work()))
}

func (b *bench) gone() bool {
	err := b.Stored.Get(b.Context(), client.ObjectKey{Namespace: "karmada-es-m1", Name: "w"}, &workv1alpha1.Work{})
	return apierrors.IsNotFound(err)
}

func TestRemove(t *testing.T) {
	for _, tc := range []struct {
		name         string
		prepare      func(*bench)
		gone, object bool
	}{
		{"the object is deleted with the Work", func(*bench) {}, true, false},
		{"an object that was deleted already is no error", func(b *bench) { b.member.Remove(configMapPath) }, true, false},
		{"an object that is no longer managed remains", func(b *bench) {
			obj := b.member.Get(configMapPath)
			obj.SetLabels(nil)
			b.member.Put(configMapPath, obj)
		}, true, true},
		{"an object that was never observed is deleted too", func(b *bench) { b.runner.forget("w") }, true, false},
		{"the object remains with preserveResourcesOnDeletion", func(b *bench) {
			b.edit(func(w *workv1alpha1.Work) { w.Spec.PreserveResourcesOnDeletion = new(true) })
		}, true, true},
		{"it waits for a cluster that is not Ready", func(b *bench) {
			b.cluster(func(c *clusterv1alpha1.Cluster) { c.Status.Conditions[0].Status = metav1.ConditionFalse })
		}, false, true},
		{"unless the cluster is being deleted", func(b *bench) {
			b.cluster(func(c *clusterv1alpha1.Cluster) {
				c.Status.Conditions[0].Status = metav1.ConditionFalse
				c.Finalizers = []string{"f"}
			})
			b.Must(b.Stored.Delete(b.Context(), &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}}))
		}, true, true},
		{"a Work without a cluster is deleted", func(b *bench) {
			b.Must(b.Stored.Delete(b.Context(), &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}}))
		}, true, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newBench(t, configMap)
			b.mustSync()
			tc.prepare(b)
			b.delete()
			b.mustSync()
			if b.gone() != tc.gone || (b.member.Get(configMapPath) != nil) != tc.object {
				t.Errorf("work gone %v, object there %v", b.gone(), b.member.Get(configMapPath) != nil)
			}
			if tc.name == "the object remains with preserveResourcesOnDeletion" {
				if obj := b.member.Get(configMapPath); len(obj.GetLabels())+len(obj.GetAnnotations()) != 0 {
					t.Errorf("left behind: %v %v", obj.GetLabels(), obj.GetAnnotations())
				}
			}
			b.mustSync()
		})
	}
}

func TestRemove_FailureKeepsTheWork(t *testing.T) {
	b := newBench(t, configMap)
	b.mustSync()
	b.delete()
	b.member.Fail(func(r *http.Request) int {
		if r.Method == http.MethodDelete {
			return http.StatusInternalServerError
		}
		return 0
	})
	if _, err := b.sync(); err == nil || b.gone() {
		t.Errorf("gone %v, %v", b.gone(), err)
	}
	b.member.Fail(nil)
	b.mustSync()
	if !b.gone() || b.member.Get(configMapPath) != nil {
		t.Error("not gone")
	}
}

func TestRunner_KindIsObservedAsLongAsItIsUsed(t *testing.T) {
	b := newBench(t, configMap)
	kinds := func() []string {
		var out []string
		for _, k := range b.runner.kinds {
			out = append(out, k.gvk.Kind)
		}
		return out
	}
	want := func(want ...string) {
		t.Helper()
		if got := kinds(); !slices.Equal(got, want) {
			t.Errorf("kinds %v, want %v", got, want)
		}
	}
	b.mustSync()
	want("ConfigMap")
	b.edit(func(w *workv1alpha1.Work) { fill(b.T, w, deployment, "abort") })
	b.mustSync()
	want("Deployment")
	b.runner.forget("w")
	want()
}

func TestRunner_ReconcilesEnqueuedWorks(t *testing.T) {
	b := newBench(t, configMap)
	b.runner.start(2)
	b.runner.add("w")
	accesstest.Eventually(t, func() error {
		if got := applied(b.work()); got != appliedOK {
			return errors.New(got)
		}
		return nil
	})
	// From here on changes in the member enqueue the Work.
	b.observed(configMapPath)
	b.member.Remove(configMapPath)
	accesstest.Eventually(t, func() error {
		if b.member.Get(configMapPath) == nil {
			return fmt.Errorf("not there")
		}
		return nil
	})
}

// With every success recorded, Works get theirs as well, once per change.
func TestReconcile_RecordsEverySuccess(t *testing.T) {
	b := newBench(t, deployment)
	b.c.events.all = true
	b.mustSync()
	obj := b.member.Get(deploymentPath)
	obj.Object["status"] = map[string]any{"observedGeneration": int64(1), "replicas": int64(1), "updatedReplicas": int64(1), "availableReplicas": int64(1), "readyReplicas": int64(1)}
	b.member.Put(deploymentPath, obj)
	b.observed(deploymentPath)
	b.Clock.Step(200 * time.Millisecond)
	b.mustSync()
	want := []string{
		"Normal SyncSucceed Successfully applied resource(default/a) to cluster m1",
		"Normal InterpretHealthSucceed Interpret health of object(Deployment/default/a) as unhealthy.",
		"Normal ReflectStatusSucceed Reflect status for object(Deployment/default/a) succeed.",
		"Normal InterpretHealthSucceed Interpret health of object(Deployment/default/a) as healthy.",
		"Normal ReflectStatusSucceed Reflect status for object(Deployment/default/a) succeed.",
		"Normal WorkDispatching Work is being dispatched to member clusters.",
		"Normal SyncSucceed Sync work(karmada-es-m1/w) to cluster(m1) successful.",
	}
	if diff := cmp.Diff(want, b.Events()); diff != "" {
		t.Error(diff)
	}
	b.mustSync()
	if got := b.Events(); len(got) > 0 {
		t.Errorf("recorded again: %v", got)
	}
}

// The status of a Work that was deleted meanwhile is not written, so nothing is
// published about it.
func TestReport_DeletedWorkHasNoEvents(t *testing.T) {
	b := newBench(t, configMap, func(w *workv1alpha1.Work) { w.Spec.SuspendDispatching = new(true) })
	b.FailOn("status Work ", apierrors.NewNotFound(schema.GroupResource{Resource: "works"}, "w"))
	if wait := b.mustSync(); wait != 0 {
		t.Errorf("requeued after %s", wait)
	}
	if got := b.Events(); len(got) > 0 {
		t.Errorf("published: %v", got)
	}
}
