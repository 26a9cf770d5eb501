package internalversion

import (
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
)

func TestScheme_ConvertsThereAndBack(t *testing.T) {
	scheme, err := NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	in := &clusterv1alpha1.ClusterList{
		ListMeta: metav1.ListMeta{ResourceVersion: "5"},
		Items:    []clusterv1alpha1.Cluster{{ObjectMeta: metav1.ObjectMeta{Name: "m1"}, Spec: clusterv1alpha1.ClusterSpec{Region: "r"}}},
	}
	middle, out := &ClusterList{}, &clusterv1alpha1.ClusterList{}
	if err := scheme.Convert(in, middle, nil); err != nil {
		t.Fatal(err)
	}
	if err := scheme.Convert(middle, out, nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(in, out); diff != "" {
		t.Error(diff)
	}
	one, back := &Cluster{}, &clusterv1alpha1.Cluster{}
	if err := scheme.Convert(&in.Items[0], one, nil); err != nil {
		t.Fatal(err)
	}
	if err := scheme.Convert(one, back, nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&in.Items[0], back); diff != "" {
		t.Error(diff)
	}
	options := &clusterv1alpha1.ClusterProxyOptions{}
	if err := scheme.Convert(&url.Values{"path": {"/api"}}, options, nil); err != nil || options.Path != "/api" {
		t.Errorf("got %+v, %v", options, err)
	}
}

func TestDeepCopy_SharesNothing(t *testing.T) {
	list := &ClusterList{Items: []Cluster{{Spec: clusterv1alpha1.ClusterSpec{Zones: []string{"a"}}}}}
	copied := list.DeepCopyObject().(*ClusterList)
	one := list.Items[0].DeepCopyObject().(*Cluster)
	list.Items[0].Spec.Zones[0] = "b"
	if copied.Items[0].Spec.Zones[0] != "a" || one.Spec.Zones[0] != "a" {
		t.Error("memory is shared")
	}
	if (*Cluster)(nil).DeepCopyObject() != nil || (*ClusterList)(nil).DeepCopyObject() != nil {
		t.Error("a copy of nothing is something")
	}
}
