package detector

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/karmada-toolkit/karmada/internal/build"
	"github.com/karmada-toolkit/karmada/internal/gates"
	"github.com/karmada-toolkit/karmada/internal/status"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/policy"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

func one(obj *unstructured.Unstructured) []*unstructured.Unstructured {
	return []*unstructured.Unstructured{obj}
}

func TestTemplate_ClaimedAndBound(t *testing.T) {
	h := newHarness(t, nil, one(deployment("nginx", 3)), pp("p", func(s *policyv1alpha1.PropagationSpec) {
		s.PropagateDeps = true
		s.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"m1"}}
		s.Suspension = &policyv1alpha1.Suspension{Dispatching: new(true)}
	}))
	h.mustReconcile(keyFor("nginx"))
	if diff := cmp.Diff([]string{"claim", "create ResourceBinding default/nginx-deployment"}, h.wrote()); diff != "" {
		t.Errorf("writes: %s", diff)
	}
	if diff := cmp.Diff([]string{"Normal ApplyPolicySucceed Apply policy(default/p) succeed"}, h.Events()); diff != "" {
		t.Errorf("events: %s", diff)
	}
	obj := h.observed("nginx")
	want := map[string]string{"app": "nginx", policyv1alpha1.PropagationPolicyPermanentIDLabel: "id-p"}
	if diff := cmp.Diff(want, obj.GetLabels()); diff != "" {
		t.Error(diff)
	}
	b := h.binding("nginx-deployment")
	if b.Labels[workv1alpha2.ResourceBindingPermanentIDLabel] == "" || b.Labels[policyv1alpha1.PropagationPolicyPermanentIDLabel] != "id-p" {
		t.Errorf("labels %v", b.Labels)
	}
	if diff := cmp.Diff([]string{workv1alpha2.BindingControllerFinalizer}, b.Finalizers); diff != "" {
		t.Error(diff)
	}
	if owner := metav1.GetControllerOf(b); owner == nil || owner.UID != "uid-nginx" || !*owner.BlockOwnerDeletion {
		t.Errorf("owner %+v", owner)
	}
	wantSpec := workv1alpha2.ResourceBindingSpec{
		Resource: workv1alpha2.ObjectReference{
			APIVersion: "apps/v1", Kind: "Deployment", Namespace: "default", Name: "nginx", UID: "uid-nginx", ResourceVersion: "10",
		},
		Replicas: 3, PropagateDeps: true, SchedulerName: "default-scheduler", ConflictResolution: policyv1alpha1.ConflictAbort,
		Placement:  &policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"m1"}}},
		Suspension: &workv1alpha2.Suspension{Suspension: policyv1alpha1.Suspension{Dispatching: new(true)}},
	}
	if diff := cmp.Diff(wantSpec, b.Spec); diff != "" {
		t.Error(diff)
	}
}

func TestTemplate_SecondReconcileWritesNothing(t *testing.T) {
	h := newHarness(t, nil, one(deployment("nginx", 3)), pp("p", nil))
	h.mustReconcile(keyFor("nginx"))
	h.stable()
}

func TestTemplate_MemoryBehindItsOwnWriteWritesNothing(t *testing.T) {
	h := newHarness(t, nil, one(deployment("nginx", 3)), pp("p", nil))
	h.mustReconcile(keyFor("nginx"))
	h.det.templates.bindings.client = interceptor.NewClient(h.Client, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if _, ok := obj.(*workv1alpha2.ResourceBinding); ok {
				return apierrors.NewNotFound(schema.GroupResource{Resource: "resourcebindings"}, key.Name)
			}
			return c.Get(ctx, key, obj, opts...)
		},
	})
	h.stable()
}

func TestTemplate_RestartWritesNothing(t *testing.T) {
	h := newHarness(t, nil, one(deployment("nginx", 3)), pp("p", nil))
	h.mustReconcile(keyFor("nginx"))
	h.edit("nginx", func(obj *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(obj.Object, int64(3), "status", "replicas")
	})
	h.det.templates.bindings.records = status.NewMemory[objectKey, propagated](0)
	h.stable()
}

func TestTemplate_VersionInTheBindingFollowsContentOnly(t *testing.T) {
	h := newHarness(t, nil, one(deployment("nginx", 3)), pp("p", nil))
	h.mustReconcile(keyFor("nginx"))
	for _, tc := range []struct {
		what, want string
		change     func(*unstructured.Unstructured)
	}{
		{"status", "10", func(obj *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(obj.Object, int64(3), "status", "replicas")
		}},
		{"an annotation", "12", func(obj *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(obj.Object, "b", "metadata", "annotations", "a")
		}},
		{"replicas", "13", func(obj *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(obj.Object, int64(5), "spec", "replicas")
		}},
	} {
		h.edit("nginx", tc.change)
		h.mustReconcile(keyFor("nginx"))
		if got := h.binding("nginx-deployment").Spec.Resource.ResourceVersion; got != tc.want {
			t.Errorf("after a change of %s: got %s, want %s", tc.what, got, tc.want)
		}
	}
	if got := h.binding("nginx-deployment").Spec.Replicas; got != 5 {
		t.Errorf("got %d replicas", got)
	}
}

func TestTemplate_OthersFieldsInTheBindingStay(t *testing.T) {
	h := newHarness(t, nil, one(deployment("nginx", 3)), pp("p", nil))
	h.mustReconcile(keyFor("nginx"))
	b := h.binding("nginx-deployment")
	b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "m1", Replicas: 3}}
	b.Spec.RequiredBy = []workv1alpha2.BindingSnapshot{{Name: "x"}}
	b.Spec.Suspension = &workv1alpha2.Suspension{Scheduling: new(true)}
	b.Finalizers = append(b.Finalizers, "other/finalizer")
	b.Annotations["other"] = "x"
	h.Must(h.Stored.Update(t.Context(), b))
	h.edit("nginx", func(obj *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(obj.Object, int64(4), "spec", "replicas")
	})
	h.mustReconcile(keyFor("nginx"))
	got := h.binding("nginx-deployment")
	want := b.DeepCopy()
	want.ResourceVersion = got.ResourceVersion
	want.Spec.Replicas = 4
	want.Spec.Resource.ResourceVersion = "11"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestTemplate_Choice(t *testing.T) {
	claimedByCPP := deployment("nginx", 1)
	claimedByCPP.SetLabels(map[string]string{policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel: "id-c"})
	claimedByCPP.SetAnnotations(map[string]string{policyv1alpha1.ClusterPropagationPolicyAnnotation: "c"})
	taken := deployment("nginx", 1)
	taken.SetLabels(map[string]string{workv1alpha2.ResourceTemplateClaimedByLabel: "MultiClusterService"})
	high := func(s *policyv1alpha1.PropagationSpec) { s.Priority = ptr.To[int32](100) }
	for name, tc := range map[string]struct {
		obj     *unstructured.Unstructured
		pp, cpp func(*policyv1alpha1.PropagationSpec)
		want    string
	}{
		"a policy beats a cluster policy of higher priority": {deployment("nginx", 1), nil, high, "pp"},
		"a claim stays, whatever else matches":               {claimedByCPP, high, nil, "cpp"},
		"what another controller owns is left alone":         {taken, nil, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, nil, one(tc.obj), pp("p", tc.pp), cpp("c", tc.cpp))
			h.mustReconcile(keyFor("nginx"))
			if tc.want == "" {
				h.noBinding("nginx-deployment")
				return
			}
			annotations := h.binding("nginx-deployment").Annotations
			got := "pp"
			if annotations[policyv1alpha1.ClusterPropagationPolicyAnnotation] != "" {
				got = "cpp"
			}
			if got != tc.want {
				t.Errorf("got %v", annotations)
			}
		})
	}
}

func TestTemplate_WaitsForAPolicy(t *testing.T) {
	h := newHarness(t, nil, []*unstructured.Unstructured{deployment("nginx", 1), deployment("other", 1)})
	h.mustReconcile(keyFor("nginx"))
	h.mustReconcile(keyFor("other"))
	h.noBinding("nginx-deployment")
	p := pp("p", func(s *policyv1alpha1.PropagationSpec) { s.ResourceSelectors[0].Name = "nginx" })
	h.Must(h.Stored.Create(t.Context(), p))
	h.Must(h.reconcilePolicy(p))
	if diff := cmp.Diff([]templateKey{keyFor("nginx")}, h.queued(), cmp.AllowUnexported(templateKey{}, objectKey{})); diff != "" {
		t.Fatal(diff)
	}
	h.mustReconcile(keyFor("nginx"))
	h.binding("nginx-deployment")
	if got := h.det.templates.waiting.candidates(p); got != nil {
		t.Errorf("still waiting: %v", got)
	}
}

func TestTemplate_WaitsForDependentOverrides(t *testing.T) {
	h := newHarness(t, nil, one(deployment("nginx", 1)), pp("p", func(s *policyv1alpha1.PropagationSpec) { s.DependentOverrides = []string{"op"} }))
	if err := h.reconcile(keyFor("nginx")); !errors.Is(err, errDependentOverrides) {
		t.Fatalf("got error %v", err)
	}
	if got := h.wrote(); got != nil {
		t.Errorf("writes %v", got)
	}
	op := &policyv1alpha1.OverridePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "op"}}
	h.Must(h.Stored.Create(t.Context(), op))
	if got := h.policies(scope.NamespacedPolicy()).dependants(t.Context(), op); len(got) != 1 || got[0].Name != "p" {
		t.Errorf("the override policy wakes %v", got)
	}
	h.mustReconcile(keyFor("nginx"))
	h.binding("nginx-deployment")
}

func TestTemplate_PolicyIsGone(t *testing.T) {
	h := newHarness(t, nil, one(deployment("nginx", 1)), pp("p", nil))
	h.mustReconcile(keyFor("nginx"))
	p := pp("p", nil)
	h.Refresh(p)
	p.Finalizers = nil
	h.Must(h.Stored.Update(t.Context(), p))
	h.Must(h.Stored.Delete(t.Context(), p))
	h.mustReconcile(keyFor("nginx"))
	if got := h.observed("nginx").GetLabels(); got[policyv1alpha1.PropagationPolicyPermanentIDLabel] != "" {
		t.Errorf("labels of the template: %v", got)
	}
	b := h.binding("nginx-deployment")
	if b.Labels[policyv1alpha1.PropagationPolicyPermanentIDLabel] != "" || b.Spec.Placement == nil {
		t.Errorf("binding: %v, placement %v", b.Labels, b.Spec.Placement)
	}
}

// A policy that is being deleted is no failure: its templates wait for the release.
func TestTemplate_PolicyIsBeingDeleted(t *testing.T) {
	h := newHarness(t, nil, one(deployment("nginx", 1)), pp("p", nil))
	h.mustReconcile(keyFor("nginx"))
	p := pp("p", nil)
	h.Refresh(p)
	p.Finalizers = append(p.Finalizers, "example.com/keeps-it")
	h.Must(h.Stored.Update(t.Context(), p))
	h.Must(h.Stored.Delete(t.Context(), p))
	h.mustReconcile(keyFor("nginx"))
	if got := h.later[templateKey{objectKey: keyFor("nginx").objectKey, byPolicy: true}]; got != policyDeletedRetry {
		t.Errorf("reconciled again after %v", got)
	}
}

func TestTemplate_BindingOfAnEarlierObjectIsAnError(t *testing.T) {
	h := newHarness(t, nil, one(deployment("nginx", 1)), pp("p", nil))
	h.mustReconcile(keyFor("nginx"))
	h.Events()
	b := h.binding("nginx-deployment")
	b.OwnerReferences[0].UID = types.UID("uid-earlier")
	h.Must(h.Stored.Update(t.Context(), b))
	for range 2 {
		if err := h.reconcile(keyFor("nginx")); err == nil || !strings.Contains(err.Error(), "owner reference UID") {
			t.Fatalf("got error %v", err)
		}
	}
	if got := h.Events(); len(got) != 1 || !strings.HasPrefix(got[0], "Warning ApplyPolicyFailed Apply policy(default/p) failed: ") {
		t.Errorf("events %v", got)
	}
}

func TestTemplate_NameTakenByAnotherGroupGetsASuffix(t *testing.T) {
	other := &workv1alpha2.ResourceBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "nginx-deployment"},
		Spec:       workv1alpha2.ResourceBindingSpec{Resource: workv1alpha2.ObjectReference{APIVersion: "example.io/v1", Kind: "Deployment", Name: "nginx"}},
	}
	h := newHarness(t, nil, one(deployment("nginx", 1)), pp("p", nil), other)
	h.mustReconcile(keyFor("nginx"))
	list := &workv1alpha2.ResourceBindingList{}
	h.Must(h.Stored.List(t.Context(), list))
	if len(list.Items) != 2 || !strings.HasPrefix(list.Items[1].Name, "nginx-deployment-") {
		t.Errorf("got %d bindings", len(list.Items))
	}
	h.stable()
}

func TestTemplate_SchedulePriority(t *testing.T) {
	class := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": map[string]any{"name": "high"}, "value": int64(1000),
	}}
	named := func(name string) func(*policyv1alpha1.PropagationSpec) {
		return func(s *policyv1alpha1.PropagationSpec) {
			s.SchedulePriority = &policyv1alpha1.SchedulePriority{
				PriorityClassSource: policyv1alpha1.KubePriorityClass, PriorityClassName: name,
			}
		}
	}
	h := newHarness(t, gates.New(gates.PriorityBasedScheduling), []*unstructured.Unstructured{deployment("nginx", 1), class}, pp("p", named("high")))
	h.mustReconcile(keyFor("nginx"))
	if got := h.binding("nginx-deployment").Spec.SchedulePriority; got == nil || got.Priority != 1000 {
		t.Errorf("got %+v", got)
	}
	h = newHarness(t, gates.New(gates.PriorityBasedScheduling), one(deployment("nginx", 1)), pp("p", named("none")))
	if err := h.reconcile(keyFor("nginx")); err == nil {
		t.Error("a missing priority class is not an error")
	}
}

// TestTemplate_LimitsAreForClusterPolicies checks that a policy of a namespace does not decide where a quota of the
// administrator is, whichever policy was there first, and that it cannot take it back.
func TestTemplate_LimitsAreForClusterPolicies(t *testing.T) {
	quotas := func(s *policyv1alpha1.PropagationSpec) {
		s.ResourceSelectors = []policyv1alpha1.ResourceSelector{{APIVersion: "v1", Kind: "ResourceQuota", Namespace: "default", Name: "limits"}}
		s.Priority, s.Preemption = ptr.To[int32](100), policyv1alpha1.PreemptAlways
	}
	quota := build.Object("v1", "ResourceQuota", "default", "limits")
	key := templateKey{objectKey: keyOf(quota)}
	h := newHarness(t, preemption(true), one(quota), pp("p", quotas))
	holder := func() string {
		t.Helper()
		obj, err := h.cluster.Store.GetLive(t.Context(), quota.GroupVersionKind(), "default", "limits")
		if err != nil {
			t.Fatal(err)
		}
		h.until(func() bool {
			cached := h.cluster.Store.Cached(quota.GroupVersionKind(), "default", "limits")
			return cached != nil && equality.Semantic.DeepEqual(cached.Object, obj.Object)
		})
		claim, _ := policy.Of(obj)
		return claim.Describe()
	}
	step := func(want string) {
		t.Helper()
		if _, err := h.det.templates.Reconcile(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		if got := holder(); got != want {
			t.Fatalf("held by %s, want %s", got, want)
		}
		binding := h.binding("limits-resourcequota")
		if claim, _ := policy.Of(binding); claim.Describe() != want {
			t.Fatalf("the binding is held by %s, want %s", claim.Describe(), want)
		}
	}
	step(`PropagationPolicy "default/p"`)
	cluster := cpp("c", quotas)
	h.Must(h.Stored.Create(t.Context(), cluster))
	if _, err := h.det.templates.Reconcile(t.Context(), key); err != nil { // releases it
		t.Fatal(err)
	}
	holder()
	step(`ClusterPropagationPolicy "c"`)
	later := pp("a", quotas)
	h.Must(h.Stored.Create(t.Context(), later))
	h.Must(h.reconcilePolicy(later))
	step(`ClusterPropagationPolicy "c"`)
}

// What an earlier version propagated of the control plane itself leaves the members again.
func TestTemplate_OwnObjectsAreReleased(t *testing.T) {
	h := newHarness(t, nil, one(deployment("nginx", 1)), pp("p", nil))
	h.mustReconcile(keyFor("nginx"))
	h.observed("nginx")
	h.edit("nginx", func(obj *unstructured.Unstructured) {
		labels := obj.GetLabels()
		labels[workv1alpha2.SystemLabel] = workv1alpha2.SystemLabelValue
		obj.SetLabels(labels)
	})
	h.mustReconcile(keyFor("nginx"))
	h.observed("nginx")
	if _, claimed := policy.Of(h.cluster.Store.Cached(build.Deployment("nginx", 1).GroupVersionKind(), "default", "nginx")); claimed {
		t.Error("it is still claimed")
	}
	if h.binding("nginx-deployment").DeletionTimestamp == nil {
		t.Error("its binding stays")
	}
	h.Events()
	late := h.late(pp("q", nil))
	h.Must(h.reconcilePolicy(late))
	want := []string{`Warning OwnObjectNotPropagated Deployment "default/nginx" belongs to the control plane and is not propagated: it has the label karmada.io/system`}
	if diff := cmp.Diff(want, h.Events()); diff != "" {
		t.Error(diff)
	}
}
