package kubelite_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/karmada-toolkit/karmada/internal/kubelite/ready"
	"github.com/karmada-toolkit/karmada/internal/testenv"
)

const limit = time.Minute

func clientOf(t *testing.T, c *testenv.Cluster) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func podTemplate(app string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": app}},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyAlways,
			Containers:    []corev1.Container{{Name: app, Image: app}},
		},
	}
}

func deployment(name string, replicas int32) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(replicas),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
			Template: podTemplate(name),
		},
	}
}

func job(name string) *batchv1.Job {
	template := podTemplate(name)
	template.Spec.RestartPolicy = corev1.RestartPolicyNever
	return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: batchv1.JobSpec{Template: template}}
}

func namespace(t *testing.T, client kubernetes.Interface, name string) {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := client.CoreV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestMember_RunsWorkloads(t *testing.T) {
	t.Parallel()
	c := testenv.Start(t, testenv.Member("m1", 2))
	client := clientOf(t, c)
	namespace(t, client, "work")

	if _, err := client.AppsV1().Deployments("work").Create(t.Context(), deployment("web", 3), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.BatchV1().Jobs("work").Create(t.Context(), job("task"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, limit, func(ctx context.Context) error {
		d, err := client.AppsV1().Deployments("work").Get(ctx, "web", metav1.GetOptions{})
		if err == nil && d.Status.AvailableReplicas != 3 {
			err = fmt.Errorf("deployment has status %+v", d.Status)
		}
		return err
	})
	testenv.Eventually(t, limit, func(ctx context.Context) error {
		j, err := client.BatchV1().Jobs("work").Get(ctx, "task", metav1.GetOptions{})
		if err == nil && j.Status.CompletionTime == nil {
			err = fmt.Errorf("job has status %+v", j.Status)
		}
		return err
	})
	pods, err := client.CoreV1().Pods("work").List(t.Context(), metav1.ListOptions{LabelSelector: "app=web"})
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods.Items {
		if pod.Status.Phase != corev1.PodRunning || pod.Status.PodIP == "" || !strings.HasPrefix(pod.Spec.NodeName, "m1-node-") {
			t.Errorf("pod %s on %q has status %+v", pod.Name, pod.Spec.NodeName, pod.Status)
		}
	}

	if err := client.CoreV1().Namespaces().Delete(t.Context(), "work", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, limit, func(ctx context.Context) error {
		_, err := client.CoreV1().Namespaces().Get(ctx, "work", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(errors.New("the namespace is still there"), err)
	})
}

func TestMember_FewerNodesAtTheNextStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	spec := testenv.Member("m1", 3)
	spec.DataDir = dir
	testenv.Start(t, spec).Stop(t)
	spec = testenv.Member("m1", 1).With("--node-cpu=4")
	spec.DataDir = dir
	client := clientOf(t, testenv.Start(t, spec))
	nodes, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(nodes.Items) != 1 || nodes.Items[0].Name != "m1-node-0" || nodes.Items[0].Status.Allocatable.Cpu().String() != "4" {
		t.Errorf("got %d nodes, the first %s with %s", len(nodes.Items), nodes.Items[0].Name, nodes.Items[0].Status.Allocatable.Cpu())
	}
}

func TestControlPlane_RunsNothingButKeepsOrder(t *testing.T) {
	t.Parallel()
	c := testenv.Start(t, testenv.ControlPlane())
	client := clientOf(t, c)
	namespace(t, client, "templates")
	if _, err := client.AppsV1().Deployments("templates").Create(t.Context(), deployment("web", 1), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	// A token for a service account is the work of the controllers that do run; it shows that they have started.
	if _, err := client.CoreV1().ServiceAccounts("templates").Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "sa"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "sa-token", Annotations: map[string]string{corev1.ServiceAccountNameKey: "sa"}},
		Type:       corev1.SecretTypeServiceAccountToken,
	}
	if _, err := client.CoreV1().Secrets("templates").Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	var token []byte
	testenv.Eventually(t, limit, func(ctx context.Context) error {
		s, err := client.CoreV1().Secrets("templates").Get(ctx, "sa-token", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if token = s.Data[corev1.ServiceAccountTokenKey]; len(token) == 0 {
			return errors.New("the secret has no token yet")
		}
		return nil
	})
	checkToken(t, c.Config, string(token))
	sets, err := client.AppsV1().ReplicaSets("templates").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(sets.Items) != 0 {
		t.Errorf("got %d replica sets, %v; want none in a control plane", len(sets.Items), err)
	}
	accounts, err := client.CoreV1().ServiceAccounts("templates").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(accounts.Items) != 1 {
		t.Errorf("got %d service accounts, %v; want only the one made here", len(accounts.Items), err)
	}
}

// checkToken checks that the API server knows whose token it is, and that it may not do everything.
func checkToken(t *testing.T, admin *rest.Config, token string) {
	t.Helper()
	config := rest.AnonymousClientConfig(admin)
	config.BearerToken = token
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.CoreV1().Secrets("kube-system").List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "system:serviceaccount:templates:sa") {
		t.Errorf("got %v, want forbidden for the service account", err)
	}
}

func TestControlPlane_AnonymousMaySeeVersionOnly(t *testing.T) {
	t.Parallel()
	c := testenv.Start(t, testenv.ControlPlane())
	client, err := kubernetes.NewForConfig(rest.AnonymousClientConfig(c.Config))
	if err != nil {
		t.Fatal(err)
	}
	info, err := client.Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	if info.GitVersion != c.Info.Version || !strings.HasPrefix(info.GitVersion, "v1.") || info.Major != "1" {
		t.Errorf("version is %+v, the ready signal says %s", info, c.Info.Version)
	}
	if _, err := client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("listing namespaces: got %v, want forbidden", err)
	}
}

func TestReadySignal(t *testing.T) {
	t.Parallel()
	kubeconfig := filepath.Join(t.TempDir(), "sub", "admin.kubeconfig")
	c := testenv.Start(t, testenv.ControlPlane().With("--write-kubeconfig="+kubeconfig))
	data, err := os.ReadFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(data), "current-context: karmada-apiserver") || !strings.Contains(string(data), c.Info.Server) {
		t.Errorf("the kubeconfig lacks the context or server %s", c.Info.Server)
	}
	if !strings.HasPrefix(c.Info.Server, "https://127.0.0.1:") || !strings.HasPrefix(c.Info.Etcd, "unix://") {
		t.Errorf("got %+v", c.Info)
	}
	raw, err := os.ReadFile(ready.Path(c.DataDir))
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(raw, &fields); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"pid", "server", "kubeconfig", "startTime"} {
		if _, ok := fields[name]; !ok {
			t.Errorf("the signal lacks %q: %s", name, raw)
		}
	}
	c.Stop(t)
	if err := c.ExitError(); err != nil {
		t.Errorf("stopped with %v", err)
	}
	if _, err := ready.Read(c.DataDir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the signal is still there: %v", err)
	}
}

func TestRestart_KeepsDataAndAddress(t *testing.T) {
	tests := []struct {
		name string
		args []string
		end  func(*testing.T, *testenv.Cluster)
	}{
		{"after a stop", nil, func(t *testing.T, c *testenv.Cluster) { t.Helper(); c.Stop(t) }},
		{"after a kill", nil, func(t *testing.T, c *testenv.Cluster) { t.Helper(); c.Kill(t) }},
		{"after a kill, with fsync", []string{"--fsync"}, func(t *testing.T, c *testenv.Cluster) { t.Helper(); c.Kill(t) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := testenv.Start(t, testenv.ControlPlane().With(tt.args...))
			client := clientOf(t, c)
			for i := range 20 {
				namespace(t, client, fmt.Sprintf("kept-%d", i))
			}
			before := c.Info.Server
			tt.end(t, c)
			c.Restart(t)
			if c.Info.Server != before {
				t.Errorf("the server moved from %s to %s", before, c.Info.Server)
			}
			// The client from before still works: same address, same authority.
			for i := range 20 {
				if _, err := client.CoreV1().Namespaces().Get(t.Context(), fmt.Sprintf("kept-%d", i), metav1.GetOptions{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestSecondProcessOnOneDirectoryIsRefused(t *testing.T) {
	t.Parallel()
	spec := testenv.ControlPlane()
	spec.DataDir = t.TempDir()
	first := testenv.Start(t, spec)
	second, err := testenv.Launch(t, spec)
	if err == nil {
		second.Stop(t)
		t.Fatal("a second process started")
	}
	if !strings.Contains(err.Error(), "in use by another kubelite (process "+fmt.Sprint(first.Info.PID)+")") {
		t.Errorf("got %v", err)
	}
	if _, err := clientOf(t, first).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("the first one no longer works: %v", err)
	}
}

func TestDamagedDataIsNamed(t *testing.T) {
	t.Parallel()
	c := testenv.Start(t, testenv.ControlPlane())
	c.Stop(t)
	db := filepath.Join(c.DataDir, "etcd", "member", "snap", "db")
	if err := os.WriteFile(db, []byte(strings.Repeat("damage", 10000)), 0o600); err != nil {
		t.Fatal(err)
	}
	spec := testenv.ControlPlane()
	spec.DataDir = c.DataDir
	_, err := testenv.Launch(t, spec)
	if err == nil || !strings.Contains(err.Error(), "etcd cannot use its data in "+filepath.Join(c.DataDir, "etcd")) {
		t.Errorf("got %v", err)
	}
}
