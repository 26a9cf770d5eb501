package adopt

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/testenv/memory"
	"github.com/karmada-toolkit/karmada/pkg/init/rollout"
)

// apart is an API server that requires a node of its own, with its pod, its Service, and the Service of another workload.
func apart(change ...func(*appsv1.Deployment)) []client.Object {
	own := map[string]string{"app": "karmada-apiserver", "part": "server"}
	meta := metav1.ObjectMeta{Namespace: namespace, Name: "karmada-apiserver"}
	d := deployment(meta.Name, apiServerProgram, "registry.k8s.io/kube-apiserver:v1.36.2", change...)
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: own}
	d.Spec.Template.Labels = own
	d.Spec.Template.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: "kubernetes.io/hostname"}}}}
	pod := &corev1.Pod{ObjectMeta: meta}
	pod.Labels = own
	return []client.Object{
		d, pod, &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "karmada-apiserver"}}},
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "others"}, Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "others"}}},
	}
}

// bridged returns an adoption of an API server and a second one, which are ready at all times.
func bridged(t *testing.T, objects []client.Object) (*Adoption, *memory.Env) {
	t.Helper()
	host := memory.New(t, objects...)
	d := objects[0].(*appsv1.Deployment)
	second := secondOf(d)
	second.Status = d.Status
	a := newAdoption(t, host, memory.New(t))
	api := fake.NewClientset(d.DeepCopy(), second)
	a.api, a.tracker = api, rollout.NewTracker(api, namespace, time.Now, nil)
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(stop)
	go a.tracker.Run(ctx)
	return a, host
}

// TestBridge is killed at each write. Until the end the Service leads to a pod; afterwards it is as it was before, and the API server needs
// no node of its own.
func TestBridge(t *testing.T) {
	a, host := bridged(t, apart())
	if _, err := a.bridge(t.Context()); err != nil {
		t.Fatal(err)
	}
	writes := host.Writes()
	if want := "delete Deployment karmada-system/karmada-apiserver-adopting"; len(writes) != 7 || writes[6] != want {
		t.Fatalf("%q", writes)
	}
	for _, killed := range slices.Compact(slices.Sorted(slices.Values(writes))) {
		t.Run(killed, func(t *testing.T) {
			t.Parallel()
			a, host := bridged(t, apart())
			dead := errors.New("killed")
			host.FailOnce(killed, dead)
			if _, err := a.bridge(t.Context()); !errors.Is(err, dead) {
				t.Fatalf("%v", err)
			}
			selector := labels.SelectorFromSet(memory.Get[*corev1.Service](host, memory.Key(namespace, "karmada-apiserver")).Spec.Selector)
			if !slices.ContainsFunc(memory.List[*corev1.PodList](host).Items, func(p corev1.Pod) bool { return selector.Matches(labels.Set(p.Labels)) }) {
				t.Errorf("the Service leads nowhere: %s", selector)
			}
			if _, err := a.bridge(t.Context()); err != nil {
				t.Fatal(err)
			}
			d := memory.Get[*appsv1.Deployment](host, memory.Key(namespace, "karmada-apiserver"))
			if requiresApart(&d.Spec.Template.Spec) || *d.Spec.Replicas != 1 || len(memory.List[*appsv1.DeploymentList](host).Items) != 1 {
				t.Errorf("%+v", d.Spec)
			}
			for name, want := range map[string]string{"karmada-apiserver": "karmada-apiserver", "others": "others"} {
				s := memory.Get[*corev1.Service](host, memory.Key(namespace, name))
				if len(s.Annotations) > 0 || len(s.Spec.Selector) != 1 || s.Spec.Selector["app"] != want {
					t.Errorf("Service %s has %v, %v", name, s.Spec.Selector, s.Annotations)
				}
			}
		})
	}
}

func TestBridge_NotNeeded(t *testing.T) {
	for name, change := range map[string]func(*appsv1.Deployment){
		"two replicas":            func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(2)) },
		"the network of its node": func(d *appsv1.Deployment) { d.Spec.Template.Spec.HostNetwork = true },
		"another program":         func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Command = []string{"other"} },
	} {
		a, host := bridged(t, apart(change))
		if text, err := a.bridge(t.Context()); err != nil || text != "not needed" || len(host.Writes()) > 0 {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
}
