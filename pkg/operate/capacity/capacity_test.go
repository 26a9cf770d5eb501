package capacity

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/schedule/core"
)

func resources(pairs ...string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		out[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return out
}

func cluster(name string, allocatable, allocated corev1.ResourceList) clusterv1alpha1.Cluster {
	return clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status:     clusterv1alpha1.ClusterStatus{ResourceSummary: &clusterv1alpha1.ResourceSummary{Allocatable: allocatable, Allocated: allocated}},
	}
}

func TestFit_Note(t *testing.T) {
	for name, tc := range map[string]struct {
		fit  Fit
		want string
	}{
		"the sum allows more":    {Fit{Source: Models, Summed: 3}, "a node counts as the minimum of its grade; the free sum allows 3"},
		"the sum allows as many": {Fit{Source: Models, Replicas: 3, Summed: 3}, ""},
		"a quota allows less":    {Fit{Source: Quota, Summed: 3}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.fit.Note(); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestFits(t *testing.T) {
	big := cluster("big", resources("cpu", "10", "memory", "10Gi", "pods", "110"), resources("cpu", "2", "pods", "10"))
	full := cluster("full", resources("cpu", "10", "memory", "10Gi", "pods", "110"), resources("pods", "110"))
	modeled := cluster("modeled", resources("cpu", "100", "memory", "100Gi", "pods", "110"), nil)
	modeled.Spec.ResourceModels = []clusterv1alpha1.ResourceModel{{Grade: 0, Ranges: []clusterv1alpha1.ResourceModelRange{
		{Name: "cpu", Min: resource.MustParse("2")}, {Name: "memory", Min: resource.MustParse("4Gi")},
	}}}
	modeled.Status.ResourceSummary.AllocatableModelings = []clusterv1alpha1.AllocatableModeling{{Grade: 0, Count: 3}}
	clusters := []clusterv1alpha1.Cluster{big, full, modeled, {ObjectMeta: metav1.ObjectMeta{Name: "new"}}}
	web := &Workload{Requirements: &workv1alpha2.ReplicaRequirements{ResourceRequest: resources("cpu", "500m", "memory", "1Gi")}}
	for name, tc := range map[string]struct {
		workload  *Workload
		estimates map[string]core.Estimate
		want      []Fit
	}{
		"by the status": {web, nil, []Fit{
			{"big", "Unknown", true, 10, "memory", Summary, 0}, {"full", "Unknown", true, 0, "pods", Summary, 0}, {"modeled", "Unknown", true, 12, "cpu", Models, 100}, {"new", "Unknown", false, 0, "no resource summary", "", 0},
		}},
		"estimators only lower it": {web, map[string]core.Estimate{
			"big": {Replicas: 3}, "full": {Replicas: 7}, "modeled": {Replicas: core.Unauthentic, Err: "gone"}, "new": {Replicas: 5},
		}, []Fit{
			{"big", "Unknown", true, 3, "", Estimator, 0}, {"full", "Unknown", true, 0, "pods", Summary, 0}, {"modeled", "Unknown", true, 12, "cpu", Models, 100}, {"new", "Unknown", false, 0, "no resource summary", "", 0},
		}},
		"without requirements pods count": {&Workload{}, nil, []Fit{
			{"big", "Unknown", true, 100, "pods", Summary, 0}, {"full", "Unknown", true, 0, "pods", Summary, 0}, {"modeled", "Unknown", true, 110, "pods", Models, 110}, {"new", "Unknown", false, 0, "no resource summary", "", 0},
		}},
		"a resource that no cluster has": {
			&Workload{Requirements: &workv1alpha2.ReplicaRequirements{ResourceRequest: resources("nvidia.com/gpu", "1")}}, nil,
			[]Fit{{"big", "Unknown", true, 0, "nvidia.com/gpu", Summary, 0}, {"full", "Unknown", true, 0, "pods", Summary, 0}, {"modeled", "Unknown", true, 0, "nvidia.com/gpu", Models, 0}, {"new", "Unknown", false, 0, "no resource summary", "", 0}},
		},
		"sets of components": {
			&Workload{Components: []workv1alpha2.Component{
				{Name: "a", Replicas: 1, ReplicaRequirements: &workv1alpha2.ComponentReplicaRequirements{ResourceRequest: resources("cpu", "1")}},
				{Name: "b", Replicas: 3, ReplicaRequirements: &workv1alpha2.ComponentReplicaRequirements{ResourceRequest: resources("cpu", "1")}},
			}}, nil,
			[]Fit{{"big", "Unknown", true, 2, "cpu", Summary, 0}, {"full", "Unknown", true, 0, "pods", Summary, 0}, {"modeled", "Unknown", true, 1, "replicas of a set", Models, 25}, {"new", "Unknown", false, 0, "no resource summary", "", 0}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Fits(tc.workload, clusters, tc.estimates)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestFreeOf(t *testing.T) {
	for name, tc := range map[string]struct {
		cluster clusterv1alpha1.Cluster
		want    Free
	}{
		"free":              {cluster("m", resources("cpu", "4", "memory", "16Gi", "pods", "110"), resources("cpu", "150m", "memory", "512Mi", "pods", "3")), Free{"3.8", "15.5Gi", "107"}},
		"overcommitted":     {cluster("m", resources("cpu", "1", "memory", "512Ki", "pods", "1"), resources("cpu", "2", "pods", "3")), Free{"0", "512Ki", "0"}},
		"nothing reported":  {clusterv1alpha1.Cluster{}, Free{unknown, unknown, unknown}},
		"pods are reported": {cluster("m", resources("pods", "3"), nil), Free{unknown, unknown, "3"}},
	} {
		if diff := cmp.Diff(tc.want, FreeOf(&tc.cluster)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	waiting := cluster("m", resources("cpu", "4", "pods", "10"), resources("cpu", "1"))
	waiting.Status.ResourceSummary.Allocating = resources("cpu", "2", "pods", "1")
	if got := FreeOf(&waiting); got.CPU != "1" || got.Pods != "9" {
		t.Errorf("requests of pods that wait for a node do not count: %+v", got)
	}
}

func TestRequests(t *testing.T) {
	w := &Workload{Requirements: &workv1alpha2.ReplicaRequirements{ResourceRequest: resources("memory", "64Mi", "cpu", "100m", "x/y", "0")}}
	if got := w.Requests(); got != "cpu 100m, memory 64Mi" {
		t.Errorf("got %q", got)
	}
	if got := (&Workload{}).Requests(); got != "nothing but a pod" {
		t.Errorf("got %q", got)
	}
	set := &Workload{Components: []workv1alpha2.Component{
		{Replicas: 3000, ReplicaRequirements: &workv1alpha2.ComponentReplicaRequirements{ResourceRequest: resources("cpu", "1500m")}},
		{Replicas: 1, ReplicaRequirements: &workv1alpha2.ComponentReplicaRequirements{ResourceRequest: resources("cpu", "500m", "memory", "1Gi")}},
		{Replicas: 2},
	}}
	if got := set.Requests(); got != "cpu 4500500m, memory 1Gi" {
		t.Errorf("got %q", got)
	}
}
