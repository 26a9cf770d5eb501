package scope

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/karmada-toolkit/karmada/pkg/apis/names"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

func work(annotations map[string]string) *workv1alpha1.Work {
	return &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}}
}

func TestBinding_KeyOfIsTheInverseOfAnnotations(t *testing.T) {
	for key, kind := range map[types.NamespacedName]string{
		{Namespace: "default", Name: "web"}: "ResourceBinding",
		{Name: "web"}:                       "ClusterResourceBinding",
	} {
		annotations := BindingIn(key.Namespace).Annotations(key)
		for _, s := range Bindings() {
			want := types.NamespacedName{}
			if s.Kind == kind {
				want = key
			}
			if got := s.KeyOf(work(annotations)); got != want {
				t.Errorf("%s of the Work of %s: %v, want %v", s.Kind, key, got, want)
			}
		}
		if s, got := BindingOf(work(annotations)); s == nil || s.Kind != kind || got != key {
			t.Errorf("binding of the Work of %s: %v, %v", key, s, got)
		}
		if got := ForeignAnnotation(work(annotations), annotations); got != "" {
			t.Errorf("Work of %s names another binding by %s", key, got)
		}
	}
	if s, key := BindingOf(work(nil)); s != nil {
		t.Errorf("a Work without annotations names %v", key)
	}
}

func TestForeignAnnotation(t *testing.T) {
	own := NamespacedBinding().Annotations(types.NamespacedName{Namespace: "a", Name: "web"})
	for want, have := range map[string]map[string]string{
		"": {"app": "web"},
		workv1alpha2.ResourceBindingNamespaceAnnotation: NamespacedBinding().Annotations(types.NamespacedName{Namespace: "b", Name: "web"}),
		workv1alpha2.ResourceBindingNameAnnotation:      NamespacedBinding().Annotations(types.NamespacedName{Namespace: "a", Name: "db"}),
		workv1alpha2.ClusterResourceBindingAnnotation:   ClusterBinding().Annotations(types.NamespacedName{Name: "web"}),
	} {
		if got := ForeignAnnotation(work(have), own); got != want {
			t.Errorf("%v: %q, want %q", have, got, want)
		}
	}
}

func TestPolicyOf(t *testing.T) {
	for _, s := range Policies() {
		if got := PolicyOf(s.New()); got.Kind != s.Kind {
			t.Errorf("scope of a %s is %s", s.Kind, got.Kind)
		}
	}
}

func clusters(names ...string) []workv1alpha2.TargetCluster {
	var out []workv1alpha2.TargetCluster
	for i, name := range names {
		out = append(out, workv1alpha2.TargetCluster{Name: name, Replicas: int32(i + 1)})
	}
	return out
}

func TestTargetsAndKept(t *testing.T) {
	spec := &workv1alpha2.ResourceBindingSpec{
		Clusters:   clusters("m1", "m2"),
		RequiredBy: []workv1alpha2.BindingSnapshot{{Clusters: clusters("m2", "m3")}, {Clusters: clusters("m3", "m4")}},
		GracefulEvictionTasks: []workv1alpha2.GracefulEvictionTask{
			{FromCluster: "m1", PurgeMode: policyv1alpha1.PurgeModeGracefully, Replicas: new(int32(7))},
			{FromCluster: "m5", PurgeMode: policyv1alpha1.PurgeModeGracefully, Replicas: new(int32(8))},
			{FromCluster: "m6", PurgeMode: policyv1alpha1.PurgeModeDirectly},
			{FromCluster: "m7"},
		},
	}
	targets := []workv1alpha2.TargetCluster{{Name: "m1", Replicas: 1}, {Name: "m2", Replicas: 2}, {Name: "m3", Replicas: 2}, {Name: "m4", Replicas: 2}}
	if diff := cmp.Diff(targets, Targets(spec)); diff != "" {
		t.Errorf("targets: %s", diff)
	}
	kept := append(targets, workv1alpha2.TargetCluster{Name: "m5", Replicas: 8}, workv1alpha2.TargetCluster{Name: "m7"})
	if diff := cmp.Diff(kept, Kept(Targets(spec), spec.GracefulEvictionTasks)); diff != "" {
		t.Errorf("kept: %s", diff)
	}
}

func TestDispatchingSuspended(t *testing.T) {
	suspension := func(all *bool, clusters ...string) *workv1alpha2.Suspension {
		s := policyv1alpha1.Suspension{Dispatching: all}
		if clusters != nil {
			s.DispatchingOnClusters = &policyv1alpha1.SuspendClusters{ClusterNames: clusters}
		}
		return &workv1alpha2.Suspension{Suspension: s}
	}
	for name, tc := range map[string]struct {
		suspension *workv1alpha2.Suspension
		want       bool
	}{
		"nil":              {nil, false},
		"empty":            {suspension(nil), false},
		"all clusters":     {suspension(new(true)), true},
		"not all clusters": {suspension(new(false)), false},
		"this cluster":     {suspension(nil, "m1", "m2"), true},
		"another cluster":  {suspension(nil, "m2"), false},
		"only scheduling":  {&workv1alpha2.Suspension{Scheduling: new(true)}, false},
	} {
		if got := DispatchingSuspended(tc.suspension, "m1"); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
}

func TestRefersTo(t *testing.T) {
	ref := &workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}
	for name, tc := range map[string]struct {
		apiVersion, kind, name string
		want                   bool
	}{
		"same template":   {"apps/v1", "Deployment", "web", true},
		"another version": {"apps/v1beta1", "Deployment", "web", true},
		"another group":   {"example.io/v1", "Deployment", "web", false},
		"another kind":    {"apps/v1", "DaemonSet", "web", false},
		"another name":    {"apps/v1", "Deployment", "db", false},
	} {
		obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": tc.apiVersion, "kind": tc.kind}}
		obj.SetName(tc.name)
		if got := RefersTo(ref, obj); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
}

func TestCheckOwner(t *testing.T) {
	template := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment"}}
	template.SetUID("new")
	binding := &workv1alpha2.ResourceBinding{}
	if err := CheckOwner(binding, template); err != nil {
		t.Errorf("without an owner: %v", err)
	}
	for uid, want := range map[types.UID]bool{"new": true, "old": false} {
		binding.OwnerReferences = []metav1.OwnerReference{{UID: uid, Controller: new(true)}}
		if err := CheckOwner(binding, template); (err == nil) != want {
			t.Errorf("owned by %s: %v", uid, err)
		}
	}
}

func TestBinding_Wants(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*workv1alpha2.ResourceBinding, *workv1alpha1.Work)
		want   bool
	}{
		"a target": {func(*workv1alpha2.ResourceBinding, *workv1alpha1.Work) {}, true},
		"evicted gracefully": {func(b *workv1alpha2.ResourceBinding, _ *workv1alpha1.Work) {
			b.Spec.Clusters = nil
			b.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "m1"}}
		}, true},
		"not a target":  {func(b *workv1alpha2.ResourceBinding, _ *workv1alpha1.Work) { b.Spec.Clusters[0].Name = "m2" }, false},
		"being deleted": {func(b *workv1alpha2.ResourceBinding, _ *workv1alpha1.Work) { b.DeletionTimestamp = &metav1.Time{} }, false},
		"of an earlier binding": {func(_ *workv1alpha2.ResourceBinding, w *workv1alpha1.Work) {
			w.Labels[workv1alpha2.ResourceBindingPermanentIDLabel] = "earlier"
		}, false},
		"another name":     {func(_ *workv1alpha2.ResourceBinding, w *workv1alpha1.Work) { w.Name = "web" }, false},
		"not in a cluster": {func(_ *workv1alpha2.ResourceBinding, w *workv1alpha1.Work) { w.Namespace = "default" }, false},
		"required by other objects": {func(b *workv1alpha2.ResourceBinding, _ *workv1alpha1.Work) {
			b.Spec.RequiredBy, b.Spec.Clusters = []workv1alpha2.BindingSnapshot{{Clusters: b.Spec.Clusters}}, nil
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			labels := map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: "id"}
			b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Labels: labels}}
			b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "default", Name: "web"}
			b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "m1"}}
			w := work(nil)
			w.Namespace, w.Name, w.Labels = "karmada-es-m1", names.Work("ConfigMap", "web", "default"), maps.Clone(labels)
			c.change(b, w)
			if got := NamespacedBinding().Wants(b, w); got != c.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
