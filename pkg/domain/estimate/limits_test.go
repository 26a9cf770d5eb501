package estimate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/replicas"
)

// huge returns a cluster whose nodes take any number of pods.
func huge(nodes int) *Snapshot {
	var m Model
	for i := range nodes {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%04d", i)}}
		n.Status.Allocatable = corev1.ResourceList{"pods": *resource.NewQuantity(math.MaxInt64, resource.DecimalSI), "cpu": resource.MustParse("1k")}
		m.SetNode(NodeOf(n))
	}
	return m.Snapshot()
}

func component0(replicas int32, requests corev1.ResourceList) workv1alpha2.Component {
	return workv1alpha2.Component{Name: "c", Replicas: replicas, ReplicaRequirements: &workv1alpha2.ComponentReplicaRequirements{ResourceRequest: requests}}
}

// Estimates of numbers of any size end: a walk replica by replica would not in the time of a test.
func TestSets_EndsForHugeNumbers(t *testing.T) {
	cpu := corev1.ResourceList{"cpu": resource.MustParse("1m")}
	largest := corev1.ResourceList{"cpu": *resource.NewQuantity(math.MaxInt64, resource.DecimalSI)}
	s := huge(500)
	for name, tc := range map[string]struct {
		components []workv1alpha2.Component
		want       int32
	}{
		"no components":           {nil, Unlimited},
		"no replicas":             {[]workv1alpha2.Component{component0(0, cpu), component0(-1, cpu)}, Unlimited},
		"nothing but pods":        {[]workv1alpha2.Component{component0(1, nil)}, Unlimited},
		"two components":          {[]workv1alpha2.Component{component0(1, nil), component0(3, cpu)}, 500_000_000 / 3},
		"replicas over all nodes": {[]workv1alpha2.Component{component0(math.MaxInt32, cpu)}, 0},
		"spread over nodes":       {[]workv1alpha2.Component{component0(1_500_000, cpu)}, 333},
		"largest request":         {[]workv1alpha2.Component{component0(math.MaxInt32, largest)}, 0},
		"unknown resource":        {[]workv1alpha2.Component{component0(1, corev1.ResourceList{"example.com/none": resource.MustParse("1")})}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := s.Sets(t.Context(), tc.components, nil); err != nil || got != tc.want {
				t.Errorf("%d sets, want %d: %v", got, tc.want, err)
			}
		})
	}
	r := &workv1alpha2.ReplicaRequirements{}
	if got, err := s.Replicas(t.Context(), r, []replicas.Workload{{Components: []workv1alpha2.Component{component0(math.MaxInt32, cpu)}}}); err != nil || got != Unlimited {
		t.Errorf("%d replicas: %v", got, err)
	}
}

func TestEstimates_EndWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := huge(1)
	_, err1 := s.Replicas(ctx, nil, nil)
	_, err2 := s.Sets(ctx, []workv1alpha2.Component{component0(1, nil)}, nil)
	_, err3 := s.Replicas(ctx, nil, []replicas.Workload{{}})
	for _, err := range []error{err1, err2, err3} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	}
}

// A member with more resources than are kept has them counted as missing, and nothing grows without limit.
func TestModel_LimitsResources(t *testing.T) {
	var m Model
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	n.Status.Allocatable = corev1.ResourceList{"pods": resource.MustParse("10")}
	for i := range 2 * maxResources {
		n.Status.Allocatable[corev1.ResourceName(fmt.Sprintf("example.com/r%d", i))] = resource.MustParse("1")
	}
	m.SetNode(NodeOf(n))
	if got := len(m.Snapshot().free); got != maxResources {
		t.Errorf("%d resources are kept", got)
	}
}

func TestQuota(t *testing.T) {
	quota := QuotaOf(&corev1.ResourceQuota{Status: corev1.ResourceQuotaStatus{
		Hard: corev1.ResourceList{"requests.cpu": resource.MustParse("10"), "memory": resource.MustParse("8Gi"), "limits.cpu": resource.MustParse("1")},
		Used: corev1.ResourceList{"requests.cpu": resource.MustParse("4"), "memory": resource.MustParse("9Gi"), "limits.cpu": resource.MustParse("1")},
	}})
	assumed := []replicas.Workload{
		{Namespace: "ns", Components: []workv1alpha2.Component{component0(2, corev1.ResourceList{"cpu": resource.MustParse("2")})}},
		{Namespace: "other", Components: []workv1alpha2.Component{component0(9, corev1.ResourceList{"cpu": resource.MustParse("2")})}},
	}
	for name, tc := range map[string]struct {
		request corev1.ResourceList
		assumed []replicas.Workload
		want    int32
	}{
		"cpu":                      {corev1.ResourceList{"cpu": resource.MustParse("1500m")}, nil, 4},
		"assumed in the namespace": {corev1.ResourceList{"cpu": resource.MustParse("1")}, assumed, 2},
		"assumed takes all":        {corev1.ResourceList{"cpu": resource.MustParse("1")}, append(assumed, assumed[0]), 0},
		"exceeded":                 {corev1.ResourceList{"memory": resource.MustParse("1Gi")}, nil, -1},
		"not limited":              {corev1.ResourceList{"example.com/gpu": resource.MustParse("1")}, nil, Unlimited},
		"nothing":                  {nil, nil, Unlimited},
	} {
		t.Run(name, func(t *testing.T) {
			r := &workv1alpha2.ReplicaRequirements{Namespace: "ns", ResourceRequest: tc.request}
			if got := QuotaReplicas([]Quota{quota}, r, tc.assumed); got != tc.want {
				t.Errorf("%d, want %d", got, tc.want)
			}
		})
	}
}

// That the nodes have no room for a set is final; for replicas the exceeded quota is the smaller answer.
func TestFacts_NodesWithoutRoomAndAnExceededQuota(t *testing.T) {
	var m Model
	m.SetNode(Node{Name: "n"}) // no pods fit
	quota := QuotaOf(&corev1.ResourceQuota{Status: corev1.ResourceQuotaStatus{
		Hard: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}, Used: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")},
	}})
	f := &Facts{Nodes: m.Snapshot(), Quotas: func(string) []Quota { return []Quota{quota} }}
	request := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	if n, err := f.Replicas(t.Context(), &workv1alpha2.ReplicaRequirements{Namespace: "ns", ResourceRequest: request}, nil); n != -3 || err != nil {
		t.Errorf("%d replicas, %v", n, err)
	}
	sets := []workv1alpha2.Component{{Name: "c", Replicas: 1, ReplicaRequirements: &workv1alpha2.ComponentReplicaRequirements{ResourceRequest: request}}}
	if n, err := f.Sets(t.Context(), "ns", sets, nil); n != 0 || err != nil {
		t.Errorf("%d sets, %v", n, err)
	}
}
