package binding

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/karmada-toolkit/karmada/internal/events"
	"github.com/karmada-toolkit/karmada/internal/status"
	"github.com/karmada-toolkit/karmada/internal/testenv/memory"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/delivery"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/works"
)

func TestBinding_OneWorkPerCluster(t *testing.T) {
	h := newHarness(t, deployment(), resourceBinding(map[string]int32{"m1": 2, "m2": 1}))
	h.recorder.WithMode(events.Contract)
	h.mustReconcile()
	w := h.work("m1")
	if w.Name != "nginx-687f7fb96f" {
		t.Errorf("name %s", w.Name)
	}
	id := w.Labels[workv1alpha2.WorkPermanentIDLabel]
	if id == "" || w.Labels[workv1alpha2.ResourceBindingPermanentIDLabel] != "id-b" {
		t.Errorf("labels %v", w.Labels)
	}
	wantAnnotations := map[string]string{
		"resourcebinding.karmada.io/namespace": "default", "resourcebinding.karmada.io/name": "nginx-deployment",
		"work.karmada.io/conflict-resolution": "abort",
	}
	if diff := cmp.Diff(wantAnnotations, w.Annotations); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{workv1alpha2.ExecutionControllerFinalizer}, w.Finalizers); diff != "" {
		t.Error(diff)
	}
	if w.Spec.SuspendDispatching == nil || *w.Spec.SuspendDispatching || w.Spec.PreserveResourcesOnDeletion == nil || *w.Spec.PreserveResourcesOnDeletion {
		t.Errorf("spec %+v", w.Spec)
	}
	want := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{
			"namespace": "default", "name": "nginx",
			"labels": map[string]any{
				"app": "nginx", "karmada.io/managed": "true",
				"resourcebinding.karmada.io/permanent-id": "id-b", "work.karmada.io/permanent-id": id,
			},
			"annotations": map[string]any{
				"resourcebinding.karmada.io/namespace": "default", "resourcebinding.karmada.io/name": "nginx-deployment",
				"resourcetemplate.karmada.io/generation": "4", "resourcetemplate.karmada.io/uid": "uid-nginx",
				"work.karmada.io/conflict-resolution": "abort", "work.karmada.io/name": "nginx-687f7fb96f", "work.karmada.io/namespace": "karmada-es-m1",
				"resourcetemplate.karmada.io/managed-annotations": "resourcebinding.karmada.io/name,resourcebinding.karmada.io/namespace,resourcetemplate.karmada.io/generation,resourcetemplate.karmada.io/managed-annotations,resourcetemplate.karmada.io/managed-labels,resourcetemplate.karmada.io/uid,work.karmada.io/conflict-resolution,work.karmada.io/name,work.karmada.io/namespace",
				"resourcetemplate.karmada.io/managed-labels":      "app,karmada.io/managed,resourcebinding.karmada.io/permanent-id,work.karmada.io/permanent-id",
			},
		},
		"spec": map[string]any{
			"replicas": int64(2),
			"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "c", "image": "nginx"}}}},
		},
	}}
	if diff := cmp.Diff(want, manifestOf(t, w)); diff != "" {
		t.Error(diff)
	}
	if replicas, _, _ := unstructured.NestedInt64(manifestOf(t, h.work("m2")).Object, "spec", "replicas"); replicas != 1 {
		t.Errorf("m2 gets %d replicas", replicas)
	}
	if diff := cmp.Diff([]string{
		"Normal SyncWorkSucceed Sync work of ResourceBinding(default/nginx-deployment) successful.",
		"Normal SyncWorkSucceed Sync work of ResourceBinding(default/nginx-deployment) successful.",
	}, h.Events()); diff != "" {
		t.Error(diff)
	}
}

func TestBinding_SecondReconcileWritesNothing(t *testing.T) {
	h := newHarness(t, deployment(), resourceBinding(map[string]int32{"m1": 2, "m2": 1}))
	h.mustReconcile()
	if got := h.Events(); got != nil { // successes are recorded by the controllers that schedule and apply
		t.Errorf("events %q", got)
	}
	h.r.owned.created = status.NewMemory[string, sets.Set[types.NamespacedName]](0) // a restart
	h.Stable(h.mustReconcile)
}

func TestBinding_Moves(t *testing.T) {
	h := newHarness(t, deployment(), resourceBinding(map[string]int32{"m1": 3}))
	h.mustReconcile()
	name := h.work("m1").Name
	h.Writes()
	h.change(func(s *workv1alpha2.ResourceBindingSpec) { s.Clusters = targets(map[string]int32{"m2": 3}) })
	h.mustReconcile()
	if diff := cmp.Diff([]string{"create Work karmada-es-m2/" + name, "delete Work karmada-es-m1/" + name}, slices.Sorted(slices.Values(h.Writes()))); diff != "" {
		t.Error(diff)
	}
}

// Works stay as they are until the scheduler has answered another placement or other replicas, or does not answer in time.
func TestBinding_WaitsForTheScheduler(t *testing.T) {
	b := resourceBinding(map[string]int32{"m1": 3})
	b.Generation, b.Spec.Placement = 2, &policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"m2"}}}
	b.Annotations = map[string]string{policyv1alpha1.AppliedPlacementAnnotation: "{}"}
	h := newHarness(t, deployment(), b)
	now := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	h.r.pending = delivery.NewPending(now)
	if result, err := h.reconcile(); err != nil || result.RequeueAfter != delivery.SchedulerWait || len(h.clustersWithWorks()) > 0 {
		t.Errorf("result %v, error %v, works in %v", result, err, h.clustersWithWorks())
	}
	now.SetTime(now.Now().Add(delivery.SchedulerWait))
	h.mustReconcile()
	if diff := cmp.Diff([]string{"m1"}, h.clustersWithWorks()); diff != "" {
		t.Error(diff)
	}
}

func TestBinding_OnlyWhatDiffersIsPatched(t *testing.T) {
	h := newHarness(t, deployment(), resourceBinding(map[string]int32{"m1": 2, "m2": 1}))
	h.mustReconcile()
	name, id := h.work("m1").Name, h.work("m1").Labels[workv1alpha2.WorkPermanentIDLabel]
	h.Writes()
	h.change(func(s *workv1alpha2.ResourceBindingSpec) { s.Clusters = targets(map[string]int32{"m1": 1, "m2": 1}) })
	h.mustReconcile()
	if diff := cmp.Diff([]string{"patch Work karmada-es-m1/" + name}, h.Writes()); diff != "" {
		t.Error(diff)
	}
	if got := h.work("m1").Labels[workv1alpha2.WorkPermanentIDLabel]; got != id {
		t.Errorf("the id changed from %s to %s", id, got)
	}
}

func TestBinding_WorksOfBindingsThatNeedIt(t *testing.T) {
	b := resourceBinding(nil)
	b.Spec.Clusters = nil
	b.Spec.RequiredBy = []workv1alpha2.BindingSnapshot{
		{Name: "a", Clusters: targets(map[string]int32{"m1": 0})}, {Name: "b", Clusters: targets(map[string]int32{"m1": 0, "m3": 0})},
	}
	h := newHarness(t, deployment(), b)
	h.mustReconcile()
	if diff := cmp.Diff([]string{"m1", "m3"}, h.clustersWithWorks()); diff != "" {
		t.Error(diff)
	}
}

func TestBinding_Evictions(t *testing.T) {
	task := func(mode policyv1alpha1.PurgeMode) []workv1alpha2.GracefulEvictionTask {
		return []workv1alpha2.GracefulEvictionTask{{FromCluster: "m1", PurgeMode: mode, Reason: "Test", Producer: "test"}}
	}
	for name, tc := range map[string]struct {
		mode    policyv1alpha1.PurgeMode
		targets map[string]int32
		want    []string
		requeue bool
	}{
		"gracefully: the old work is kept":            {policyv1alpha1.PurgeModeGracefully, map[string]int32{"m2": 3}, []string{"m1", "m2"}, false},
		"directly: nothing is written before it left": {policyv1alpha1.PurgeModeDirectly, map[string]int32{"m2": 3}, []string{"m1"}, true},
		"directly, but it is a target again":          {policyv1alpha1.PurgeModeDirectly, map[string]int32{"m1": 3}, []string{"m1"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, deployment(), resourceBinding(map[string]int32{"m1": 3}))
			h.mustReconcile()
			h.change(func(s *workv1alpha2.ResourceBindingSpec) {
				s.Clusters = targets(tc.targets)
				s.GracefulEvictionTasks = task(tc.mode)
			})
			result, err := h.reconcile()
			if err != nil {
				t.Fatal(err)
			}
			if got := result.RequeueAfter > 0; got != tc.requeue {
				t.Errorf("requeue: got %v", got)
			}
			// The finalizer keeps a deleted Work there, as for a slow member.
			if diff := cmp.Diff(tc.want, h.clustersWithWorks()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A preserved value that no label can have must not keep the workload out of its new cluster.
func TestBinding_PreservedStateThatIsNoLabelValue(t *testing.T) {
	h := newHarness(t, deployment(), resourceBinding(map[string]int32{"m2": 3}))
	h.r.writer.statefulFailover = true
	h.change(func(s *workv1alpha2.ResourceBindingSpec) {
		s.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{
			FromCluster: "m1", PurgeMode: policyv1alpha1.PurgeModeDirectly, PreservedLabelState: map[string]string{"good": "5", "bad": "a b", "long": strings.Repeat("x", 64)},
		}}
	})
	h.mustReconcile()
	var got metav1.PartialObjectMetadata
	h.Must(json.Unmarshal(h.work("m2").Spec.Workload.Manifests[0].Raw, &got))
	if l := got.Labels; l["good"] != "5" || l["bad"] != "" || l["long"] != "" {
		t.Errorf("the labels are %v", l)
	}
	want := "Warning InjectStateFailed Preserved state is not injected in cluster m2, because it is no value of a label: bad, long."
	if got := h.Events(); !slices.Equal(got, []string{want, want}) { // on the binding and on the template
		t.Errorf("events: %q", got)
	}
	h.mustReconcile()
	if got := h.Events(); len(got) != 0 {
		t.Errorf("recorded again: %q", got)
	}
}

func TestBinding_DeletionRemovesEveryWork(t *testing.T) {
	for name, uncached := range map[string]bool{"as the cache shows them": false, "that the cache does not show yet": true} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, deployment(), resourceBinding(map[string]int32{"m1": 2, "m2": 1}))
			h.mustReconcile()
			if uncached {
				for _, cluster := range []string{"m1", "m2"} {
					w := h.work(cluster)
					delete(w.Labels, workv1alpha2.ResourceBindingPermanentIDLabel)
					h.Must(h.Stored.Update(t.Context(), w))
				}
			}
			b := h.current()
			h.Must(h.Stored.Delete(t.Context(), b))
			h.mustReconcile()
			for _, cluster := range []string{"m1", "m2"} {
				if h.work(cluster).DeletionTimestamp == nil {
					t.Errorf("the work of %s stays", cluster)
				}
			}
			if err := h.Stored.Get(t.Context(), h.key, b); client.IgnoreNotFound(err) != nil || err == nil {
				t.Errorf("the binding stays: %v", err)
			}
		})
	}
}

func TestBinding_TemplateGone(t *testing.T) {
	h := newHarness(t, nil, resourceBinding(map[string]int32{"m1": 1}))
	h.mustReconcile()
	if got := h.Writes(); got != nil {
		t.Errorf("writes %v", got)
	}
}

func TestBinding_OneClusterFailingDoesNotStopOthers(t *testing.T) {
	b := resourceBinding(map[string]int32{"m2": 1})
	b.Spec.Clusters = append([]workv1alpha2.TargetCluster{{Name: "unknown"}}, b.Spec.Clusters...)
	h := newHarness(t, deployment(), b)
	for range 2 {
		if _, err := h.reconcile(); err == nil || !strings.Contains(err.Error(), `cluster "unknown"`) {
			t.Fatalf("got error %v", err)
		}
	}
	if diff := cmp.Diff([]string{"m2"}, h.clustersWithWorks()); diff != "" {
		t.Error(diff)
	}
	got := h.Events()
	if len(got) != 2 || !strings.HasPrefix(got[0], "Warning SyncWorkFailed") || !strings.HasPrefix(got[1], "Warning SyncWorkFailed") {
		t.Errorf("events %q", got)
	}
}

func TestBinding_Suspension(t *testing.T) {
	b := resourceBinding(map[string]int32{"m1": 1, "m2": 1})
	b.Spec.Suspension = &workv1alpha2.Suspension{Suspension: policyv1alpha1.Suspension{
		DispatchingOnClusters: &policyv1alpha1.SuspendClusters{ClusterNames: []string{"m2"}},
	}}
	b.Spec.PreserveResourcesOnDeletion = new(true)
	h := newHarness(t, deployment(), b)
	h.mustReconcile()
	for cluster, want := range map[string]bool{"m1": false, "m2": true} {
		if w := h.work(cluster); *w.Spec.SuspendDispatching != want || !*w.Spec.PreserveResourcesOnDeletion {
			t.Errorf("%s: %+v", cluster, w.Spec)
		}
	}
}

// Nothing is deleted in a cluster to which dispatching is suspended, until it resumes.
func TestBinding_SuspensionDelaysDeletion(t *testing.T) {
	for name, drop := range map[string]func(*workv1alpha2.ResourceBindingSpec){
		"scaled down, or dropped by the policy": func(*workv1alpha2.ResourceBindingSpec) {},
		"evicted before others get it": func(s *workv1alpha2.ResourceBindingSpec) {
			s.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "m2", PurgeMode: policyv1alpha1.PurgeModeDirectly}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, deployment(), resourceBinding(map[string]int32{"m1": 1, "m2": 1}))
			h.mustReconcile()
			h.change(func(s *workv1alpha2.ResourceBindingSpec) {
				s.Suspension = &workv1alpha2.Suspension{Suspension: policyv1alpha1.Suspension{DispatchingOnClusters: &policyv1alpha1.SuspendClusters{ClusterNames: []string{"m2"}}}}
				s.Clusters = []workv1alpha2.TargetCluster{{Name: "m1", Replicas: 2}}
				drop(s)
			})
			h.mustReconcile()
			if diff := cmp.Diff([]string{"m1", "m2"}, h.clustersThatKeepWorks()); diff != "" {
				t.Error(diff)
			}
			if c := h.deliverable(); c == nil || c.Reason != "DeletionSuspended" || !strings.Contains(c.Message, "clusters m2 is suspended") {
				t.Errorf("the condition is %+v", c)
			}
			h.change(func(s *workv1alpha2.ResourceBindingSpec) { s.Suspension = nil })
			h.mustReconcile()
			h.mustReconcile()
			if diff := cmp.Diff([]string{"m1"}, h.clustersThatKeepWorks()); diff != "" {
				t.Errorf("after it resumed: %s", diff)
			}
		})
	}
}

func overridePolicy(value string) *policyv1alpha1.OverridePolicy {
	return &policyv1alpha1.OverridePolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "op"},
		Spec: policyv1alpha1.OverrideSpec{OverrideRules: []policyv1alpha1.RuleWithCluster{{
			TargetCluster: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"m1"}},
			Overriders: policyv1alpha1.Overriders{AnnotationsOverrider: []policyv1alpha1.LabelAnnotationOverrider{{
				Operator: policyv1alpha1.OverriderOpAdd, Value: map[string]string{"where": value},
			}}},
		}}},
	}
}

// What was delivered stays as it is when the policy that wanted it is gone, whatever becomes of the overrides.
func TestBinding_ReleasedObjectsStayAsTheyAre(t *testing.T) {
	op := overridePolicy("here")
	b := resourceBinding(map[string]int32{"m1": 1, "m2": 1})
	h := newHarness(t, deployment(), b, op)
	h.mustReconcile()
	h.Must(h.Stored.Delete(t.Context(), op))
	memory.Change(h.Env, h.key, func(b *workv1alpha2.ResourceBinding) {
		delete(b.Labels, policyv1alpha1.PropagationPolicyPermanentIDLabel)
	})
	h.mustReconcile()
	if got := manifestOf(t, h.work("m1")).GetAnnotations()["where"]; got != "here" {
		t.Errorf("the override was taken back: %q", got)
	}
	// A cluster that is not a target any more loses it.
	h.change(func(s *workv1alpha2.ResourceBindingSpec) { s.Clusters = targets(map[string]int32{"m2": 1}) })
	h.mustReconcile()
	if diff := cmp.Diff([]string{"m2"}, h.clustersThatKeepWorks()); diff != "" {
		t.Error(diff)
	}
}

// The binding of what was released still says how it is delivered: dispatching can resume, and a cluster that leaves leaves its
// replicas to the others, except where an override may have set them.
func TestBinding_ReleasedObjectsFollowTheirBinding(t *testing.T) {
	annotate, scaled := overridePolicy("here"), replacing("m1", "/spec/replicas", "0")
	for name, tc := range map[string]struct {
		override *policyv1alpha1.OverridePolicy
		replicas int64
	}{
		"the override does not set replicas": {annotate, 3}, "the override sets replicas": {scaled, 0},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, deployment(), resourceBinding(map[string]int32{"m1": 1, "m2": 2}), tc.override)
			h.mustReconcile()
			recorded := h.work("m1").Annotations[policyv1alpha1.AppliedOverridesAnnotation]
			h.Must(h.Stored.Delete(t.Context(), tc.override))
			edited := deployment()
			edited.SetGeneration(5)
			edited.SetLabels(map[string]string{"edited": "true"})
			h.setTemplates(edited)
			memory.Change(h.Env, h.key, func(b *workv1alpha2.ResourceBinding) {
				delete(b.Labels, policyv1alpha1.PropagationPolicyPermanentIDLabel)
				b.Spec.Clusters, b.Spec.PreserveResourcesOnDeletion = targets(map[string]int32{"m1": 3}), new(true)
				b.Spec.Suspension = &workv1alpha2.Suspension{Suspension: policyv1alpha1.Suspension{Dispatching: new(true)}}
			})
			h.mustReconcile()
			w := h.work("m1")
			if !*w.Spec.SuspendDispatching || !*w.Spec.PreserveResourcesOnDeletion || w.Annotations[policyv1alpha1.AppliedOverridesAnnotation] != recorded {
				t.Errorf("suspended %t, preserved %t, annotations %v", *w.Spec.SuspendDispatching, *w.Spec.PreserveResourcesOnDeletion, w.Annotations)
			}
			obj := manifestOf(t, w)
			if n, _, _ := unstructured.NestedInt64(obj.Object, "spec", "replicas"); n != tc.replicas || obj.GetLabels()["edited"] != "" ||
				obj.GetAnnotations()[workv1alpha2.ResourceTemplateGenerationAnnotation] != "4" {
				t.Errorf("%d replicas, want %d, in %v", n, tc.replicas, obj.Object)
			}
			h.Stable(h.mustReconcile)
		})
	}
}

func TestBinding_OverridesAreAppliedRecordedAndTakenBack(t *testing.T) {
	op := overridePolicy("here")
	h := newHarness(t, deployment(), resourceBinding(map[string]int32{"m1": 1, "m2": 1}), op)
	h.mustReconcile()
	w := h.work("m1")
	if got := manifestOf(t, w).GetAnnotations()["where"]; got != "here" {
		t.Errorf("got %q", got)
	}
	if got := w.Annotations[policyv1alpha1.AppliedOverridesAnnotation]; !strings.Contains(got, `"policyName":"op"`) {
		t.Errorf("recorded %q", got)
	}
	if got := h.work("m2").Annotations[policyv1alpha1.AppliedOverridesAnnotation]; got != "" {
		t.Errorf("m2 records %q", got)
	}
	if requests := h.mapper().overridden(t.Context(), op); len(requests) != 1 || requests[0].NamespacedName != h.key {
		t.Errorf("the policy wakes %v", requests)
	}
	h.Must(h.Stored.Delete(t.Context(), op))
	h.mustReconcile()
	w = h.work("m1")
	if _, ok := manifestOf(t, w).GetAnnotations()["where"]; ok {
		t.Error("the manifest keeps the annotation")
	}
	if _, ok := w.Annotations[policyv1alpha1.AppliedOverridesAnnotation]; ok {
		t.Error("the work keeps the record")
	}
}

func TestBinding_FailingOverrideIsReported(t *testing.T) {
	op := overridePolicy("")
	op.Spec.OverrideRules[0].Overriders = policyv1alpha1.Overriders{
		Plaintext: []policyv1alpha1.PlaintextOverrider{{Path: "/spec/none/here", Operator: policyv1alpha1.OverriderOpRemove}},
	}
	h := newHarness(t, deployment(), resourceBinding(map[string]int32{"m1": 1, "m2": 1}), op)
	if _, err := h.reconcile(); err == nil {
		t.Error("no error")
	}
	if diff := cmp.Diff([]string{"m2"}, h.clustersWithWorks()); diff != "" {
		t.Error(diff)
	}
	want := "Warning ApplyOverridePolicyFailed Apply override policy(default/op) for cluster(m1) failed."
	if got := h.Events(); !slices.Contains(got, want) {
		t.Errorf("events %q", got)
	}
}

func TestBinding_ForeignWorkIsNotTaken(t *testing.T) {
	h := newHarness(t, deployment(), resourceBinding(map[string]int32{"m1": 1}))
	h.mustReconcile()
	w := h.work("m1")
	w.Annotations[workv1alpha2.ResourceBindingNameAnnotation] = "other"
	delete(w.Labels, workv1alpha2.ResourceBindingPermanentIDLabel)
	h.Must(h.Stored.Update(t.Context(), w))
	if _, err := h.reconcile(); err == nil || !strings.Contains(err.Error(), works.ErrForeign.Error()) {
		t.Errorf("got error %v", err)
	}
}

func TestBinding_ClusterScope(t *testing.T) {
	role := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
		"metadata": map[string]any{"name": "system:foo:Bar", "uid": "uid-role"},
	}}
	b := &workv1alpha2.ClusterResourceBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "system.foo.bar-clusterrole", Labels: map[string]string{workv1alpha2.ClusterResourceBindingPermanentIDLabel: "id-b"}},
		Spec: workv1alpha2.ResourceBindingSpec{
			Resource: workv1alpha2.ObjectReference{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "system:foo:Bar"},
			Clusters: targets(map[string]int32{"m1": 0}), ConflictResolution: policyv1alpha1.ConflictOverwrite,
		},
	}
	h := newHarness(t, role, b)
	h.recorder.WithMode(events.Contract)
	h.mustReconcile()
	w := h.work("m1")
	if w.Name != "system.foo.bar-5964d7bd5d" || w.Annotations[workv1alpha2.ClusterResourceBindingAnnotation] != b.Name ||
		w.Annotations[workv1alpha2.ResourceConflictResolutionAnnotation] != "overwrite" {
		t.Errorf("got %s, %v", w.Name, w.Annotations)
	}
	obj := manifestOf(t, w)
	if obj.GetLabels()[workv1alpha2.ClusterResourceBindingPermanentIDLabel] != "id-b" || obj.GetAnnotations()[workv1alpha2.ResourceTemplateGenerationAnnotation] != "" {
		t.Errorf("manifest %v %v", obj.GetLabels(), obj.GetAnnotations())
	}
	if diff := cmp.Diff([]string{
		"Normal SyncWorkSucceed Sync work of ClusterResourceBinding(system.foo.bar-clusterrole) successful.",
		"Normal SyncWorkSucceed Sync work of ClusterResourceBinding(system.foo.bar-clusterrole) successful.",
	}, h.Events()); diff != "" {
		t.Error(diff)
	}
}

func TestTargeting(t *testing.T) {
	b := resourceBinding(map[string]int32{"m1": 1})
	b.Spec.RequiredBy = []workv1alpha2.BindingSnapshot{{Name: "a", Clusters: targets(map[string]int32{"m2": 0})}}
	h := newHarness(t, deployment(), b)
	for cluster, want := range map[string]int{"m1": 1, "m2": 1, "m3": 0} {
		got := h.mapper().targeting(t.Context(), &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: cluster}})
		if len(got) != want {
			t.Errorf("%s wakes %v", cluster, got)
		}
	}
}

func TestReshaped(t *testing.T) {
	cluster := func(change func(*clusterv1alpha1.Cluster)) *clusterv1alpha1.Cluster {
		c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1", Labels: map[string]string{"a": "b"}}}
		change(c)
		return c
	}
	nothing := func(*clusterv1alpha1.Cluster) {}
	for name, tc := range map[string]struct {
		change func(*clusterv1alpha1.Cluster)
		want   bool
	}{
		"a heartbeat": {func(c *clusterv1alpha1.Cluster) { c.Status.KubernetesVersion = "v1" }, false},
		"a taint":     {func(c *clusterv1alpha1.Cluster) { c.Spec.Taints = []corev1.Taint{{Key: "x"}} }, false},
		"a label":     {func(c *clusterv1alpha1.Cluster) { c.Labels = nil }, true},
		"its region":  {func(c *clusterv1alpha1.Cluster) { c.Spec.Region = "r" }, true},
		"its zones":   {func(c *clusterv1alpha1.Cluster) { c.Spec.Zones = []string{"z"} }, true},
	} {
		t.Run(name, func(t *testing.T) {
			got := selectorsChanged().Update(event.UpdateEvent{ObjectOld: cluster(nothing), ObjectNew: cluster(tc.change)})
			if got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
