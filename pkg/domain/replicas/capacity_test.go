package replicas

import (
	"math"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

func list(pairs ...string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		out[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return out
}

func clusterOf(allocatable, allocated, allocating corev1.ResourceList) *clusterv1alpha1.Cluster {
	return &clusterv1alpha1.Cluster{Status: clusterv1alpha1.ClusterStatus{ResourceSummary: &clusterv1alpha1.ResourceSummary{
		Allocatable: allocatable, Allocated: allocated, Allocating: allocating,
	}}}
}

func withModels(c *clusterv1alpha1.Cluster, counts ...int) *clusterv1alpha1.Cluster {
	for g, low := range []string{"0", "1", "2", "4"} {
		c.Spec.ResourceModels = append(c.Spec.ResourceModels, clusterv1alpha1.ResourceModel{
			Grade: uint(g), Ranges: []clusterv1alpha1.ResourceModelRange{
				{Name: corev1.ResourceCPU, Min: resource.MustParse(low)},
				{Name: corev1.ResourceMemory, Min: resource.MustParse(low + "Gi")},
			},
		})
	}
	for g, n := range counts {
		c.Status.ResourceSummary.AllocatableModelings = append(c.Status.ResourceSummary.AllocatableModelings,
			clusterv1alpha1.AllocatableModeling{Grade: uint(g), Count: n})
	}
	return c
}

func TestCapacity_Replicas(t *testing.T) {
	summary := func() *clusterv1alpha1.Cluster {
		return clusterOf(list("cpu", "4", "memory", "8Gi", "pods", "20"), list("cpu", "1500m", "pods", "3"), list("pods", "1"))
	}
	for _, tc := range []struct {
		name    string
		cluster *clusterv1alpha1.Cluster
		request corev1.ResourceList
		nothing bool
		want    int32
		bound   string
	}{
		{"no summary, nothing fits", &clusterv1alpha1.Cluster{}, list("cpu", "1"), false, 0, "no resource summary"},
		{"no requirements, pods bound", summary(), nil, true, 16, "pods"},
		{"empty requirements, pods bound", summary(), nil, false, 16, "pods"},
		{"cpu counts in thousandths", summary(), list("cpu", "200m"), false, 12, "cpu"},
		{"memory counts in bytes", summary(), list("cpu", "1m", "memory", "1Gi"), false, 8, "memory"},
		{"a resource that the cluster lacks", summary(), list("example.com/gpu", "1"), false, 0, "example.com/gpu"},
		{"a request of nothing asks for nothing", summary(), list("example.com/gpu", "0"), false, 16, "pods"},
		{"no pods left", clusterOf(list("cpu", "4", "pods", "3"), list("pods", "4"), nil), nil, true, 0, "pods"},
		{"nothing free", clusterOf(list("cpu", "4", "pods", "3"), list("cpu", "5"), nil), list("cpu", "1m"), false, 0, "cpu"},
		{"models add up nodes", withModels(summary(), 5, 1, 2, 1), list("cpu", "1"), false, 9, "cpu"},
		{"models know no gpu", withModels(summary(), 5, 1, 2, 1), list("example.com/gpu", "1"), false, 0, "example.com/gpu"},
		{"models ignore odd names", withModels(summary(), 5, 1, 2, 1), list("odd", "1"), false, 16, "pods"},
		{"models and no requests", withModels(summary(), 1), list(), false, 16, "pods"},
		{"a negative count falls back to the sum", withModels(summary(), -1, 9), list("cpu", "1"), false, 2, "cpu"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := NewDemand(tc.request)
			d.Nothing = tc.nothing
			got, bound := NewCapacity(tc.cluster, true).Replicas(&d)
			if got != tc.want || d.BoundName(bound) != tc.bound {
				t.Errorf("got %d bound by %q, want %d by %q", got, d.BoundName(bound), tc.want, tc.bound)
			}
		})
	}
}

func component(n int32, request corev1.ResourceList) workv1alpha2.Component {
	return workv1alpha2.Component{Replicas: n, ReplicaRequirements: &workv1alpha2.ComponentReplicaRequirements{ResourceRequest: request}}
}

func TestCapacity_Sets(t *testing.T) {
	summary := func() *clusterv1alpha1.Cluster {
		return clusterOf(list("cpu", "10", "memory", "10Gi", "pods", "30"), nil, nil)
	}
	for _, tc := range []struct {
		name       string
		cluster    *clusterv1alpha1.Cluster
		components []workv1alpha2.Component
		want       int32
	}{
		{"sum of components", summary(), []workv1alpha2.Component{component(1, list("cpu", "1")), component(2, list("cpu", "500m"))}, 5},
		{"pods bound", summary(), []workv1alpha2.Component{component(10, nil), component(5, nil)}, 2},
		{"zero replicas ask for nothing", summary(), []workv1alpha2.Component{component(0, list("cpu", "1"))}, 30},
		{"formats of quantities may differ", summary(), []workv1alpha2.Component{component(1, list("memory", "1G"))}, 10},
		{"nodes must take whole replicas", withModels(summary(), 0, 0, 2, 1), []workv1alpha2.Component{component(1, list("cpu", "2")), component(1, list("cpu", "1500m"))}, 2},
		{"no node is large enough", withModels(summary(), 0, 0, 2), []workv1alpha2.Component{component(1, list("cpu", "3"))}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := NewSetDemand(tc.components)
			if got, _ := NewCapacity(tc.cluster, true).Sets(&s); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

func TestCapacity_Without(t *testing.T) {
	c := NewCapacity(withModels(clusterOf(list("cpu", "8", "pods", "30"), nil, nil), 0, 0, 2, 1), true)
	d := NewDemand(list("cpu", "2"))
	if got, _ := c.Replicas(&d); got != 4 {
		t.Fatalf("got %d, want 4", got)
	}
	left := c.Without([]Workload{{Components: []workv1alpha2.Component{component(3, list("cpu", "1"))}}})
	if got, _ := left.Replicas(&d); got != 2 {
		t.Errorf("three small replicas fill one node and half of the next: got %d, want 2", got)
	}
	if got, _ := c.Replicas(&d); got != 4 {
		t.Errorf("the capacity itself changed: got %d, want 4", got)
	}
}

func TestValue_DoesNotOverflow(t *testing.T) {
	huge := resource.MustParse("1e30")
	largest := *resource.NewQuantity(math.MaxInt64, resource.DecimalSI)
	for _, q := range []resource.Quantity{huge, largest} {
		negative := q.DeepCopy()
		negative.Neg()
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			if got := Value(name, q); got != math.MaxInt64 {
				t.Errorf("%s of %s is %d", q.String(), name, got)
			}
			if got := Value(name, negative); got > -math.MaxInt64 {
				t.Errorf("%s of %s is %d", negative.String(), name, got)
			}
		}
		d := NewDemand(corev1.ResourceList{corev1.ResourceCPU: q})
		if len(d.items) != 1 || d.items[0].amount != math.MaxInt64 {
			t.Errorf("the demand of %s is %+v", q.String(), d.items)
		}
	}
}
