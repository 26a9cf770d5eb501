package dependencies

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgotesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/karmada-toolkit/karmada/internal/build"
	"github.com/karmada-toolkit/karmada/internal/events"
	"github.com/karmada-toolkit/karmada/internal/testenv/memory"
	configv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/config/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/delivery"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/env"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/templates"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/templates/templatestest"
	"github.com/karmada-toolkit/karmada/pkg/domain/dependency"
	"github.com/karmada-toolkit/karmada/pkg/domain/interpreter"
)

// harness runs the reconciler by hand on a control plane in memory.
type harness struct {
	*memory.Env
	cluster *templatestest.Cluster
	r       *reconciler
}

func newHarness(t *testing.T, objs []*unstructured.Unstructured, stored ...client.Object) *harness {
	t.Helper()
	h := &harness{Env: memory.New(t, stored...), cluster: templatestest.New(t, objs)}
	h.Index(&workv1alpha2.ResourceBinding{}, followsIndex, follows)
	h.Index(&workv1alpha2.ResourceBinding{}, dependsIndex, depends)
	h.r = newReconciler(
		&env.Env{Client: h.Client, Live: h.Client, Store: h.cluster.Store, Interpreter: interpreter.New(), Clock: clock.RealClock{}}, events.New(h.Recorder),
	)
	return h
}

func (h *harness) reconcile(name string) {
	h.Helper()
	h.MustReconcile(h.r, memory.Key("default", name))
}

func (h *harness) binding(name string) *workv1alpha2.ResourceBinding {
	h.Helper()
	return memory.Get[*workv1alpha2.ResourceBinding](h.Env, memory.Key("default", name))
}

func (h *harness) change(name string, change func(*workv1alpha2.ResourceBinding)) {
	h.Helper()
	memory.Change(h.Env, memory.Key("default", name), change)
}

func configMap(name string) *unstructured.Unstructured {
	obj := build.Object("v1", "ConfigMap", "default", name)
	obj.SetResourceVersion("5")
	obj.Object["data"] = map[string]any{"a": "b"}
	return obj
}

// deployment refers to config maps.
func deployment(name string, configMaps ...string) *unstructured.Unstructured {
	var volumes []any
	for _, cm := range configMaps {
		volumes = append(volumes, map[string]any{"name": cm, "configMap": map[string]any{"name": cm}})
	}
	obj := build.Object("apps/v1", "Deployment", "default", name)
	obj.Object["spec"] = map[string]any{"template": map[string]any{"spec": map[string]any{
		"containers": []any{map[string]any{"name": "c", "image": "i"}}, "volumes": volumes,
	}}}
	return obj
}

func bindingOf(template string, clusters ...string) *workv1alpha2.ResourceBinding {
	b := &workv1alpha2.ResourceBinding{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: template + "-deployment", UID: types.UID("uid-binding-" + template),
			Labels: map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: "id-" + template, policyv1alpha1.PropagationPolicyPermanentIDLabel: "id-policy"},
		},
		Spec: workv1alpha2.ResourceBindingSpec{
			Resource:      workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "default", Name: template},
			PropagateDeps: true, Placement: &policyv1alpha1.Placement{},
		},
	}
	for _, name := range clusters {
		b.Spec.Clusters = append(b.Spec.Clusters, workv1alpha2.TargetCluster{Name: name, Replicas: 1})
	}
	return b
}

func TestReconcile_AttachesWhatTheTemplateRefersTo(t *testing.T) {
	h := newHarness(t, []*unstructured.Unstructured{deployment("nginx", "conf", "missing"), configMap("conf")}, bindingOf("nginx", "m1", "m2"))
	h.reconcile("nginx-deployment")
	b := h.binding("nginx-deployment")
	if !dependency.Held(b) {
		t.Errorf("finalizers %v", b.Finalizers)
	}
	var got []string
	for _, dep := range recorded(b) {
		got = append(got, dep.Kind+" "+dep.Name)
	}
	if diff := cmp.Diff([]string{"ConfigMap conf", "ConfigMap missing"}, got); diff != "" {
		t.Error(diff)
	}
	attached := h.binding("conf-configmap")
	if id := attached.Labels[workv1alpha2.ResourceBindingPermanentIDLabel]; id == "" {
		t.Error("no permanent id")
	}
	if got := attached.Labels["resourcebinding.karmada.io/depended-by-5bdc5c4dcf"]; got != "id-nginx" {
		t.Errorf("labels %v", attached.Labels)
	}
	if diff := cmp.Diff([]string{workv1alpha2.BindingControllerFinalizer}, attached.Finalizers); diff != "" {
		t.Error(diff)
	}
	if owner := metav1.GetControllerOf(attached); owner == nil || owner.UID != "uid-conf" {
		t.Errorf("owner %+v", owner)
	}
	want := workv1alpha2.ResourceBindingSpec{
		Resource: workv1alpha2.ObjectReference{
			APIVersion: "v1", Kind: "ConfigMap", Namespace: "default", Name: "conf", UID: "uid-conf", ResourceVersion: "5",
		},
		RequiredBy: []workv1alpha2.BindingSnapshot{{
			Namespace: "default", Name: "nginx-deployment",
			Clusters: []workv1alpha2.TargetCluster{{Name: "m1", Replicas: 1}, {Name: "m2", Replicas: 1}},
		}},
		ConflictResolution: policyv1alpha1.ConflictAbort, PreserveResourcesOnDeletion: new(false),
	}
	if diff := cmp.Diff(want, attached.Spec); diff != "" {
		t.Error(diff)
	}
	if got := h.Events(); len(got) != 2 {
		t.Errorf("events %q", got)
	}
	h.Stable(func() { h.reconcile("nginx-deployment") })
}

// An attached binding that is deleted by hand is created again, and one that no longer
// follows does so again.
func TestReconcile_RestoresWhatFollows(t *testing.T) {
	h := newHarness(t, []*unstructured.Unstructured{deployment("nginx", "conf"), configMap("conf")}, bindingOf("nginx", "m1"))
	h.reconcile("nginx-deployment")
	good := h.binding("conf-configmap")
	for name, change := range map[string]func(*workv1alpha2.ResourceBinding){
		"references": func(b *workv1alpha2.ResourceBinding) { b.Spec.RequiredBy, b.Generation = nil, b.Generation+1 },
		"labels":     func(b *workv1alpha2.ResourceBinding) { b.Labels = nil },
	} {
		changed := good.DeepCopy()
		change(changed)
		if !detached().Update(event.UpdateEvent{ObjectOld: good, ObjectNew: changed}) {
			t.Errorf("without its %s it is not passed", name)
		}
		if detached().Update(event.UpdateEvent{ObjectOld: changed, ObjectNew: good}) {
			t.Errorf("with its %s it is passed", name)
		}
	}
	h.change("conf-configmap", func(b *workv1alpha2.ResourceBinding) { b.Finalizers = nil })
	h.Must(h.Stored.Delete(t.Context(), good))
	if !detached().Delete(event.DeleteEvent{Object: good}) {
		t.Error("a deletion is not passed")
	}
	for _, req := range referrersOf(t.Context(), good) {
		h.reconcile(req.Name)
	}
	if diff := cmp.Diff(good.Spec, h.binding("conf-configmap").Spec); diff != "" {
		t.Error(diff)
	}
}

func TestReconcile_FollowsTheClusters(t *testing.T) {
	h := newHarness(t, []*unstructured.Unstructured{deployment("nginx", "conf"), configMap("conf")}, bindingOf("nginx", "m1"))
	h.reconcile("nginx-deployment")
	h.change("nginx-deployment", func(b *workv1alpha2.ResourceBinding) {
		b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "m2"}}
		b.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{
			{FromCluster: "m1", PurgeMode: policyv1alpha1.PurgeModeGracefully, Reason: "X", Producer: "x"},
			{FromCluster: "m3", PurgeMode: policyv1alpha1.PurgeModeDirectly, Reason: "X", Producer: "x"},
		}
	})
	h.reconcile("nginx-deployment")
	want := []workv1alpha2.TargetCluster{{Name: "m2"}, {Name: "m1"}}
	if diff := cmp.Diff(want, h.binding("conf-configmap").Spec.RequiredBy[0].Clusters); diff != "" {
		t.Error(diff)
	}
}

// Dependencies do not follow into clusters that their referrer is about to leave.
func TestReconcile_WaitsForTheScheduler(t *testing.T) {
	leaving := bindingOf("nginx", "m1")
	leaving.Generation, leaving.Spec.Placement.ClusterAffinity = 2, &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"m2"}}
	leaving.Annotations = map[string]string{policyv1alpha1.AppliedPlacementAnnotation: "{}"}
	h := newHarness(t, []*unstructured.Unstructured{deployment("nginx", "conf"), configMap("conf")}, leaving)
	now := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	h.r.pending = delivery.NewPending(now)
	h.reconcile("nginx-deployment")
	if list := memory.List[*workv1alpha2.ResourceBindingList](h.Env); len(list.Items) != 1 {
		t.Fatalf("%d bindings", len(list.Items))
	}
	now.SetTime(now.Now().Add(delivery.SchedulerWait))
	h.reconcile("nginx-deployment")
	if got := h.binding("conf-configmap").Spec.RequiredBy; len(got) != 1 {
		t.Errorf("when nothing answers: %+v", got)
	}
	answered := leaving.DeepCopy() // with the same targets
	answered.Annotations[policyv1alpha1.AppliedPlacementAnnotation] = `{"clusterAffinity":{"clusterNames":["m2"]}}`
	for now, want := range map[*workv1alpha2.ResourceBinding]bool{leaving: false, answered: true} {
		if got := propagating().Update(event.UpdateEvent{ObjectOld: leaving, ObjectNew: now}); got != want {
			t.Errorf("looked at %t, want %t: %v", got, want, now.Annotations)
		}
	}
}

func TestReconcile_DetachesWhenItEnds(t *testing.T) {
	for name, end := range map[string]func(*harness){
		"the policy no longer propagates dependencies": func(h *harness) {
			h.change("nginx-deployment", func(b *workv1alpha2.ResourceBinding) { b.Spec.PropagateDeps = false })
		},
		"the binding is deleted": func(h *harness) {
			h.Must(h.Stored.Delete(h.Context(), h.binding("nginx-deployment")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, []*unstructured.Unstructured{deployment("nginx", "conf"), configMap("conf")}, bindingOf("nginx", "m1"))
			h.reconcile("nginx-deployment")
			end(h)
			h.reconcile("nginx-deployment")
			attached := h.binding("conf-configmap")
			if len(attached.Spec.RequiredBy) != 0 || len(follows(attached)) != 0 || attached.Spec.PreserveResourcesOnDeletion != nil {
				t.Errorf("labels %v, spec %+v", attached.Labels, attached.Spec)
			}
			b := &workv1alpha2.ResourceBinding{}
			if err := h.Stored.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: "nginx-deployment"}, b); err == nil && dependency.Held(b) {
				t.Error("the finalizer stays")
			}
		})
	}
}

func TestReconcile_DetachesWhatIsNoDependencyAnyMore(t *testing.T) {
	h := newHarness(t, []*unstructured.Unstructured{deployment("nginx", "conf"), configMap("conf"), configMap("old")}, bindingOf("nginx", "m1"))
	if _, err := h.r.attacher.attach(t.Context(), h.binding("nginx-deployment"), configMap("old")); err != nil {
		t.Fatal(err)
	}
	h.reconcile("nginx-deployment")
	if got := h.binding("old-configmap").Spec.RequiredBy; len(got) != 0 {
		t.Errorf("required by %v", got)
	}
	if got := h.binding("conf-configmap").Spec.RequiredBy; len(got) != 1 {
		t.Errorf("required by %v", got)
	}
}

func TestReconcile_SeveralReferrers(t *testing.T) {
	a, b := bindingOf("a", "m1"), bindingOf("b", "m2")
	b.Spec.ConflictResolution = policyv1alpha1.ConflictOverwrite
	b.Spec.PreserveResourcesOnDeletion = new(true)
	h := newHarness(t, []*unstructured.Unstructured{deployment("a", "conf"), deployment("b", "conf"), configMap("conf")}, a, b)
	h.reconcile("a-deployment")
	h.Events()
	h.change("conf-configmap", func(b *workv1alpha2.ResourceBinding) { b.UID = "uid-attached" })
	h.reconcile("b-deployment")
	attached := h.binding("conf-configmap")
	if len(attached.Spec.RequiredBy) != 2 || len(follows(attached)) != 2 {
		t.Errorf("labels %v, required by %v", attached.Labels, attached.Spec.RequiredBy)
	}
	if attached.Spec.ConflictResolution != policyv1alpha1.ConflictOverwrite || !*attached.Spec.PreserveResourcesOnDeletion {
		t.Errorf("spec %+v", attached.Spec)
	}
	want := "Warning DependencyPolicyConflict Dependency policy conflict detected: " +
		"ConflictResolution conflicted (Overwrite vs Abort); PreserveResourcesOnDeletion conflicted (true vs false)."
	if got := h.Events(); !strings.Contains(strings.Join(got, "\n"), want) {
		t.Errorf("events %q", got)
	}
}

func TestReconcile_BindingOfAPolicyKeepsItsOwn(t *testing.T) {
	own := bindingOf("conf", "m9")
	own.Name = "conf-configmap"
	own.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "default", Name: "conf"}
	own.Labels[policyv1alpha1.PropagationPolicyPermanentIDLabel] = "policy"
	own.Spec.PropagateDeps = false
	own.Spec.ConflictResolution = policyv1alpha1.ConflictOverwrite
	h := newHarness(t, []*unstructured.Unstructured{deployment("nginx", "conf"), configMap("conf")}, bindingOf("nginx", "m1"), own)
	h.reconcile("nginx-deployment")
	got := h.binding("conf-configmap").Spec
	want := own.Spec.DeepCopy()
	want.RequiredBy = []workv1alpha2.BindingSnapshot{{
		Namespace: "default", Name: "nginx-deployment", Clusters: []workv1alpha2.TargetCluster{{Name: "m1", Replicas: 1}},
	}}
	if diff := cmp.Diff(*want, got); diff != "" {
		t.Error(diff)
	}
}

// What a policy released, and a template refers to, follows its own template: nothing else writes its binding.
func TestReconcile_ReleasedBindingFollowsItsTemplate(t *testing.T) {
	released := bindingOf("conf", "m9")
	released.Name = "conf-configmap"
	delete(released.Labels, policyv1alpha1.PropagationPolicyPermanentIDLabel)
	released.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "default", Name: "conf", UID: "uid-conf", ResourceVersion: "5"}
	h := newHarness(t, []*unstructured.Unstructured{deployment("nginx", "conf"), configMap("conf")}, bindingOf("nginx", "m1"), released)
	h.reconcile("nginx-deployment")
	changed := configMap("conf")
	changed.SetResourceVersion("6")
	changed.Object["data"] = map[string]any{"a": "c"}
	store := templatestest.New(t, []*unstructured.Unstructured{deployment("nginx", "conf"), changed}).Store
	h.r.store, h.r.resolver.store = store, store
	h.reconcile("nginx-deployment")
	if got := h.binding("conf-configmap").Spec; got.Resource.ResourceVersion != "6" || got.Placement == nil || len(got.RequiredBy) != 1 {
		t.Errorf("the binding is %+v", got)
	}
}

// What a policy released keeps the dependencies with which it was delivered, whatever its template refers to by now and whoever asks again.
func TestReconcile_WhatIsReleasedKeepsItsDependencies(t *testing.T) {
	h := newHarness(t, []*unstructured.Unstructured{deployment("nginx", "conf"), configMap("conf"), configMap("more")}, bindingOf("nginx", "m1"))
	h.reconcile("nginx-deployment")
	h.change("nginx-deployment", func(b *workv1alpha2.ResourceBinding) {
		delete(b.Labels, policyv1alpha1.PropagationPolicyPermanentIDLabel)
	})
	store := templatestest.New(t, []*unstructured.Unstructured{deployment("nginx", "more"), configMap("conf"), configMap("more")}).Store
	h.r.store, h.r.resolver.store = store, store
	h.reconcile("nginx-deployment")
	attached := func() (out []string) {
		for _, b := range memory.List[*workv1alpha2.ResourceBindingList](h.Env).Items {
			if len(b.Spec.RequiredBy) > 0 {
				out = append(out, b.Name)
			}
		}
		return out
	}
	if got := attached(); len(got) != 1 || got[0] != "conf-configmap" {
		t.Errorf("released: %v", got)
	}
	h.change("nginx-deployment", func(b *workv1alpha2.ResourceBinding) {
		b.Labels[policyv1alpha1.PropagationPolicyPermanentIDLabel] = "id-other"
	})
	h.reconcile("nginx-deployment")
	if got := attached(); len(got) != 1 || got[0] != "more-configmap" {
		t.Errorf("with another policy: %v", got)
	}
}

func TestReferrers(t *testing.T) {
	byName, byLabel := bindingOf("a"), bindingOf("b")
	byName.Annotations = map[string]string{workv1alpha2.BindingDependenciesAnnotation: `[{"apiVersion":"v1","kind":"ConfigMap","namespace":"default","name":"conf"}]`}
	byLabel.Annotations = map[string]string{workv1alpha2.BindingDependenciesAnnotation: `[{"apiVersion":"v1","kind":"ConfigMap","namespace":"default","labelSelector":{"matchLabels":{"app":"x"}}}]`}
	h := newHarness(t, nil, byName, byLabel)
	labelled := configMap("conf")
	labelled.SetLabels(map[string]string{"app": "x"})
	for name, tc := range map[string]struct {
		event templates.Event
		want  []string
	}{
		"by name":               {templates.Event{New: configMap("conf")}, []string{"a-deployment"}},
		"by the labels it had":  {templates.Event{Old: labelled, New: configMap("conf")}, []string{"a-deployment", "b-deployment"}},
		"by the labels it gets": {templates.Event{New: labelled}, []string{"a-deployment", "b-deployment"}},
		"another object":        {templates.Event{Old: configMap("other")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, req := range referrers(t.Context(), h.Client, tc.event) {
				got = append(got, req.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSuspension_OnlyWhereEveryReferrerIsSuspended(t *testing.T) {
	referrer := func(name string, dispatching bool, on ...string) *workv1alpha2.ResourceBinding {
		b := bindingOf(name)
		b.Spec.Suspension = &workv1alpha2.Suspension{}
		if dispatching {
			b.Spec.Suspension.Dispatching = new(true)
		}
		if on != nil {
			b.Spec.Suspension.DispatchingOnClusters = &policyv1alpha1.SuspendClusters{ClusterNames: on}
		}
		return b
	}
	needs := func(name string, clusters ...string) workv1alpha2.BindingSnapshot {
		s := workv1alpha2.BindingSnapshot{Namespace: "default", Name: name + "-deployment"}
		for _, c := range clusters {
			s.Clusters = append(s.Clusters, workv1alpha2.TargetCluster{Name: c})
		}
		return s
	}
	for name, tc := range map[string]struct {
		requiredBy []workv1alpha2.BindingSnapshot
		referrers  []*workv1alpha2.ResourceBinding
		want       *workv1alpha2.Suspension
	}{
		"no referrer is suspended": {[]workv1alpha2.BindingSnapshot{needs("a", "m1")}, []*workv1alpha2.ResourceBinding{referrer("a", false)}, nil},
		"the only one is": {[]workv1alpha2.BindingSnapshot{needs("a", "m1")}, []*workv1alpha2.ResourceBinding{referrer("a", true)},
			&workv1alpha2.Suspension{Suspension: policyv1alpha1.Suspension{Dispatching: new(true)}}},
		"in one cluster": {[]workv1alpha2.BindingSnapshot{needs("a", "m1", "m2")}, []*workv1alpha2.ResourceBinding{referrer("a", false, "m2")},
			&workv1alpha2.Suspension{Suspension: policyv1alpha1.Suspension{DispatchingOnClusters: &policyv1alpha1.SuspendClusters{ClusterNames: []string{"m2"}}}}},
		"in a cluster that it left": {[]workv1alpha2.BindingSnapshot{needs("a", "m2")}, []*workv1alpha2.ResourceBinding{referrer("a", false, "m1")},
			&workv1alpha2.Suspension{Suspension: policyv1alpha1.Suspension{DispatchingOnClusters: &policyv1alpha1.SuspendClusters{ClusterNames: []string{"m1"}}}}},
		"in all that it has": {[]workv1alpha2.BindingSnapshot{needs("a", "m1")}, []*workv1alpha2.ResourceBinding{referrer("a", false, "m1")},
			&workv1alpha2.Suspension{Suspension: policyv1alpha1.Suspension{DispatchingOnClusters: &policyv1alpha1.SuspendClusters{ClusterNames: []string{"m1"}}}}},
		"everywhere, another needs it in one": {[]workv1alpha2.BindingSnapshot{needs("a", "m1", "m2"), needs("b", "m1")},
			[]*workv1alpha2.ResourceBinding{referrer("a", true), referrer("b", false)},
			&workv1alpha2.Suspension{Suspension: policyv1alpha1.Suspension{DispatchingOnClusters: &policyv1alpha1.SuspendClusters{ClusterNames: []string{"m2"}}}}},
		"another needs it there": {[]workv1alpha2.BindingSnapshot{needs("a", "m1"), needs("b", "m1")},
			[]*workv1alpha2.ResourceBinding{referrer("a", true), referrer("b", false)}, nil},
		"a missing referrer is not suspended": {[]workv1alpha2.BindingSnapshot{needs("gone", "m1")}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			attached := &workv1alpha2.ResourceBinding{Spec: workv1alpha2.ResourceBindingSpec{RequiredBy: tc.requiredBy}}
			dependency.Agree(attached, tc.referrers)
			if diff := cmp.Diff(tc.want, attached.Spec.Suspension); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOnKind_ComparesTheNamespace(t *testing.T) {
	dep := configv1alpha1.DependentObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: "a", Name: "s"}
	if delivery.OnKind(&dep, "v1", "Secret", "b") || !delivery.OnKind(&dep, "v1", "Secret", "a") {
		t.Error("the namespace is not compared")
	}
}

// Names of bindings leave out the API group: one that is taken gets a suffix, the
// same as the detector gives.
func TestReconcile_NameTakenByAnotherGroupGetsASuffix(t *testing.T) {
	theirs := &workv1alpha2.ResourceBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "conf-configmap"},
		Spec: workv1alpha2.ResourceBindingSpec{
			Resource:  workv1alpha2.ObjectReference{APIVersion: "example.io/v1", Kind: "ConfigMap", Namespace: "default", Name: "conf"},
			Placement: &policyv1alpha1.Placement{},
		},
	}
	h := newHarness(t, []*unstructured.Unstructured{deployment("nginx", "conf"), configMap("conf")}, bindingOf("nginx", "m1"), theirs)
	before := h.binding("conf-configmap")
	h.reconcile("nginx-deployment")
	if diff := cmp.Diff(before, h.binding("conf-configmap")); diff != "" {
		t.Errorf("the other template's binding changed:\n%s", diff)
	}
	suffixed := names.SuffixedBinding("", "ConfigMap", "conf")
	attached := h.binding(suffixed)
	if attached.Spec.Resource.APIVersion != "v1" || len(attached.Spec.RequiredBy) != 1 {
		t.Errorf("attached: %+v", attached.Spec)
	}
	h.Stable(func() { h.reconcile("nginx-deployment") })
	h.change("nginx-deployment", func(b *workv1alpha2.ResourceBinding) { b.Spec.PropagateDeps = false })
	h.reconcile("nginx-deployment")
	if left := h.binding(suffixed); len(left.Spec.RequiredBy) != 0 {
		t.Errorf("still attached: %+v", left.Spec.RequiredBy)
	}
}

// named is an interpreter whose dependencies come from the template, as those of
// customizations do.
type named struct {
	env.Interpreter
	deps []configv1alpha1.DependentObjectReference
}

func (n named) GetDependencies(*unstructured.Unstructured) ([]configv1alpha1.DependentObjectReference, error) {
	return n.deps, nil
}

func TestReconcile_DependenciesOfAnotherNamespaceAreRefused(t *testing.T) {
	foreign := configMap("theirs")
	foreign.SetNamespace("other")
	foreign.SetLabels(map[string]string{"a": "b"})
	everything := &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	h := newHarness(t, []*unstructured.Unstructured{deployment("nginx"), configMap("conf"), foreign}, bindingOf("nginx", "m1"))
	h.r.resolver.interpreter = named{h.r.resolver.interpreter, []configv1alpha1.DependentObjectReference{
		{APIVersion: "v1", Kind: "ConfigMap", Namespace: "default", Name: "conf"},
		{APIVersion: "v1", Kind: "ConfigMap", Namespace: "other", Name: "theirs"},
		{APIVersion: "v1", Kind: "ConfigMap", Namespace: "other", LabelSelector: everything},
		{APIVersion: "v1", Kind: "ConfigMap", LabelSelector: everything}, // of all namespaces
		{APIVersion: "v1", Kind: "ConfigMap", Name: "theirs"},
		{APIVersion: "cluster.karmada.io/v1alpha1", Kind: "Cluster", Name: "m1"},
	}}
	h.reconcile("nginx-deployment")
	var got []string
	for _, b := range memory.List[*workv1alpha2.ResourceBindingList](h.Env).Items {
		got = append(got, b.Namespace+"/"+b.Name)
	}
	if diff := cmp.Diff([]string{"default/conf-configmap", "default/nginx-deployment"}, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(1, len(recorded(h.binding("nginx-deployment")))); diff != "" {
		t.Error(diff)
	}
	if events := strings.Join(h.Events(), "\n"); !strings.Contains(events, "dependency on ConfigMap other/theirs") || !strings.Contains(events, ReasonSyncFailed) {
		t.Errorf("events %q", events)
	}
}

func TestReconcile_KeepsWhatItCannotRead(t *testing.T) {
	h := newHarness(t, []*unstructured.Unstructured{deployment("nginx")}, bindingOf("nginx", "m1"))
	if _, err := h.r.attacher.attach(t.Context(), h.binding("nginx-deployment"), configMap("conf")); err != nil {
		t.Fatal(err)
	}
	h.r.resolver.interpreter = named{h.r.resolver.interpreter, []configv1alpha1.DependentObjectReference{
		{APIVersion: "v1", Kind: "ConfigMap", Namespace: "default", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}},
	}}
	h.cluster.Dynamic.PrependReactor("get", "configmaps", func(clientgotesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewInternalError(errors.New("no leader"))
	})
	req := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "nginx-deployment"}}
	if _, err := h.r.Reconcile(t.Context(), req); !apierrors.IsInternalError(err) {
		t.Errorf("error %v", err)
	}
	if got := h.binding("conf-configmap").Spec.RequiredBy; len(got) != 1 {
		t.Errorf("required by %v", got)
	}
}

func TestReconcile_ForeignTemplateHasNoDependencies(t *testing.T) {
	template := deployment("nginx", "conf")
	template.SetNamespace("other")
	foreign := configMap("conf")
	foreign.SetNamespace("other")
	b := bindingOf("nginx", "m1")
	b.Spec.Resource.Namespace = "other"
	h := newHarness(t, []*unstructured.Unstructured{template, foreign}, b)
	h.reconcile("nginx-deployment")
	if list := memory.List[*workv1alpha2.ResourceBindingList](h.Env); len(list.Items) != 1 {
		t.Errorf("%d bindings", len(list.Items))
	}
}
