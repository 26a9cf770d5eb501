package clusterstatus

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/karmada-toolkit/karmada/internal/quantity"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/member/follow"
)

func list(pairs ...string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		out[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return out
}

func nodeOf(ready corev1.ConditionStatus, pairs ...string) node {
	return keepNode(viewOf[follow.Node](&corev1.Node{Status: corev1.NodeStatus{
		Allocatable: list(pairs...),
		Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}},
	}}))
}

// viewOf returns an object as it arrives from a member.
func viewOf[T any](obj any) *T {
	view := new(T)
	text, err := json.Marshal(obj)
	if err == nil {
		err = json.Unmarshal(text, view)
	}
	if err != nil {
		panic(err)
	}
	return view
}

func podOn(where string, pairs ...string) pod {
	return keepPod(viewOf[follow.Pod](&corev1.Pod{Spec: corev1.PodSpec{
		NodeName:   where,
		Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: list(pairs...)}}},
	}}), nil)
}

// strings returns quantities as they are written.
func texts(list corev1.ResourceList) map[string]string {
	out := map[string]string{}
	for name, q := range list {
		out[string(name)] = q.String()
	}
	return out
}

func TestSummarize(t *testing.T) {
	nodes := map[string]node{
		"a": nodeOf("True", "cpu", "4", "memory", "8Gi", "pods", "110", "example.com/gpu", "2", "odd", "1"),
		"b": nodeOf("False", "cpu", "2500m", "memory", "4Gi", "pods", "10", "hugepages-2Mi", "0"),
	}
	pods := []pod{podOn("a", "cpu", "1", "memory", "1Gi"), podOn("b", "cpu", "100m", "example.com/gpu", "1"), podOn("", "cpu", "2")}
	count, sum := summarize(nodes, pods, nil)
	if count.TotalNum != 2 || count.ReadyNum != 1 {
		t.Errorf("nodes: %+v", count)
	}
	for _, tc := range []struct {
		name string
		got  corev1.ResourceList
		want map[string]string
	}{
		{"allocatable", sum.Allocatable, map[string]string{"cpu": "6500m", "memory": "12Gi", "pods": "120", "example.com/gpu": "2"}},
		{"allocated", sum.Allocated, map[string]string{"cpu": "1100m", "memory": "1Gi", "pods": "2", "example.com/gpu": "1"}},
		{"allocating", sum.Allocating, map[string]string{"cpu": "2", "pods": "1"}},
	} {
		if diff := cmp.Diff(tc.want, texts(tc.got)); diff != "" {
			t.Errorf("%s: %s", tc.name, diff)
		}
	}
	if sum.AllocatableModelings != nil {
		t.Errorf("modelings: %v", sum.AllocatableModelings)
	}
}

func TestKeepPod(t *testing.T) {
	p := &corev1.Pod{Spec: corev1.PodSpec{
		Containers:     []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: list("cpu", "1")}}, {Resources: corev1.ResourceRequirements{Requests: list("cpu", "1"), Limits: list("memory", "1Gi")}}},
		InitContainers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: list("cpu", "5")}}},
		Overhead:       list("cpu", "250m"),
	}}
	first := keepPod(viewOf[follow.Pod](p), nil)
	if diff := cmp.Diff(amounts{"cpu": 5250, "pods": 1}, first.requests); diff != "" {
		t.Error(diff)
	}
	p.Spec.NodeName = "a"
	second := keepPod(viewOf[follow.Pod](p), &first)
	first.requests["cpu"] = 1
	if second.node != "a" || second.requests["cpu"] != 1 {
		t.Error("equal requests are kept twice")
	}
}

// TestViews_HostileQuantities decodes what would take minutes to compute with.
func TestViews_HostileQuantities(t *testing.T) {
	var n follow.Node
	if err := json.Unmarshal([]byte(`{"status":{"allocatable":{"cpu":"1e-300000000","memory":"1e300000000","pods":"-5","example.com/gpu":9223372036854775807}}}`), &n); err != nil {
		t.Fatal(err)
	}
	sum := amounts{}
	for range 3 {
		sum.add(keepNode(&n).allocatable)
	}
	if diff := cmp.Diff(map[string]string{"example.com/gpu": "9223372036854775807"}, texts(sum.list())); diff != "" {
		t.Error(diff)
	}
	many := follow.Quantities{}
	for i := range follow.MaxResourceNames + 1 {
		many[corev1.ResourceName(fmt.Sprintf("example.com/r%d", i))] = quantity.Lenient{Quantity: resource.MustParse("1")}
	}
	if got := many.List(); got != nil {
		t.Errorf("%d resources of one node count", len(got))
	}
}

func models(t *testing.T) []clusterv1alpha1.ResourceModel {
	t.Helper()
	model := func(grade uint, cpuMin, memoryMin string) clusterv1alpha1.ResourceModel {
		return clusterv1alpha1.ResourceModel{Grade: grade, Ranges: []clusterv1alpha1.ResourceModelRange{
			{Name: "cpu", Min: resource.MustParse(cpuMin)}, {Name: "memory", Min: resource.MustParse(memoryMin)},
		}}
	}
	return []clusterv1alpha1.ResourceModel{model(0, "0", "0"), model(1, "1", "4Gi"), model(2, "2", "16Gi"), model(7, "4", "32Gi")}
}

func TestModelings(t *testing.T) {
	nodes := map[string]node{
		"large":              nodeOf("True", "cpu", "64", "memory", "128Gi", "pods", "10"),
		"little memory":      nodeOf("True", "cpu", "64", "memory", "5Gi", "pods", "10"),
		"no memory":          nodeOf("True", "cpu", "64", "pods", "10"),
		"exactly":            nodeOf("True", "cpu", "2", "memory", "16Gi", "pods", "10"),
		"full of pods":       nodeOf("True", "cpu", "64", "memory", "128Gi", "pods", "1"),
		"overcommitted":      nodeOf("True", "cpu", "1", "memory", "128Gi", "pods", "10"),
		"large, mostly used": nodeOf("True", "cpu", "64", "memory", "128Gi", "pods", "10"),
	}
	pods := []pod{podOn("full of pods"), podOn("overcommitted", "cpu", "3"), podOn("large, mostly used", "cpu", "63500m")}
	_, sum := summarize(nodes, pods, models(t))
	want := []clusterv1alpha1.AllocatableModeling{{Grade: 0, Count: 2}, {Grade: 1, Count: 1}, {Grade: 2, Count: 1}, {Grade: 7, Count: 1}}
	if diff := cmp.Diff(want, sum.AllocatableModelings); diff != "" {
		t.Error(diff)
	}
}
