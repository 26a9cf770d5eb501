//go:build integration

// Covers internal/status.

package controllers_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/status"
	"github.com/karmada-toolkit/karmada/internal/testenv"
)

func statusDeployment() *appsv1.Deployment {
	labels := map[string]string{"app": "a"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
			},
		},
	}
}

func getDeployment(t *testing.T, c client.Client) *appsv1.Deployment {
	t.Helper()
	out := &appsv1.Deployment{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "a"}, out); err != nil {
		t.Fatal(err)
	}
	return out
}

func withReplicas(n int32) func(*appsv1.DeploymentStatus) {
	return func(s *appsv1.DeploymentStatus) { s.Replicas = n }
}

func withProgressing(s *appsv1.DeploymentStatus) {
	s.Conditions = append(s.Conditions, appsv1.DeploymentCondition{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue})
}

// TestWriter_RealAPIServer checks lag, conflicts and the restore of a backup of etcd.
func TestWriter_RealAPIServer(t *testing.T) {
	t.Parallel()
	cluster := testenv.Start(t, testenv.ControlPlane())
	c := newClient(t, cluster)
	clock := clocktesting.NewFakeClock(time.Unix(1000, 0))
	newWriter := func(c client.Client) *status.Writer[*appsv1.Deployment, *appsv1.DeploymentStatus] {
		return status.NewWriter(status.Options[*appsv1.Deployment, *appsv1.DeploymentStatus]{
			Get:    func(d *appsv1.Deployment) *appsv1.DeploymentStatus { return &d.Status },
			Set:    func(d *appsv1.Deployment, s *appsv1.DeploymentStatus) { d.Status = *s },
			Shared: []string{"conditions"},
			Client: c, Live: c, Clock: clock,
		})
	}
	w := newWriter(c)
	var written status.Written[*appsv1.DeploymentStatus]
	write := func(cached *appsv1.Deployment, change func(*appsv1.DeploymentStatus), want bool) {
		t.Helper()
		if wrote, err := w.Write(t.Context(), cached, &written, change); err != nil || wrote != want {
			t.Fatalf("wrote %t, want %t, %v", wrote, want, err)
		}
	}
	if err := c.Create(t.Context(), statusDeployment()); err != nil {
		t.Fatal(err)
	}
	created := getDeployment(t, c)

	other := created.DeepCopy()
	other.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue}}
	if err := c.Status().Update(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	write(created, withProgressing, true) // a conflict, as the cache shows the Deployment from before the other write
	if got := getDeployment(t, c).Status.Conditions; len(got) != 2 {
		t.Errorf("the stored conditions are %v", got)
	}
	write(created, func(*appsv1.DeploymentStatus) {}, false)

	cluster.Stop(t)
	etcd, backup := filepath.Join(cluster.DataDir, "etcd"), filepath.Join(t.TempDir(), "etcd")
	copyDir(t, backup, etcd)
	cluster.Restart(t)
	c = newClient(t, cluster)
	w = newWriter(c)
	write(getDeployment(t, c), withReplicas(3), true)
	write(created, withReplicas(3), false) // a lagging cache

	cluster.Stop(t)
	if err := os.RemoveAll(etcd); err != nil {
		t.Fatal(err)
	}
	copyDir(t, etcd, backup)
	cluster.Restart(t)
	c = newClient(t, cluster)
	w = newWriter(c)
	restored := getDeployment(t, c)
	if restored.Status.Replicas != 0 {
		t.Fatal("the restore did not undo the write")
	}
	write(restored, withReplicas(3), false) // within the TTL it may be a lagging cache
	clock.Step(status.WrittenTTL)
	write(restored, withReplicas(3), true)
	if got := getDeployment(t, c).Status; got.Replicas != 3 || len(got.Conditions) != 2 {
		t.Errorf("the stored status is %v", got)
	}
}

func copyDir(t *testing.T, to, from string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(to, 0o700); err != nil {
		t.Fatal(err)
	}
}
