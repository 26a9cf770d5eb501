package estimator

import (
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/estimator/pb"
)

func requirements(t *testing.T, cpu string) *pb.ReplicaRequirements {
	t.Helper()
	out, err := pb.FromReplicaRequirements(&workv1alpha2.ReplicaRequirements{
		Namespace: "ns", ResourceRequest: corev1.ResourceList{"cpu": resource.MustParse(cpu)},
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// replicasOf returns the estimate for replicas of one cpu, or -1.
func replicasOf(t *testing.T, c pb.EstimatorClient) int32 {
	t.Helper()
	answer, err := c.MaxAvailableReplicas(t.Context(), &pb.MaxAvailableReplicasRequest{Cluster: "m1", ReplicaRequirements: requirements(t, "1")})
	if err != nil {
		return -1
	}
	return answer.MaxReplicas
}

func TestServer_FollowsTheCluster(t *testing.T) {
	a := newAPI(t, map[string][]any{"nodes": {node("n1", "4", "110")}, "pods": {podOn("a", "n1", "1")}})
	_, address := start(t, a, NewOptions())
	c := dial(t, address)
	want := func(what string, n int32) {
		t.Helper()
		eventually(t, what, func() bool { return replicasOf(t, c) == n })
	}
	want("first state", 3)
	a.send("nodes", "ADDED", node("n2", "8", "110"))
	want("a node is added", 11)
	a.send("pods", "ADDED", podOn("b", "n2", "2500m"))
	want("a pod is added", 8)
	done := podOn("b", "n2", "2500m")
	done.Status.Phase = corev1.PodSucceeded
	a.send("pods", "DELETED", done) // the field selector turns the end of a pod into a deletion
	want("a pod ends", 11)
	cordoned := node("n2", "8", "110")
	cordoned.Spec.Unschedulable = true
	a.send("nodes", "MODIFIED", cordoned)
	want("a node is cordoned", 3)
	a.send("resourcequotas", "ADDED", &corev1.ResourceQuota{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ResourceQuota"}, ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "q", ResourceVersion: "2"},
		Status: corev1.ResourceQuotaStatus{Hard: corev1.ResourceList{"cpu": resource.MustParse("3")}, Used: corev1.ResourceList{"cpu": resource.MustParse("2")}},
	})
	want("a quota is added", 1)
	a.send("resourcequotas", "MODIFIED", &corev1.ResourceQuota{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ResourceQuota"}, ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "q", ResourceVersion: "3"},
		Status: corev1.ResourceQuotaStatus{Hard: corev1.ResourceList{"cpu": resource.MustParse("3")}, Used: corev1.ResourceList{"cpu": resource.MustParse("4")}},
	})
	want("a quota is exceeded", 0)
}

func TestServer_CountsUnschedulableReplicas(t *testing.T) {
	controller := true
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}}}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "d"}}
	deployment.Spec.Selector, deployment.Spec.Template = &metav1.LabelSelector{MatchLabels: template.Labels}, template
	rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: "web-1", UID: "rs", OwnerReferences: []metav1.OwnerReference{{UID: "d", Controller: &controller}},
	}}
	rs.Spec.Template = *template.DeepCopy()
	rs.Spec.Template.Labels["pod-template-hash"] = "1"
	waiting := podOn("p", "", "100")
	waiting.Labels, waiting.OwnerReferences = template.Labels, []metav1.OwnerReference{{UID: "rs", Controller: &controller}}
	waiting.Status.Conditions = []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, LastTransitionTime: metav1.NewTime(time.Now().Add(-time.Minute)),
	}}
	a := newAPI(t, map[string][]any{"nodes": {node("n1", "4", "110")}, "pods": {waiting}, "deployments": {deployment}, "replicasets": {rs}})
	s, address := start(t, a, NewOptions())
	c := dial(t, address)
	eventually(t, "the cluster is read", func() bool { return s.cluster.workloadsReady() == nil })
	for name, tc := range map[string]struct {
		ref       *pb.ObjectReference
		threshold time.Duration
		want      int32
		err       string
	}{
		"longer than the threshold":  {&pb.ObjectReference{Kind: "Deployment", Namespace: "ns", Name: "web"}, 30 * time.Second, 1, ""},
		"shorter than the threshold": {&pb.ObjectReference{Kind: "Deployment", Namespace: "ns", Name: "web"}, time.Hour, 0, ""},
		"unknown":                    {&pb.ObjectReference{Kind: "Deployment", Namespace: "ns", Name: "none"}, 0, 0, "does not exist"},
		"other kind":                 {&pb.ObjectReference{Kind: "Job", Namespace: "ns", Name: "web"}, 0, 0, "kind(Job) of workload(ns/web) is not supported"},
		"nothing":                    {nil, 0, 0, "resource is nil"},
	} {
		answer, err := c.GetUnschedulableReplicas(t.Context(), &pb.UnschedulableReplicasRequest{Cluster: "m1", Resource: tc.ref, UnschedulableThreshold: int64(tc.threshold)})
		if tc.err == "" && (err != nil || answer.UnschedulableReplicas != tc.want) || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
			t.Errorf("%s: %v %v, want %d %q", name, answer, err, tc.want, tc.err)
		}
	}
}

func TestServer_RefusesUntilTheClusterIsRead(t *testing.T) {
	a := newAPI(t, map[string][]any{"nodes": {node("n1", "4", "110")}})
	a.setBroken(true)
	s, address := start(t, a, NewOptions())
	c := dial(t, address)
	_, err := c.MaxAvailableReplicas(t.Context(), &pb.MaxAvailableReplicasRequest{Cluster: "m1"})
	if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "failed to estimate replicas: ") {
		t.Errorf("got %v", err)
	}
	if s.cluster.ready() == nil {
		t.Error("it is ready without having read the cluster")
	}
	a.setBroken(false)
	eventually(t, "the cluster is read", func() bool { return replicasOf(t, c) == 4 })
}

func TestServer_RefusesAnotherCluster(t *testing.T) {
	_, address := start(t, newAPI(t, nil), NewOptions())
	_, err := dial(t, address).MaxAvailableComponentSets(t.Context(), &pb.MaxAvailableComponentSetsRequest{Cluster: "m2"})
	if err == nil || !strings.Contains(err.Error(), "cluster name does not match, got: m2, desire: m1") {
		t.Errorf("got %v", err)
	}
}

func TestServer_AssumedWorkloadsCountWithTheGate(t *testing.T) {
	a := newAPI(t, map[string][]any{"nodes": {node("n1", "4", "110")}})
	s, address := start(t, a, NewOptions())
	c := dial(t, address)
	eventually(t, "the cluster is read", func() bool { return s.cluster.ready() == nil })
	components, err := pb.FromComponents([]workv1alpha2.Component{{Name: "c", Replicas: 3, ReplicaRequirements: &workv1alpha2.ComponentReplicaRequirements{
		ResourceRequest: corev1.ResourceList{"cpu": resource.MustParse("1")},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	for overcommit, want := range map[bool]int32{true: 1, false: 4} {
		s.overcommit = overcommit
		answer, err := c.MaxAvailableReplicas(context.WithoutCancel(t.Context()), &pb.MaxAvailableReplicasRequest{
			Cluster: "m1", ReplicaRequirements: requirements(t, "1"), AssumedWorkloads: []*pb.AssumedWorkload{{Namespace: "ns", Components: components}},
		})
		if err != nil || answer.MaxReplicas != want {
			t.Errorf("gate %v: %v %v, want %d", overcommit, answer, err, want)
		}
	}
}
