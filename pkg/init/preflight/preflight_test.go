package preflight

import (
	"slices"
	"strings"
	"testing"
	"time"

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

	"github.com/karmada-toolkit/karmada/pkg/init/components"
	"github.com/karmada-toolkit/karmada/pkg/init/config"
	"github.com/karmada-toolkit/karmada/pkg/init/hostcluster"
)

func node() corev1.Node {
	return corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n1"},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
}

// hostWith is a host cluster whose user may do what denied does not name.
func hostWith(denied []string, objects ...runtime.Object) *fake.Clientset {
	c := fake.NewClientset(objects...)
	if d, ok := c.Discovery().(*fakediscovery.FakeDiscovery); ok {
		d.FakedServerVersion = &apiversion.Info{GitVersion: "v1.36.3"}
	}
	c.PrependReactor("create", "selfsubjectaccessreviews", func(a clienttesting.Action) (bool, runtime.Object, error) {
		review := a.(clienttesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview)
		at := review.Spec.ResourceAttributes
		review.Status.Allowed = !slices.Contains(denied, at.Verb+" "+at.Resource)
		return true, review, nil
	})
	return c
}

// preflightOf runs the checks against a host.
func preflightOf(t *testing.T, host *fake.Clientset, change func(*config.Configuration)) error {
	t.Helper()
	o := config.New()
	o.DataPath = t.TempDir()
	if change != nil {
		change(&o)
	}
	if err := o.Complete(nil, "karmadactl", nil); err != nil {
		t.Fatal(err)
	}
	f, err := hostcluster.Gather(t.Context(), host, o.APIServer.Namespace, nil)
	if err != nil {
		t.Fatal(err)
	}
	return Check(t.Context(), Deps{Config: &o, Facts: f, Host: host, Now: time.Now})
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

func deployment(name string) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: config.DefaultNamespace, Name: name, Labels: map[string]string{components.BootstrapLabel: components.AppDefaults}}}
}

func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid-" + "x"}}
}

func TestPreflight(t *testing.T) {
	ready := node()
	deleted := namespace(config.DefaultNamespace)
	deleted.DeletionTimestamp, deleted.Finalizers = new(metav1.Now()), []string{"kubernetes"}
	pvc := func(o *config.Configuration) { o.Etcd.StorageMode, o.Etcd.StorageClass = components.StoragePVC, "fast" }
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
		change  func(*config.Configuration)
		want    string
	}{
		"an empty host":             {objects: []runtime.Object{&ready}},
		"a port that is taken":      {objects: []runtime.Object{&ready, service("a", "b", 32443)}, want: "nodePort of karmada apiserver 32443 already exist: Service a/b has it; choose another with --port"},
		"a port that is ours":       {objects: []runtime.Object{&ready, service(config.DefaultNamespace, "karmada-apiserver", 32443)}},
		"too few permissions":       {denied: []string{"create secrets", "patch secrets"}, objects: []runtime.Object{&ready}, want: "may not create, patch secrets"},
		"removal of another layout": {denied: []string{"delete deployments"}, objects: []runtime.Object{&ready, namespace(config.DefaultNamespace), deployment(components.AllInOne)}, want: "may not delete deployments"},
		"removal with no need":      {denied: []string{"delete deployments"}, objects: []runtime.Object{&ready, namespace(config.DefaultNamespace), deployment(components.AllInOne)}, change: func(o *config.Configuration) { o.Compact = true }},
		"labelling with no need":    {denied: []string{"patch nodes"}, objects: []runtime.Object{&ready}, change: func(o *config.Configuration) { o.Etcd.StorageMode = "emptyDir" }},
		"no node":                   {want: "failed to find a healthy node for karmada-etcd"},
		"a namespace that ends":     {objects: []runtime.Object{&ready, deleted}, want: "is being deleted"},
		"an object of others":       {objects: []runtime.Object{&ready, namespace(config.DefaultNamespace), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: config.DefaultNamespace, Name: "karmada-webhook"}}}, want: "Deployment karmada-system/karmada-webhook is there already and was not made by init"},
		"a control plane of an operator": {
			objects: []runtime.Object{&ready, namespace(config.DefaultNamespace), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
				Namespace: config.DefaultNamespace, Name: "demo-karmada-webhook", Labels: map[string]string{components.ManagedByLabel: components.ManagedByOperator, components.InstanceLabel: "demo"},
			}}}, want: "has the control plane of Karmada demo, which karmada-operator manages: change that (kubectl edit karmada demo -n karmada-system)",
		},
		"no storage class":             {objects: []runtime.Object{&ready}, change: pvc, want: `there is no StorageClass "fast", and 0 of 1 PersistentVolumes`},
		"a storage class":              {objects: []runtime.Object{&ready, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}}}, change: pvc},
		"a volume made by hand":        {objects: []runtime.Object{&ready, volume}, change: pvc},
		"a volume that is too small":   {objects: []runtime.Object{&ready, volume}, change: func(o *config.Configuration) { pvc(o); o.Etcd.PVCSize = "6Gi" }, want: "0 of 1 PersistentVolumes"},
		"DNS that does not answer":     {objects: []runtime.Object{&ready, dns}, want: "the DNS of the host cluster does not answer"},
		"a pull Secret":                {objects: []runtime.Object{&ready}, change: func(o *config.Configuration) { o.Images.PullSecrets = []string{"x"} }, want: "there is no Secret karmada-system/x"},
		"a priority class":             {objects: []runtime.Object{&ready}, change: func(o *config.Configuration) { o.Webhook.PriorityClass = "x" }, want: `there is no PriorityClass "x" for --karmada-webhook-priority-class`},
		"another's data":               {objects: []runtime.Object{&ready, etcdSet("other", nil)}, want: "the control plane in namespace other keeps its data in /var/lib/karmada-etcd"},
		"more members":                 {objects: []runtime.Object{&ready, namespace(config.DefaultNamespace), etcdSet(config.DefaultNamespace, nil)}, change: func(o *config.Configuration) { o.Etcd.Replicas = 3; o.Etcd.StorageMode = "emptyDir" }, want: "etcd has 1 members, not 3"},
		"data that would have to move": {objects: []runtime.Object{&ready, namespace(config.DefaultNamespace), etcdSet(config.DefaultNamespace, nil)}, change: func(o *config.Configuration) { o.Etcd.StorageMode = "" }, want: "etcd keeps its data in storage mode hostPath, not emptyDir"},
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
	ready := node()
	host := hostWith(nil, &ready)
	if d, ok := host.Discovery().(*fakediscovery.FakeDiscovery); ok {
		d.FakedServerVersion = &apiversion.Info{GitVersion: "v1.20.1+k3s"}
	}
	if err := preflightOf(t, host, nil); err == nil || !strings.Contains(err.Error(), "v1.20.1+k3s, which is too old") {
		t.Errorf("got %v", err)
	}
}
