package installer

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	fakeclient "sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
	"github.com/karmada-toolkit/karmada/pkg/init/config"
)

func etcdSet(namespace string, change func(*appsv1.StatefulSet)) *appsv1.StatefulSet {
	s := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "etcd", Labels: map[string]string{components.BootstrapLabel: components.AppDefaults}},
		Spec: appsv1.StatefulSetSpec{Replicas: new(int32(1)), Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			NodeSelector: map[string]string{components.EtcdNodeLabel: ""},
			Volumes:      []corev1.Volume{{VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/var/lib/karmada-etcd"}}}},
		}}},
	}
	if change != nil {
		change(s)
	}
	return s
}

func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid-" + "x"}}
}

func etcdNode() *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{components.EtcdNodeLabel: "", "keep": "me"}}}
}

func labelled(m metav1.ObjectMeta, value string) metav1.ObjectMeta {
	m.Labels = map[string]string{components.BootstrapLabel: value}
	return m
}

func TestRemoval_TakesWhatInitMadeAndNothingElse(t *testing.T) {
	in := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: config.DefaultNamespace, Name: name}
	}
	host := fake.NewClientset(namespace(config.DefaultNamespace), etcdNode(), etcdSet(config.DefaultNamespace, nil),
		&appsv1.Deployment{ObjectMeta: labelled(in("karmada-webhook"), components.AppDefaults)},
		&appsv1.Deployment{ObjectMeta: in("mine")},
		&corev1.Service{ObjectMeta: labelled(in("etcd"), components.ServiceDefaults)},
		&corev1.Secret{ObjectMeta: labelled(in("karmada-cert"), components.SecretDefaults)},
		&corev1.Secret{ObjectMeta: in("mine")},
		&corev1.PersistentVolumeClaim{ObjectMeta: labelled(in("etcd-data-etcd-0"), components.ClaimDefaults)},
	)
	want := []string{
		`delete deployment "karmada-webhook"`, `delete StatefulSet: "etcd"`, `delete Service "etcd"`, `delete Secrets "karmada-cert"`,
		`remove node "n1" labels "karmada.io/etcd"`,
	}
	r, err := planRemoval(t.Context(), host, config.DefaultNamespace, RemovalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, r.Lines()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"etcd-data-etcd-0"}, r.Claims()); diff != "" {
		t.Error(diff)
	}
	if err := r.Run(t.Context(), func(string) {}); err != nil {
		t.Fatal(err)
	}
	n, err := host.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"keep": "me"}, n.Labels); diff != "" {
		t.Error(diff)
	}
	again, err := planRemoval(t.Context(), host, config.DefaultNamespace, RemovalOptions{Namespace: true})
	if err != nil {
		t.Fatal(err)
	}
	want = []string{`delete Namespace "karmada-system"`, `node not found by label "karmada.io/etcd"`}
	if diff := cmp.Diff(want, again.Lines()); diff != "" {
		t.Errorf("what is left: %s", diff)
	}
}

func TestRemoval_LeavesTheLabelToAnotherControlPlane(t *testing.T) {
	r, err := planRemoval(t.Context(), fake.NewClientset(namespace("a"), etcdNode(), etcdSet("a", nil), etcdSet("b", nil)), "a", RemovalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{`delete StatefulSet: "etcd"`}, r.Lines()); diff != "" {
		t.Error(diff)
	}
}

func TestAddons(t *testing.T) {
	deployment := func(name string, replicas, ready int32) *appsv1.Deployment {
		return &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: config.DefaultNamespace, Name: name},
			Status:     appsv1.DeploymentStatus{Replicas: replicas, ReadyReplicas: ready, AvailableReplicas: ready},
		}
	}
	api := func(name string, status apiregistrationv1.ConditionStatus) *apiregistrationv1.APIService {
		return &apiregistrationv1.APIService{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Status:     apiregistrationv1.APIServiceStatus{Conditions: []apiregistrationv1.APIServiceCondition{{Type: apiregistrationv1.Available, Status: status}}},
		}
	}
	host := fakeclient.NewClientBuilder().WithScheme(kube.NewScheme()).WithObjects(
		deployment("karmada-search", 1, 1), deployment("karmada-metrics-adapter", 1, 1), deployment("karmada-scheduler-estimator-m1", 2, 1),
	).Build()
	cp := fakeclient.NewClientBuilder().WithScheme(kube.NewScheme()).WithObjects(api("v1alpha1.search.karmada.io", apiregistrationv1.ConditionTrue)).Build()
	connect := func() (client.Reader, error) { return cp, nil }
	states := func(cluster string, connect func() (client.Reader, error)) (out []string, err error) {
		all := Addons(context.Background(), host, connect, config.DefaultNamespace, cluster)
		for _, a := range all {
			out = append(out, a.Name+" "+string(a.Status))
		}
		return out, JoinAddonErrors(all)
	}
	got, err := states("m1", connect)
	want := []string{"karmada-descheduler disabled", "karmada-metrics-adapter disabled", "karmada-scheduler-estimator unhealthy", "karmada-search enabled"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(err, diff)
	}
	got, err = states("", func() (client.Reader, error) { return nil, errors.New("no kubeconfig") })
	want = []string{"karmada-descheduler disabled", "karmada-metrics-adapter unknown", "karmada-scheduler-estimator unknown", "karmada-search unknown"}
	if diff := cmp.Diff(want, got); diff != "" || err == nil || !strings.Contains(err.Error(), "addon karmada-search: no kubeconfig") {
		t.Error(err, diff)
	}
}
