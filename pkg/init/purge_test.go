package installer

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/karmada-toolkit/karmada/pkg/init/components"
	"github.com/karmada-toolkit/karmada/pkg/init/config"
)

// installed is a host with a control plane whose etcd keeps its data on node n1.
func installed(t *testing.T, phase corev1.PodPhase) *fake.Clientset {
	t.Helper()
	set, err := components.EtcdStatefulSet(&components.Config{
		Namespace: config.DefaultNamespace, Workloads: map[string]components.Workload{},
		Etcd: components.EtcdConfig{StorageMode: components.StorageHostPath, DataPath: "/data/etcd"},
	})
	if err != nil {
		t.Fatal(err)
	}
	manager := components.ControllerManagerDeployment(&components.Config{
		Namespace: config.DefaultNamespace, PullSecrets: []string{"pull"},
		Workloads: map[string]components.Workload{components.ControllerManager: {Image: "example.org/karmada:v1", PullPolicy: corev1.PullNever}},
	})
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: config.DefaultNamespace, Name: "etcd-0", Labels: map[string]string{"app": components.Etcd}},
		Spec:       corev1.PodSpec{NodeName: "n1"},
	}
	host := fake.NewClientset(namespace(config.DefaultNamespace), set, manager, pod)
	host.PrependReactor("create", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		made := a.(clienttesting.CreateAction).GetObject().(*corev1.Pod)
		made.Status.Phase = phase
		made.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Message: "error: why\n"}}}}
		return false, nil, nil
	})
	return host
}

func TestRemoval_PurgesTheDataOnItsNode(t *testing.T) {
	host := installed(t, corev1.PodSucceeded)
	r, err := planRemoval(t.Context(), host, config.DefaultNamespace, RemovalOptions{Namespace: true, Data: true})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`delete deployment "karmada-controller-manager"`, `delete StatefulSet: "etcd"`, `delete data of etcd in /data/etcd on node "n1"`,
		`delete Namespace "karmada-system"`, `node not found by label "karmada.io/etcd"`,
	}
	if diff := cmp.Diff(want, r.Lines()); diff != "" {
		t.Error(diff)
	}
	if err := r.Run(t.Context(), func(string) {}); err != nil {
		t.Fatal(err)
	}
	var made *corev1.Pod
	for _, a := range host.Actions() {
		if create, ok := a.(clienttesting.CreateAction); ok && a.GetResource().Resource == "pods" {
			made = create.GetObject().(*corev1.Pod)
		}
	}
	if made == nil {
		t.Fatal("no pod removed the data")
	}
	c, volume := made.Spec.Containers[0], made.Spec.Volumes[0]
	if made.Spec.NodeName != "n1" || volume.HostPath == nil || volume.HostPath.Path != "/data/etcd" || c.Image != "example.org/karmada:v1" || c.ImagePullPolicy != corev1.PullNever {
		t.Errorf("pod: %+v", made.Spec)
	}
	if !slices.Equal(c.Command, []string{"/bin/karmada", "remove-etcd-data", "/var/lib/karmada-etcd"}) || len(made.Spec.ImagePullSecrets) != 1 {
		t.Errorf("command %q, pull secrets %v", c.Command, made.Spec.ImagePullSecrets)
	}
	if _, err := host.CoreV1().Pods(config.DefaultNamespace).Get(t.Context(), components.PurgePod, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the pod is left behind: %v", err)
	}
}

func TestRemoval_SaysWhyTheDataIsLeft(t *testing.T) {
	r, err := planRemoval(t.Context(), installed(t, corev1.PodFailed), config.DefaultNamespace, RemovalOptions{Data: true})
	if err != nil {
		t.Fatal(err)
	}
	err = r.Run(t.Context(), func(string) {})
	if err == nil || !strings.Contains(err.Error(), "error: why; remove /data/etcd on node n1") {
		t.Errorf("got %v", err)
	}
}

func TestRemoval_PurgeNeedsToKnowTheData(t *testing.T) {
	for name, tc := range map[string]struct {
		remove runtime.Object
		want   string
	}{
		"no etcd":  {&appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: components.Etcd}}, "there is no etcd in namespace karmada-system"},
		"no image": {&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: components.ControllerManager}}, "there is no Deployment karmada-controller-manager"},
		"no node":  {&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "etcd-0"}}, "the node of its data is not known"},
	} {
		t.Run(name, func(t *testing.T) {
			host := installed(t, corev1.PodSucceeded)
			var err error
			switch o := tc.remove.(type) {
			case *appsv1.StatefulSet:
				err = host.AppsV1().StatefulSets(config.DefaultNamespace).Delete(t.Context(), o.Name, metav1.DeleteOptions{})
			case *appsv1.Deployment:
				err = host.AppsV1().Deployments(config.DefaultNamespace).Delete(t.Context(), o.Name, metav1.DeleteOptions{})
			case *corev1.Pod:
				err = host.CoreV1().Pods(config.DefaultNamespace).Delete(t.Context(), o.Name, metav1.DeleteOptions{})
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, err := planRemoval(t.Context(), host, config.DefaultNamespace, RemovalOptions{Data: true}); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}
