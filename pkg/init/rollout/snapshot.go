package rollout

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
)

// snapshot is the workloads of a namespace, and their pods by the label app.
type snapshot struct {
	// at is when listing began.
	at          time.Time
	deployments map[string]*appsv1.Deployment
	sets        map[string]*appsv1.StatefulSet
	pods        map[string][]corev1.Pod
}

func list(ctx context.Context, api kubernetes.Interface, namespace string, at time.Time) (*snapshot, error) {
	s := &snapshot{at: at, deployments: map[string]*appsv1.Deployment{}, sets: map[string]*appsv1.StatefulSet{}, pods: map[string][]corev1.Pod{}}
	all := metav1.ListOptions{}
	deployments, err := api.AppsV1().Deployments(namespace).List(ctx, all)
	if err != nil {
		return nil, err
	}
	for i := range deployments.Items {
		s.deployments[deployments.Items[i].Name] = &deployments.Items[i]
	}
	sets, err := api.AppsV1().StatefulSets(namespace).List(ctx, all)
	if err != nil {
		return nil, err
	}
	for i := range sets.Items {
		s.sets[sets.Items[i].Name] = &sets.Items[i]
	}
	pods, err := api.CoreV1().Pods(namespace).List(ctx, all)
	if err != nil {
		return nil, err
	}
	for i := range pods.Items {
		app := pods.Items[i].Labels["app"]
		s.pods[app] = append(s.pods[app], pods.Items[i])
	}
	return s, nil
}

func (s *snapshot) has(workload string) bool {
	return s.deployments[workload] != nil || s.sets[workload] != nil
}

// unready returns how far a workload is, or nothing when it is rolled out.
func (s *snapshot) unready(name string) string {
	var wanted, updated, available, old int32
	var observed bool
	switch d, set := s.deployments[name], s.sets[name]; {
	case d != nil:
		wanted, observed = ptr.Deref(d.Spec.Replicas, 1), d.Status.ObservedGeneration >= d.Generation
		updated, available, old = d.Status.UpdatedReplicas, d.Status.AvailableReplicas, d.Status.Replicas-d.Status.UpdatedReplicas
	case set != nil:
		wanted, observed = ptr.Deref(set.Spec.Replicas, 1), set.Status.ObservedGeneration >= set.Generation
		updated, available = set.Status.UpdatedReplicas, set.Status.AvailableReplicas
	default:
		return "it to be there"
	}
	switch {
	case !observed:
		return "its pods to be made"
	case updated < wanted || available < wanted:
		return fmt.Sprintf("%d of %d pods ready", min(available, updated), wanted)
	case old > 0:
		return fmt.Sprintf("%d old pods to end", old)
	}
	return ""
}

// reason returns why the newest pod of a workload that is not ready is not, and whether waiting will not help.
func (s *snapshot) reason(workload string) (r Reason, stuck bool) {
	pods := slices.Clone(s.pods[workload])
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return b.CreationTimestamp.Compare(a.CreationTimestamp.Time) })
	for i := range pods {
		p := &pods[i]
		if p.DeletionTimestamp != nil || PodReady(p) {
			continue
		}
		return PodReason(p)
	}
	if len(pods) == 0 {
		return Reason{Text: s.noPods(workload)}, false
	}
	return Reason{Text: "it is becoming available"}, false
}

// noPods returns why a workload has no pods.
func (s *snapshot) noPods(workload string) string {
	if d := s.deployments[workload]; d != nil {
		for _, c := range d.Status.Conditions {
			if c.Status == corev1.ConditionTrue && c.Type == appsv1.DeploymentReplicaFailure {
				return c.Message
			}
		}
	}
	return "no pod was made yet"
}
