package describe

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/karmada-toolkit/karmada/internal/build"
	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/operate/failover"
)

func TestSummary(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	list := func(cpu, memory, pods string) corev1.ResourceList {
		return corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse(memory), "pods": resource.MustParse(pods)}
	}
	healthy := &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "member1"},
		Spec:       clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Push, ImpersonatorSecretRef: &clusterv1alpha1.LocalSecretReference{}},
		Status: clusterv1alpha1.ClusterStatus{
			KubernetesVersion: "v1.36.3",
			Conditions: []metav1.Condition{{Type: "Ready", Status: "True", Reason: "ClusterReady", Message: "cluster is healthy and ready to accept workloads",
				LastTransitionTime: metav1.NewTime(now.Add(-time.Hour))}},
			NodeSummary: &clusterv1alpha1.NodeSummary{TotalNum: 2, ReadyNum: 2},
			ResourceSummary: &clusterv1alpha1.ResourceSummary{
				Allocatable: list("16", "128Gi", "500"), Allocated: list("1500m", "1Gi", "3"), Allocating: list("500m", "0", "1"),
			},
			APIEnablements: []clusterv1alpha1.APIEnablement{
				{GroupVersion: "v1", Resources: make([]clusterv1alpha1.APIResource, 20)}, {GroupVersion: "apps/v1", Resources: make([]clusterv1alpha1.APIResource, 5)},
			},
		},
	}
	healthy.Status.Conditions = append(healthy.Status.Conditions, metav1.Condition{Type: "EvictionsStopped", Status: "False", Reason: "EvictionsResumed"})
	ill := healthy.DeepCopy()
	ill.Spec.Taints = []corev1.Taint{
		{Key: "cluster.karmada.io/unschedulable", Effect: corev1.TaintEffectNoSchedule}, {Key: "dedicated", Value: "gpu", Effect: corev1.TaintEffectNoExecute},
	}
	ill.Spec.ImpersonatorSecretRef = nil
	ill.Status.NodeSummary.ReadyNum = 1
	ill.Status.ResourceSummary.Allocated = list("20", "1Gi", "3")
	ill.Status.Conditions = []metav1.Condition{
		{Type: "Ready", Status: "False", Reason: "ClusterNotReachable", Message: "cluster is not\nreachable"},
		{Type: "CompleteAPIEnablements", Status: "False", Reason: "Empty"},
		{Type: "OrphanedObjects", Status: "True", Reason: "Orphans", Message: "3 objects"},
		{Type: "APIEndpointAccepted", Status: "False", Reason: "EndpointRefused", Message: "it is a loopback address"},
		{Type: "EvictionsStopped", Status: "True", Reason: "MassFailure", Message: "2 of 3 clusters failed"},
	}
	tainted := healthy.DeepCopy()
	tainted.Spec.Taints = []corev1.Taint{
		{Key: "dedicated", Value: "gpu", Effect: corev1.TaintEffectNoSchedule}, {Key: "slow", Effect: corev1.TaintEffectPreferNoSchedule},
	}
	flapping := healthy.DeepCopy()
	flapping.Annotations = map[string]string{clusterv1alpha1.FlappingUntilAnnotation: "2026-05-01T12:05:00Z"}
	flapping.Spec.Taints = []corev1.Taint{{Key: clusterv1alpha1.TaintClusterFlapping, Effect: corev1.TaintEffectNoSchedule}}
	tainted.Status.ResourceSummary.Allocatable = list("3920m", "24684084Ki", "110")
	tainted.Status.ResourceSummary.Allocated = list("950m", "368Mi", "9")
	for name, c := range map[string]*clusterv1alpha1.Cluster{
		"healthy": healthy, "ill": ill, "tainted": tainted, "flapping": flapping,
		"new": {ObjectMeta: metav1.ObjectMeta{Name: "member2"}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Pull}},
	} {
		t.Run(name, func(t *testing.T) {
			var evictions []failover.Eviction
			if name == "ill" {
				for i := range maxEvictions + 2 {
					evictions = append(evictions, failover.Eviction{Namespace: "shop", Workload: fmt.Sprintf("deployment/web%d", i), Replicas: int32(i), Phase: failover.UnderWay, Reason: "TaintUntolerated", At: now.Add(-time.Minute)})
				}
				evictions[1].Namespace = ""
			}
			text, err := summary(c, evictions, now)
			if err != nil {
				t.Fatal(err)
			}
			build.AssertGolden(t, "summary-"+name, text)
		})
	}
}

func TestWithoutSection(t *testing.T) {
	in := "Name: m\nStatus:\n  API Enablements:\n    Group Version:  v1\n    Resources:\n      Kind: Pod\n  Conditions:\n    Type: Ready\nEvents:  <none>\n"
	want := "Name: m\nStatus:\n  Conditions:\n    Type: Ready\nEvents:  <none>\n"
	if got := withoutSection(in, "API Enablements"); got != want {
		t.Errorf("got\n%s", got)
	}
}

func TestMasked(t *testing.T) {
	c := &clusterv1alpha1.Cluster{Spec: clusterv1alpha1.ClusterSpec{ProxyURL: "http://user:hunter2@proxy:3128", ProxyHeader: map[string]string{"X-B": "a", "Authorization": "hunter2"}}}
	in := "Name: m\nSpec:\n  Proxy Header:\n    Authorization:  hunter2\n    X-B: a\n  Proxy URL:  http://user:hunter2@proxy:3128\n  Sync Mode:  Push\n"
	if got, want := masked(in, c), "Name: m\nSpec:\n  Proxy URL:  http://***@proxy:3128\n  Sync Mode:  Push\n"; got != want {
		t.Errorf("got\n%s", got)
	}
	head, err := summary(c, nil, time.Now())
	if err != nil || strings.Contains(head, "hunter2") || !strings.Contains(head, "2, whose values are not shown") {
		t.Errorf("%s, %v", head, err)
	}
}
