package rollout

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/karmada-toolkit/karmada/internal/wait"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
)

// track runs a Tracker of a Deployment with one pod, and returns its report, what was published and the error of the wait.
// The Deployment is available after ready; 0 is never.
func track(t *testing.T, status corev1.PodStatus, ready, timeout time.Duration) (report string, published []string, err error) {
	t.Helper()
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: components.Webhook},
		Spec:       appsv1.DeploymentSpec{Replicas: new(int32(1))},
		Status:     appsv1.DeploymentStatus{Replicas: 1, UpdatedReplicas: 1},
	}
	pod := podOf(components.Webhook, status)
	pod.Namespace = "ns"
	api := fake.NewClientset([]runtime.Object{d, &pod}...)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	tracker := NewTracker(api, "ns", time.Now, nil)
	go tracker.Run(ctx)
	if ready > 0 {
		time.AfterFunc(ready, func() {
			d.Status.AvailableReplicas = 1
			if _, err := api.AppsV1().Deployments("ns").UpdateStatus(ctx, d, metav1.UpdateOptions{}); err != nil {
				t.Error(err)
			}
		})
	}
	err = tracker.Wait(ctx, components.Webhook, timeout, func(what string) { published = append(published, what) })
	return tracker.Report(ctx, components.Webhook), published, err
}

func TestTracker_Wait(t *testing.T) {
	for name, tc := range map[string]struct {
		status    corev1.PodStatus
		ready     time.Duration
		want      string
		published []string
	}{
		"ready after five seconds": {waits("ContainerCreating", "", 0), 5 * time.Second, "", []string{"0 of 1 pods ready", "0 of 1 pods ready"}},
		"never ready":              {waits("ContainerCreating", "", 0), 0, "timed out after 9.5s", slices.Repeat([]string{"0 of 1 pods ready"}, 4)},
		"an image that is missing": {waits("ErrImagePull", "no", 0), 0, "0 of 1 pods ready: pod karmada-webhook-0 cannot get image image:v1: ErrImagePull: no", slices.Repeat([]string{"0 of 1 pods ready"}, 4)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				report, published, err := track(t, tc.status, tc.ready, 9500*time.Millisecond)
				if (tc.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tc.want) {
					t.Errorf("got %v, want %q", err, tc.want)
				}
				if (tc.want == "") != (report == "") || report != "" && !strings.Contains(report, "\n  karmada-webhook: 0 of 1 pods ready: pod karmada-webhook-0 ") {
					t.Errorf("report: %s", report)
				}
				if !slices.Equal(published, tc.published) {
					t.Errorf("published %q, want %q", published, tc.published)
				}
			})
		})
	}
}

func TestTracker_WaitEndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := NewTracker(fake.NewClientset(), "ns", time.Now, nil).Wait(ctx, "x", time.Hour, nil)
	if !errors.Is(err, context.Canceled) || errors.Is(err, wait.ErrTimeout) {
		t.Errorf("got %v", err)
	}
}
