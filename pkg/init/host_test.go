package installer

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiversion "k8s.io/apimachinery/pkg/version"
	fakediscovery "k8s.io/client-go/discovery/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	fakeclient "sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/internal/progress"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
)

// hostWith is a host cluster whose user may do what denied does not name.
func hostWith(denied []string, objects ...runtime.Object) *fake.Clientset {
	c := fake.NewClientset(objects...)
	if d, ok := c.Discovery().(*fakediscovery.FakeDiscovery); ok {
		d.FakedServerVersion = &apiversion.Info{GitVersion: "v1.36.3"}
	}
	c.PrependReactor("create", "selfsubjectaccessreviews", func(a clienttesting.Action) (bool, runtime.Object, error) {
		review := a.(clienttesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview) //nolint:forcetypeassert // by construction
		at := review.Spec.ResourceAttributes
		review.Status.Allowed = !slices.Contains(denied, at.Verb+" "+at.Resource)
		return true, review, nil
	})
	return c
}

// preflightOf runs the checks against a host.
func preflightOf(t *testing.T, host *fake.Clientset, change func(*Options)) error {
	t.Helper()
	o := NewOptions()
	o.DataPath = t.TempDir()
	if change != nil {
		change(&o)
	}
	f, err := gather(t.Context(), host, &o)
	if err != nil {
		t.Fatal(err)
	}
	s := &state{Deps: Deps{Progress: progress.Discard{}, Now: time.Now}, options: &o, hostAPI: host, facts: f}
	return s.preflight(t.Context())
}

func service(namespace, name string, nodePort int32) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{NodePort: nodePort}}},
	}
}

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

func TestPreflight(t *testing.T) {
	ready := node("n1", nil)
	deleted := namespace(DefaultNamespace)
	deleted.DeletionTimestamp, deleted.Finalizers = new(metav1.Now()), []string{"kubernetes"}
	pvc := func(o *Options) { o.Etcd.StorageMode, o.Etcd.StorageClass = components.StoragePVC, "fast" }
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "v"},
		Spec: corev1.PersistentVolumeSpec{
			StorageClassName: "fast", AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("5Gi")},
		},
	}
	dns := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "dns", Labels: map[string]string{"k8s-app": "kube-dns"}},
		Status:     corev1.PodStatus{Phase: corev1.PodPending},
	}
	for name, tc := range map[string]struct {
		denied  []string
		objects []runtime.Object
		change  func(*Options)
		want    string
	}{
		"an empty host":                {objects: []runtime.Object{&ready}},
		"a port that is taken":         {objects: []runtime.Object{&ready, service("a", "b", 32443)}, want: "nodePort of karmada apiserver 32443 already exist: Service a/b has it; choose another with --port"},
		"a port that is ours":          {objects: []runtime.Object{&ready, service(DefaultNamespace, "karmada-apiserver", 32443)}},
		"too few permissions":          {denied: []string{"create secrets", "patch secrets"}, objects: []runtime.Object{&ready}, want: "may not create, patch secrets"},
		"labelling with no need":       {denied: []string{"patch nodes"}, objects: []runtime.Object{&ready}, change: func(o *Options) { o.Etcd.StorageMode = "emptyDir" }},
		"no node":                      {want: "failed to find a healthy node for karmada-etcd"},
		"a namespace that ends":        {objects: []runtime.Object{&ready, deleted}, want: "is being deleted"},
		"a stranger's object":          {objects: []runtime.Object{&ready, namespace(DefaultNamespace), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: DefaultNamespace, Name: "karmada-webhook"}}}, want: "Deployment karmada-system/karmada-webhook is there already and was not made by init"},
		"no storage class":             {objects: []runtime.Object{&ready}, change: pvc, want: `there is no StorageClass "fast", and 0 of 1 PersistentVolumes`},
		"a storage class":              {objects: []runtime.Object{&ready, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}}}, change: pvc},
		"a volume made by hand":        {objects: []runtime.Object{&ready, volume}, change: pvc},
		"a volume that is too small":   {objects: []runtime.Object{&ready, volume}, change: func(o *Options) { pvc(o); o.Etcd.PVCSize = "6Gi" }, want: "0 of 1 PersistentVolumes"},
		"DNS that does not answer":     {objects: []runtime.Object{&ready, dns}, want: "the DNS of the host cluster does not answer"},
		"a pull Secret":                {objects: []runtime.Object{&ready}, change: func(o *Options) { o.Images.PullSecrets = []string{"x"} }, want: "there is no Secret karmada-system/x"},
		"a priority class":             {objects: []runtime.Object{&ready}, change: func(o *Options) { o.Webhook.PriorityClass = "x" }, want: `there is no PriorityClass "x" for --karmada-webhook-priority-class`},
		"another's data":               {objects: []runtime.Object{&ready, etcdSet("other", nil)}, want: "the control plane in namespace other keeps its data in /var/lib/karmada-etcd"},
		"more members":                 {objects: []runtime.Object{&ready, namespace(DefaultNamespace), etcdSet(DefaultNamespace, nil)}, change: func(o *Options) { o.Etcd.Replicas = 3; o.Etcd.StorageMode = "emptyDir" }, want: "etcd has 1 members, not 3"},
		"data that would have to move": {objects: []runtime.Object{&ready, namespace(DefaultNamespace), etcdSet(DefaultNamespace, nil)}, change: func(o *Options) { o.Etcd.StorageMode = "" }, want: "etcd keeps its data in storage mode hostPath, not emptyDir"},
		"all findings at once":         {denied: []string{"create secrets"}, want: "nothing was changed; first:\n  - failed to find a healthy node"},
	} {
		t.Run(name, func(t *testing.T) {
			err := preflightOf(t, hostWith(tc.denied, tc.objects...), tc.change)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestPreflight_AHostThatIsTooOld(t *testing.T) {
	ready := node("n1", nil)
	host := hostWith(nil, &ready)
	if d, ok := host.Discovery().(*fakediscovery.FakeDiscovery); ok {
		d.FakedServerVersion = &apiversion.Info{GitVersion: "v1.20.1+k3s"}
	}
	if err := preflightOf(t, host, nil); err == nil || !strings.Contains(err.Error(), "v1.20.1+k3s, which is too old") {
		t.Errorf("got %v", err)
	}
}

func TestGather_AnUnreachableHost(t *testing.T) {
	host := hostWith(nil)
	host.PrependReactor("list", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("connection lost")
	})
	o := NewOptions()
	if _, err := gather(t.Context(), host, &o); err == nil || !strings.Contains(err.Error(), "connection lost") {
		t.Errorf("got %v", err)
	}
}

func labelled(m metav1.ObjectMeta, value string) metav1.ObjectMeta {
	m.Labels = map[string]string{components.BootstrapLabel: value}
	return m
}

func TestRemoval_TakesWhatInitMadeAndNothingElse(t *testing.T) {
	in := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: DefaultNamespace, Name: name}
	}
	chosen := node("n1", map[string]string{components.EtcdNodeLabel: "", "keep": "me"})
	host := hostWith(nil, namespace(DefaultNamespace), &chosen, etcdSet(DefaultNamespace, nil),
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
	r, err := planRemoval(t.Context(), host, DefaultNamespace, RemovalOptions{})
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
	again, err := planRemoval(t.Context(), host, DefaultNamespace, RemovalOptions{Namespace: true})
	if err != nil {
		t.Fatal(err)
	}
	want = []string{`delete Namespace "karmada-system"`, `node not found by label "karmada.io/etcd"`}
	if diff := cmp.Diff(want, again.Lines()); diff != "" {
		t.Errorf("what is left: %s", diff)
	}
}

func TestRemoval_LeavesTheLabelToAnotherControlPlane(t *testing.T) {
	chosen := node("n1", map[string]string{components.EtcdNodeLabel: ""})
	r, err := planRemoval(t.Context(), hostWith(nil, namespace("a"), &chosen, etcdSet("a", nil), etcdSet("b", nil)), "a", RemovalOptions{})
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
			ObjectMeta: metav1.ObjectMeta{Namespace: DefaultNamespace, Name: name},
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
		all := Addons(context.Background(), host, connect, DefaultNamespace, cluster)
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
