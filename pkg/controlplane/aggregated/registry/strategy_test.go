package registry

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/aggregated/internalversion"
)

func now() metav1.Time { return metav1.NewTime(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)) }

func rules(t *testing.T, modeling bool) strategy {
	t.Helper()
	scheme, err := internalversion.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	return strategy{ObjectTyper: scheme, NameGenerator: names.SimpleNameGenerator, resourceModeling: modeling, now: now}
}

// cluster is the context of requests for objects without a namespace.
func cluster(t *testing.T) context.Context {
	t.Helper()
	return genericrequest.WithNamespace(t.Context(), metav1.NamespaceNone)
}

func valid() *internalversion.Cluster {
	return &internalversion.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "m1", ResourceVersion: "7", Generation: 3, UID: "u"},
		Spec:       clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Push},
		Status:     clusterv1alpha1.ClusterStatus{KubernetesVersion: "v1.36.0"},
	}
}

func TestStrategy_Create(t *testing.T) {
	cases := []struct {
		name     string
		modeling bool
		change   func(*internalversion.Cluster)
		check    func(*testing.T, *internalversion.Cluster)
	}{
		{name: "the status is cleared and the generation is 1", check: func(t *testing.T, c *internalversion.Cluster) {
			if c.Status.KubernetesVersion != "" || c.Generation != 1 {
				t.Errorf("got %+v", c)
			}
		}},
		{name: "with the gate there are nine models", modeling: true, check: func(t *testing.T, c *internalversion.Cluster) {
			if len(c.Spec.ResourceModels) != 9 {
				t.Errorf("got %d models", len(c.Spec.ResourceModels))
			}
		}},
		{name: "without the gate there are none", check: func(t *testing.T, c *internalversion.Cluster) {
			if c.Spec.ResourceModels != nil {
				t.Errorf("got %v", c.Spec.ResourceModels)
			}
		}},
		{
			name:   "a zone becomes the list of zones",
			change: func(c *internalversion.Cluster) { c.Spec.Zone = "z" },
			check: func(t *testing.T, c *internalversion.Cluster) {
				if diff := cmp.Diff([]string{"z"}, c.Spec.Zones); diff != "" || c.Spec.Zone != "" {
					t.Error(diff)
				}
			},
		},
		{
			name: "only NoExecute taints get a time",
			change: func(c *internalversion.Cluster) {
				c.Spec.Taints = []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoExecute}, {Key: "b", Effect: corev1.TaintEffectNoSchedule}}
			},
			check: func(t *testing.T, c *internalversion.Cluster) {
				if !c.Spec.Taints[0].TimeAdded.Equal(new(now())) || c.Spec.Taints[1].TimeAdded != nil {
					t.Errorf("got %+v", c.Spec.Taints)
				}
			},
		},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			c := valid()
			c.ResourceVersion, c.UID = "", ""
			rest.FillObjectMetaSystemFields(c)
			if tc.change != nil {
				tc.change(c)
			}
			if err := rest.BeforeCreate(rules(t, tc.modeling), cluster(t), c); err != nil {
				t.Fatal(err)
			}
			tc.check(t, c)
		})
	}
}

func TestStrategy_Update(t *testing.T) {
	cases := []struct {
		name       string
		change     func(*internalversion.Cluster)
		generation int64
	}{
		{name: "labels leave the generation alone", change: func(c *internalversion.Cluster) { c.Labels = map[string]string{"a": "b"} }, generation: 3},
		{name: "a status is not taken", change: func(c *internalversion.Cluster) { c.Status.KubernetesVersion = "v2" }, generation: 3},
		{name: "a change of the spec counts", change: func(c *internalversion.Cluster) { c.Spec.Region = "r" }, generation: 4},
		{name: "the way objects travel can change", change: func(c *internalversion.Cluster) { c.Spec.SyncMode = clusterv1alpha1.Pull }, generation: 4},
		{name: "an empty list equals none", change: func(c *internalversion.Cluster) { c.Spec.Zones = []string{} }, generation: 3},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			c := valid()
			tc.change(c)
			if err := rest.BeforeUpdate(rules(t, true), cluster(t), c, valid()); err != nil {
				t.Fatal(err)
			}
			if c.Generation != tc.generation || c.Status.KubernetesVersion != "v1.36.0" {
				t.Errorf("generation %d, status %+v", c.Generation, c.Status)
			}
		})
	}
}

func TestStrategy_RefusesBadClusters(t *testing.T) {
	c := valid()
	c.Name = "UPPER"
	if errs := rules(t, true).Validate(t.Context(), c); len(errs) == 0 {
		t.Error("a bad name was accepted")
	}
	c = valid()
	c.Spec.SyncMode = "x"
	if errs := rules(t, true).ValidateUpdate(t.Context(), c, valid()); len(errs) == 0 {
		t.Error("a bad mode was accepted")
	}
}

func TestStatusStrategy_ChangesTheStatusOnly(t *testing.T) {
	old, updated := valid(), valid()
	old.Spec.Taints = []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoSchedule}}
	old.Finalizers = []string{"karmada.io/cluster-controller"}
	updated.Spec = clusterv1alpha1.ClusterSpec{SyncMode: "bad", APIEndpoint: "https://evil"}
	updated.Labels = map[string]string{"a": "b"}
	updated.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "agent", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "cluster.karmada.io/v1alpha1", FieldsType: "FieldsV1"}}
	updated.Status.KubernetesVersion = "v9"
	if err := rest.BeforeUpdate(statusStrategy{rules(t, true)}, cluster(t), updated, old); err != nil {
		t.Fatal(err)
	}
	want := old.DeepCopyObject().(*internalversion.Cluster)
	want.ManagedFields = updated.ManagedFields
	want.Status.KubernetesVersion = "v9"
	if diff := cmp.Diff(want, updated); diff != "" {
		t.Error(diff)
	}
}

func TestStatusStrategy_ReadyRemovesTheHealthTaints(t *testing.T) {
	no := corev1.TaintEffectNoSchedule
	own := []corev1.Taint{{Key: "mine", Effect: no}, {Key: "cluster.karmada.io/not-ready", Effect: corev1.TaintEffectNoExecute, TimeAdded: new(now())}}
	health := []corev1.Taint{{Key: "cluster.karmada.io/not-ready", Effect: no}, {Key: "cluster.karmada.io/unreachable", Effect: no}}
	for _, tc := range []struct {
		name       string
		have       []corev1.Taint
		ready      metav1.ConditionStatus
		want       []corev1.Taint
		generation int64
	}{
		{"ready", append(slices.Clone(health), own...), metav1.ConditionTrue, own, 4},
		{"ready, with nothing else", health, metav1.ConditionTrue, nil, 4},
		{"ready already", own, metav1.ConditionTrue, own, 3},
		{"not ready", append(slices.Clone(own), health[0]), metav1.ConditionFalse, append(slices.Clone(own), health[0]), 3},
		{"unknown", health, metav1.ConditionUnknown, health, 3},
	} {
		t.Run(tc.name, func(t *testing.T) {
			old, updated := valid(), valid()
			old.Spec.Taints = slices.Clone(tc.have)
			updated.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: tc.ready}}
			if err := rest.BeforeUpdate(statusStrategy{rules(t, true)}, cluster(t), updated, old); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, updated.Spec.Taints); diff != "" || updated.Generation != tc.generation {
				t.Errorf("generation %d %s", updated.Generation, diff)
			}
			if diff := cmp.Diff(tc.have, old.Spec.Taints); diff != "" {
				t.Errorf("the stored object was changed: %s", diff)
			}
		})
	}
}

func TestStrategy_Facts(t *testing.T) {
	s := rules(t, true)
	if s.NamespaceScoped() || s.AllowCreateOnUpdate() || !s.AllowUnconditionalUpdate() {
		t.Error("clusters have no namespace, are not created by PUT and can be updated without a version")
	}
	if got := s.GetResetFields()["cluster.karmada.io/v1alpha1"].String(); got != ".status" {
		t.Errorf("the main resource resets %s", got)
	}
}

func TestTaintWarnings(t *testing.T) {
	noExecute := func(key string) corev1.Taint { return corev1.Taint{Key: key, Effect: corev1.TaintEffectNoExecute} }
	for name, tc := range map[string]struct {
		taints, known []corev1.Taint
		want          int
	}{
		"none":                     {nil, nil, 0},
		"new":                      {[]corev1.Taint{noExecute("a"), noExecute("b")}, []corev1.Taint{noExecute("a")}, 1},
		"another effect":           {[]corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoSchedule}}, nil, 0},
		"of the control plane":     {[]corev1.Taint{noExecute(clusterv1alpha1.TaintClusterNotReady)}, nil, 0},
		"from NoSchedule to evict": {[]corev1.Taint{noExecute("a")}, []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoSchedule}}, 1},
	} {
		if got := taintWarnings(tc.taints, tc.known); len(got) != tc.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
