package rollout

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/karmada-toolkit/karmada/pkg/init/components"
)

func podOf(app string, status corev1.PodStatus) corev1.Pod {
	return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: app + "-0", Labels: map[string]string{"app": app}}, Status: status}
}

func waits(reason, message string, restarts int32) corev1.PodStatus {
	return corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
		Image: "image:v1", RestartCount: restarts,
		State:                corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}},
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 2}},
	}}}
}

func TestReason(t *testing.T) {
	for name, tc := range map[string]struct {
		app    string
		status corev1.PodStatus
		want   string
		stuck  bool
	}{
		"unschedulable":   {"a", corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "no node"}}}, "pod a-0 cannot be scheduled: no node", false},
		"a missing image": {"a", waits("ImagePullBackOff", "not found", 0), "pod a-0 cannot get image image:v1: ImagePullBackOff: not found", true},
		"a crash":         {"a", waits("CrashLoopBackOff", "", 5), "pod a-0 crashed 5 times, last with exit code 2", false},
		"a crash of etcd": {components.Etcd, waits("CrashLoopBackOff", "", 2), "pod etcd-0 crashed 2 times, last with exit code 2", true},
		"being started":   {"a", waits("ContainerCreating", "", 0), "pod a-0 is being started: ContainerCreating", false},
		"a bad container": {"a", waits("CreateContainerConfigError", "no Secret", 0), "pod a-0 cannot start its container: CreateContainerConfigError: no Secret", true},
		"running":         {"a", corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}}, "pod a-0 runs, but is not ready yet", false},
	} {
		t.Run(name, func(t *testing.T) {
			v := &snapshot{pods: map[string][]corev1.Pod{tc.app: {podOf(tc.app, tc.status)}}}
			got, stuck := v.reason(tc.app)
			if got.Text != tc.want || stuck != tc.stuck {
				t.Errorf("got %q, %t", got.Text, stuck)
			}
		})
	}
}

func TestReason_OfTheNewestPodThatIsNotReady(t *testing.T) {
	old, fresh := podOf("a", waits("ContainerCreating", "", 0)), podOf("a", waits("ErrImagePull", "no", 0))
	old.CreationTimestamp, fresh.CreationTimestamp = metav1.NewTime(time.Unix(1, 0)), metav1.NewTime(time.Unix(2, 0))
	v := &snapshot{pods: map[string][]corev1.Pod{"a": {old, fresh}}}
	if got, _ := v.reason("a"); !strings.Contains(got.Text, "ErrImagePull") {
		t.Errorf("got %q", got.Text)
	}
	forbidden := &appsv1.Deployment{Status: appsv1.DeploymentStatus{Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Message: "exceeded quota"}}}}
	v = &snapshot{deployments: map[string]*appsv1.Deployment{"a": forbidden}}
	if got, _ := v.reason("a"); got.Text != "exceeded quota" {
		t.Errorf("without pods: %q", got.Text)
	}
}

func TestUnready(t *testing.T) {
	d := func(generation int64, s appsv1.DeploymentStatus) *snapshot {
		return &snapshot{deployments: map[string]*appsv1.Deployment{"a": {ObjectMeta: metav1.ObjectMeta{Generation: generation}, Spec: appsv1.DeploymentSpec{Replicas: new(int32(2))}, Status: s}}}
	}
	for name, tc := range map[string]struct {
		snapshot *snapshot
		want     string
	}{
		"nothing there":        {&snapshot{}, "it to be there"},
		"not observed":         {d(2, appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 2, UpdatedReplicas: 2, AvailableReplicas: 2}), "its pods to be made"},
		"some ready":           {d(1, appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 2, UpdatedReplicas: 2, AvailableReplicas: 1}), "1 of 2 pods ready"},
		"old ones ready":       {d(1, appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 3, UpdatedReplicas: 1, AvailableReplicas: 2}), "1 of 2 pods ready"},
		"old ones left":        {d(1, appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 3, UpdatedReplicas: 2, AvailableReplicas: 3}), "1 old pods to end"},
		"rolled out":           {d(1, appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 2, UpdatedReplicas: 2, AvailableReplicas: 2}), ""},
		"a set that rolls out": {&snapshot{sets: map[string]*appsv1.StatefulSet{"a": {Spec: appsv1.StatefulSetSpec{Replicas: new(int32(3))}, Status: appsv1.StatefulSetStatus{UpdatedReplicas: 3, AvailableReplicas: 2}}}}, "2 of 3 pods ready"},
	} {
		if got := tc.snapshot.unready("a"); got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

func TestShorten(t *testing.T) {
	for line, want := range map[string]string{
		`E1121 10:40:28.618612       1 run.go:72] "command failed" err="x"`:          `"command failed" err="x"`,
		`{"level":"fatal","msg":"discovery failed","error":"read-only file system"}`: "discovery failed: read-only file system",
		`{"level":"info","msg":"hello"}`:                                             "hello",
		"plain":                                                                      "plain",
	} {
		if got := shorten(line); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := shorten(strings.Repeat("ä", 400)); len([]rune(got)) != 301 {
		t.Errorf("a long line has %d characters", len([]rune(got)))
	}
}

func TestErrorLine(t *testing.T) {
	for log, want := range map[string]string{
		"flag provided but not defined: -x\nUsage:\n  a\n": "flag provided but not defined: -x",
		"one\ntwo\n\n": "two",
		"E1121 10:40:28.618612       1 run.go:72] first\nI1121 10:40:28.618612       1 run.go:72] second": "first",
		"": "",
	} {
		if got := errorLine(log); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
