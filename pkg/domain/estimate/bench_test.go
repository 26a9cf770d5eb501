package estimate

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

const (
	benchNodes = 1000
	benchPods  = 30_000
)

// benchCluster returns a cluster as a model and as objects.
func benchCluster() (*Model, *naive) {
	m, plain := &Model{}, &naive{pods: map[string][]*corev1.Pod{}}
	for i := range benchNodes {
		n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%04d", i), Labels: map[string]string{
			"kubernetes.io/hostname": fmt.Sprintf("node-%04d", i), "topology.kubernetes.io/zone": fmt.Sprint("zone-", i%3), "disk": []string{"ssd", "hdd"}[i%2],
		}}}
		n.Status.Allocatable = corev1.ResourceList{
			"cpu": resource.MustParse("63500m"), "memory": resource.MustParse("250Gi"), "ephemeral-storage": resource.MustParse("400Gi"), "pods": resource.MustParse("110"),
		}
		if i%10 == 0 {
			n.Spec.Taints = []corev1.Taint{{Key: "dedicated", Value: "gpu", Effect: corev1.TaintEffectNoSchedule}}
			n.Status.Allocatable["nvidia.com/gpu"] = resource.MustParse("8")
		}
		m.SetNode(NodeOf(&n))
		plain.nodes = append(plain.nodes, n)
	}
	for i := range benchPods {
		p := benchPod(i, i)
		kept, _ := PodOf(p)
		m.ReplacePod(nil, &kept)
		plain.pods[p.Spec.NodeName] = append(plain.pods[p.Spec.NodeName], p)
	}
	return m, plain
}

func benchPod(i, node int) *corev1.Pod {
	return &corev1.Pod{Spec: corev1.PodSpec{NodeName: fmt.Sprintf("node-%04d", node%benchNodes), Containers: []corev1.Container{
		{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(fmt.Sprintf("%dm", 100+i%900)), "memory": resource.MustParse("1Gi")}}},
		{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("50m"), "memory": resource.MustParse("128Mi")}}},
	}}}
}

func benchRequests() map[string]*workv1alpha2.ReplicaRequirements {
	some := corev1.ResourceList{"cpu": resource.MustParse("500m"), "memory": resource.MustParse("1Gi")}
	return map[string]*workv1alpha2.ReplicaRequirements{
		"plain":    {ResourceRequest: some},
		"selector": {ResourceRequest: some, NodeClaim: &workv1alpha2.NodeClaim{NodeSelector: map[string]string{"disk": "ssd"}}},
		"gpu": {
			ResourceRequest: corev1.ResourceList{"cpu": resource.MustParse("4"), "nvidia.com/gpu": resource.MustParse("1")},
			NodeClaim:       &workv1alpha2.NodeClaim{Tolerations: []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpExists}}},
		},
	}
}

// BenchmarkReplicas answers requests while a pod changes before every tenth.
func BenchmarkReplicas(b *testing.B) {
	m, _ := benchCluster()
	for name, r := range benchRequests() {
		b.Run(name, func(b *testing.B) {
			var last *Pod
			i := 0
			for b.Loop() {
				if i++; i%10 == 0 {
					p, _ := PodOf(benchPod(i, i*7))
					m.ReplacePod(last, &p)
					last = &p
				}
				if n, err := m.Snapshot().Replicas(b.Context(), r, nil); err != nil || n == 0 {
					b.Fatal(n, err)
				}
			}
			m.ReplacePod(last, nil)
		})
	}
}

// BenchmarkSets estimates sets of two components.
func BenchmarkSets(b *testing.B) {
	m, _ := benchCluster()
	some := benchRequests()["plain"].ResourceRequest
	components := []workv1alpha2.Component{component0(1, some), component0(4, some)}
	for b.Loop() {
		if n, err := m.Snapshot().Sets(b.Context(), components, nil); err != nil || n == 0 {
			b.Fatal(n, err)
		}
	}
}

// BenchmarkNaive walks over all nodes and their pods for every request: the baseline.
func BenchmarkNaive(b *testing.B) {
	_, plain := benchCluster()
	for name, r := range benchRequests() {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if plain.replicas(r, nil) == 0 {
					b.Fatal("nothing fits")
				}
			}
		})
	}
}
