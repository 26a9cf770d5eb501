package installer

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

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
