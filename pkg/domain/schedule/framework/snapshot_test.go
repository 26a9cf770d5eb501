package framework

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

func object(name string, kinds ...string) *clusterv1alpha1.Cluster {
	c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	e := clusterv1alpha1.APIEnablement{GroupVersion: "v1"}
	for _, k := range kinds {
		e.Resources = append(e.Resources, clusterv1alpha1.APIResource{Name: k, Kind: k})
	}
	c.Status.APIEnablements = []clusterv1alpha1.APIEnablement{e}
	return c
}

func TestSnapshot_IsSortedByName(t *testing.T) {
	s := SnapshotOf([]*clusterv1alpha1.Cluster{object("c"), object("a"), object("b")}, true)
	for i, want := range []string{"a", "b", "c"} {
		if s.At(i).Name() != want || s.At(i).Index() != i || s.Find(want) != i {
			t.Errorf("%d: %s at %d, found at %d", i, s.At(i).Name(), s.At(i).Index(), s.Find(want))
		}
	}
	if s.Find("bb") != -1 || s.Len() != 3 {
		t.Error("found what is not there")
	}
}

func TestFacts_ShareSetsOfAPIs(t *testing.T) {
	var f Facts
	a, b, c := f.Cluster(object("a", "Pod", "Service")), f.Cluster(object("b", "Pod", "Service")), f.Cluster(object("c", "Pod", "Secret"))
	if a.apis != b.apis || a.apis == c.apis {
		t.Error("clusters share a set of APIs when, and only when, they serve the same")
	}
	if !a.HasAPI("v1", "Service") || a.HasAPI("v1", "Secret") || !c.HasAPI("v1", "Secret") || a.HasAPI("v2", "Pod") {
		t.Error("wrong kinds")
	}
	for i := range 2 * maxSharedAPIs {
		f.Cluster(object("x", "Kind"+string(rune('a'+i%26)), string(rune('A'+i/26))))
	}
	if f.shared > maxSharedAPIs {
		t.Errorf("remembers %d sets", f.shared)
	}
}

func TestFacts_OnlyTaintsThatKeepBindingsOut(t *testing.T) {
	o := object("a")
	o.Spec.Taints = []corev1.Taint{{Key: "x", Effect: corev1.TaintEffectPreferNoSchedule}, {Key: "y", Value: "1", Effect: corev1.TaintEffectNoExecute}, {Key: "z", Effect: corev1.TaintEffectNoSchedule}}
	got := (&Facts{}).Cluster(o).Taints
	if len(got) != 2 || got[0].Text != "{y=1:NoExecute}" || got[1].Text != "{z:NoSchedule}" {
		t.Errorf("%+v", got)
	}
}

func TestPass_ForgetsWhatItHeld(t *testing.T) {
	s := SnapshotOf([]*clusterv1alpha1.Cluster{object("a"), object("b")}, true)
	spec := &workv1alpha2.ResourceBindingSpec{Placement: &policyv1alpha1.Placement{}, Clusters: []workv1alpha2.TargetCluster{{Name: "b", Replicas: 3}, {Name: "gone", Replicas: 1}}}
	var p Pass
	p.Start(&Binding{Spec: spec}, s)
	p.Use(nil)
	if p.IsTarget(s.At(0)) || !p.IsTarget(s.At(1)) || p.Held(s.At(1)) != 3 || p.Held(s.At(0)) != 0 {
		t.Error("wrong targets")
	}
	if got := p.Targets(); len(got) != 2 || got[0] != 1 || got[1] != -1 {
		t.Errorf("targets at %v", got)
	}
	p.End()
	p.Start(&Binding{Spec: &workv1alpha2.ResourceBindingSpec{Placement: &policyv1alpha1.Placement{}}}, s)
	if p.IsTarget(s.At(1)) || p.Tiered() {
		t.Error("the binding before shines through")
	}
}
