package operator

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/pki"
	operatorv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/operator/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
	"github.com/karmada-toolkit/karmada/pkg/init/config"
	"github.com/karmada-toolkit/karmada/pkg/init/credentials"
	"github.com/karmada-toolkit/karmada/pkg/init/hostcluster"
	"github.com/karmada-toolkit/karmada/pkg/init/phases"
)

// karmada returns a Karmada with each object of its spec, which are empty.
func karmada() *operatorv1alpha1.Karmada {
	k := &operatorv1alpha1.Karmada{ObjectMeta: metav1.ObjectMeta{Namespace: "test", Name: "demo", UID: "u", Generation: 1}}
	allocate(reflect.ValueOf(&k.Spec).Elem())
	k.Spec.Components.Etcd.External = nil
	k.Spec.Components.Etcd.Local.VolumeData = nil
	k.Spec.Components.KarmadaAPIServer.ServiceType = corev1.ServiceTypeLoadBalancer
	return k
}

// own reports whether a type is one of the API, and not of Kubernetes.
func own(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && strings.HasSuffix(t.PkgPath(), "operator/v1alpha1") && t.Name() != "PodDisruptionBudgetConfig"
}

// allocate makes the objects of the API in a value.
func allocate(v reflect.Value) {
	for _, f := range v.Fields() {
		if f.Kind() == reflect.Pointer && own(f.Type().Elem()) {
			f.Set(reflect.New(f.Type().Elem()))
			f = f.Elem()
		}
		if own(f.Type()) {
			allocate(f)
		}
	}
}

// fields calls a function for each field of the spec that is no object of the API.
func fields(v reflect.Value, path string, call func(path string, field reflect.Value)) {
	for i := range v.NumField() {
		f := v.Field(i)
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		at := strings.TrimSuffix(path+"."+name, ".")
		switch {
		case f.Kind() == reflect.Pointer && own(f.Type().Elem()):
			if !f.IsNil() {
				fields(f.Elem(), at, call)
			}
		case own(f.Type()):
			fields(f, at, call)
		default:
			call(at, f)
		}
	}
}

// fill gives a field a value.
func fill(t *testing.T, path string, v reflect.Value) {
	t.Helper()
	quantity := corev1.ResourceRequirements{Requests: corev1.ResourceList{}}
	affinity := &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}}
	values := []any{
		"value", new("value"), new(int32(7)), new(true), []string{"value"}, map[string]string{"a": "value"}, map[string]bool{"Gate": true}, quantity, affinity,
		[]corev1.Toleration{{Key: "a"}}, &operatorv1alpha1.PodDisruptionBudgetConfig{MinAvailable: new(intstr.FromInt32(1))}, corev1.PullNever, corev1.ServiceTypeNodePort,
		[]corev1.Volume{{Name: "a"}}, []corev1.VolumeMount{{Name: "a"}}, []corev1.Container{{Name: "a"}}, new(operatorv1alpha1.DownloadAlways),
	}
	for _, value := range values {
		if reflect.TypeOf(value) == v.Type() {
			v.Set(reflect.ValueOf(value))
			return
		}
	}
	t.Fatalf("no value for %s, %s", path, v.Type())
}

// elsewhere are the fields that decide about other things than the configuration, each with its test.
var elsewhere = []string{
	"spec.hostCluster.secretRef.namespace", "spec.hostCluster.secretRef.name", // TestReconcile_RemoteHost
	"spec.customCertificate.apiServerCACert.namespace", "spec.customCertificate.apiServerCACert.name", // TestReconcile_Secrets
	"spec.crdTarball.crdDownloadPolicy", // TestDefinitions
	"spec.suspend",                      // TestReconcile_Suspended
}

// TestConfigurationOf_EachFieldCounts sets each field of the spec alone: the configuration differs, or the field is refused.
func TestConfigurationOf_EachFieldCounts(t *testing.T) {
	equal := cmp.Exporter(func(reflect.Type) bool { return true })
	of := func(k *operatorv1alpha1.Karmada) *config.Configuration {
		c := configurationOf(k, given{})
		c.Names = nil // functions are not compared
		return c
	}
	base, n := of(karmada()), 0
	k := karmada()
	fields(reflect.ValueOf(&k.Spec).Elem(), "spec", func(path string, _ reflect.Value) {
		if slices.Contains(elsewhere, path) {
			return
		}
		n++
		changed := karmada()
		fields(reflect.ValueOf(&changed.Spec).Elem(), "spec", func(at string, f reflect.Value) {
			if at != path {
				return
			}
			if f.Type() == reflect.TypeFor[corev1.ResourceRequirements]() {
				f.Set(reflect.ValueOf(corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}))
				return
			}
			fill(t, at, f)
		})
		refused := slices.ContainsFunc(validate(changed), func(e *field.Error) bool { return strings.HasPrefix(e.Field, path) || strings.HasPrefix(path, e.Field) })
		if cmp.Equal(base, of(changed), equal) && !refused {
			t.Errorf("%s has no effect, and is not refused", path)
		}
	})
	if n < 100 {
		t.Errorf("only %d fields were set", n)
	}
}

// TestConfigurationOf_Stores has the three kinds of volumes, and an etcd that exists.
func TestConfigurationOf_Stores(t *testing.T) {
	for name, tc := range map[string]struct {
		etcd operatorv1alpha1.Etcd
		want string
	}{
		"none":      {operatorv1alpha1.Etcd{Local: &operatorv1alpha1.LocalEtcd{}}, components.StorageEmptyDir},
		"host path": {operatorv1alpha1.Etcd{Local: &operatorv1alpha1.LocalEtcd{VolumeData: &operatorv1alpha1.VolumeData{HostPath: &corev1.HostPathVolumeSource{Path: "/data"}}}}, components.StorageHostPath},
		"claim":     {operatorv1alpha1.Etcd{Local: &operatorv1alpha1.LocalEtcd{VolumeData: &operatorv1alpha1.VolumeData{VolumeClaim: &corev1.PersistentVolumeClaimTemplate{}}}}, components.StoragePVC},
	} {
		k := karmada()
		k.Spec.Components.Etcd = &tc.etcd
		if got := configurationOf(k, given{}); got.Etcd.StorageMode != tc.want || got.Etcd.External.Used() {
			t.Errorf("%s: %+v", name, got.Etcd)
		}
	}
	k := karmada()
	k.Spec.Components.Etcd = &operatorv1alpha1.Etcd{External: &operatorv1alpha1.ExternalEtcd{Endpoints: []string{"https://e:2379"}}}
	if got := configurationOf(k, given{etcd: map[string][]byte{"etcd-ca.crt": []byte("x")}}); !got.Etcd.External.Used() || got.Installs(components.Etcd) || len(got.Etcd.External.Files) != 1 {
		t.Errorf("external: %+v", got.Etcd)
	}
}

// TestNamesOf has the names of the contract.
func TestNamesOf(t *testing.T) {
	for karmada, want := range map[string]string{
		"karmada-demo": "karmada-demo-apiserver karmada-demo-etcd karmada-demo-kube-controller-manager karmada-demo-cert karmada-demo-webhook-cert karmada-demo-scheduler-config karmada-demo-admin-config",
		"demo":         "demo-karmada-apiserver demo-karmada-etcd demo-karmada-kube-controller-manager demo-karmada-cert demo-karmada-webhook-cert demo-karmada-scheduler-config demo-karmada-admin-config",
	} {
		names := namesOf(&operatorv1alpha1.Karmada{ObjectMeta: metav1.ObjectMeta{Name: karmada}})
		var got []string
		for _, name := range []string{components.APIServer, components.Etcd, components.KubeControllerManager, components.CertSecret, "karmada-webhook-cert", "karmada-scheduler-config", adminSecret} {
			got = append(got, names(name))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %s", karmada, strings.Join(got, " "))
		}
	}
}

// TestConfigurationOf_Images replaces a part of the name of an image.
func TestConfigurationOf_Images(t *testing.T) {
	k := karmada()
	k.Spec.PrivateRegistry.Registry = "registry.example"
	k.Spec.Components.KarmadaAPIServer.ImageTag = "v1.30.0"
	k.Spec.Components.KarmadaScheduler.ImageRepository = "other.example/scheduler"
	c := configurationOf(k, given{})
	if c.APIServer.Image != "registry.example/kube-apiserver:v1.30.0" || !strings.HasPrefix(c.Scheduler.Image, "other.example/scheduler:v") {
		t.Errorf("got %q and %q", c.APIServer.Image, c.Scheduler.Image)
	}
}

// TestValidate_Fields names the field of each problem.
func TestValidate_Fields(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*operatorv1alpha1.Karmada)
		want   string
	}{
		"none":        {func(*operatorv1alpha1.Karmada) {}, ""},
		"a long name": {func(k *operatorv1alpha1.Karmada) { k.Name = strings.Repeat("x", 40) }, "metadata.name"},
		"no etcd":     {func(k *operatorv1alpha1.Karmada) { k.Spec.Components.Etcd = &operatorv1alpha1.Etcd{} }, "spec.components.etcd: Required value: unexpected empty etcd configuration"},
		"two etcds":   {func(k *operatorv1alpha1.Karmada) { k.Spec.Components.Etcd.External = &operatorv1alpha1.ExternalEtcd{} }, "spec.components.etcd: Invalid value"},
		"external etcd": {func(k *operatorv1alpha1.Karmada) {
			k.Spec.Components.Etcd = &operatorv1alpha1.Etcd{External: &operatorv1alpha1.ExternalEtcd{Endpoints: []string{"e:2379"}}}
		}, "spec.components.etcd.external.endpoints[0]"},
		"a service type": {func(k *operatorv1alpha1.Karmada) { k.Spec.Components.KarmadaAPIServer.ServiceType = "ExternalName" }, "spec.components.karmadaAPIServer.serviceType"},
		"a class without": {func(k *operatorv1alpha1.Karmada) {
			a := k.Spec.Components.KarmadaAPIServer
			a.ServiceType, a.LoadBalancerClass = "NodePort", new("a")
		}, "spec.components.karmadaAPIServer.loadBalancerClass"},
		"a tarball": {func(k *operatorv1alpha1.Karmada) { k.Spec.CRDTarball.HTTPSource.URL = "file:///etc/passwd" }, "spec.crdTarball.httpSource.url: Invalid value: \"file:///etc/passwd\": invalid CRDs remote URL"},
		"a proxy": {func(k *operatorv1alpha1.Karmada) {
			k.Spec.CRDTarball.HTTPSource.Proxy = &operatorv1alpha1.ProxyConfig{}
		}, "spec.crdTarball.httpSource.proxy"},
		"a remote ClusterIP": {func(k *operatorv1alpha1.Karmada) {
			k.Spec.HostCluster.SecretRef.Name = "a"
			k.Spec.Components.KarmadaAPIServer.ServiceType = ""
		}, "spec.components.karmadaAPIServer.serviceType"},
		"members on a node": {func(k *operatorv1alpha1.Karmada) {
			l := k.Spec.Components.Etcd.Local
			l.Replicas, l.VolumeData = new(int32(3)), &operatorv1alpha1.VolumeData{HostPath: &corev1.HostPathVolumeSource{Path: "/a"}}
		}, "spec.components.etcd.local.replicas"},
	} {
		k := karmada()
		k.Spec.CRDTarball.HTTPSource = &operatorv1alpha1.HTTPSource{URL: "https://example.org/crds.tar.gz"}
		tc.change(k)
		got := ""
		if problems := validate(k); len(problems) > 0 {
			got = problems.ToAggregate().Error()
		}
		if tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// hostObjects returns the objects of a control plane in its host cluster, by kind and name.
func hostObjects(t *testing.T, k *operatorv1alpha1.Karmada) map[string]client.Object {
	t.Helper()
	c := configurationOf(k, given{server: "https://demo:5443"})
	creds, err := credentials.Make(c, nil, hostcluster.Addresses{Server: c.APIServer.Server}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	in := &phases.Inputs{Config: phases.ComponentsConfig(c, &hostcluster.Facts{}, creds), Server: c.APIServer.Server}
	chosen, err := phases.Chosen(c)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]client.Object{}
	for _, p := range append(chosen, phases.With(c.With)...) {
		objects, err := p.Host(in)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range objects {
			out[strings.TrimPrefix(reflect.TypeOf(o).String(), "*v1.")+" "+o.GetName()] = o
		}
	}
	return out
}

// TestHostObjects_OfTheContract has the names and labels of the contract on each object, and what the settings add.
func TestHostObjects_OfTheContract(t *testing.T) {
	k := karmada()
	k.Name = "karmada-demo"
	parts := k.Spec.Components
	parts.KarmadaAPIServer.SidecarContainers = []corev1.Container{{Name: "extra"}}
	parts.KarmadaAPIServer.ExtraVolumes = []corev1.Volume{{Name: "more"}}
	parts.KarmadaAPIServer.ExtraVolumeMounts = []corev1.VolumeMount{{Name: "more", MountPath: "/more"}}
	parts.KarmadaAPIServer.CertSANs = []string{"demo.example", "10.0.0.9"}
	parts.KarmadaAPIServer.PodDisruptionBudgetConfig = &operatorv1alpha1.PodDisruptionBudgetConfig{MinAvailable: new(intstr.FromInt32(1))}
	parts.KarmadaScheduler.Tolerations = []corev1.Toleration{{Key: "only"}}
	parts.KarmadaScheduler.Annotations = map[string]string{"note": "a"}
	parts.KarmadaWebhook.ExtraArgs = map[string]string{"v": "7"}
	k.Spec.FeatureGates = map[string]bool{"Failover": true}
	objects := hostObjects(t, k)
	var names []string
	for name, o := range objects {
		if names = append(names, name); name != "Namespace test" && (o.GetLabels()[components.ManagedByLabel] != "karmada-operator" || o.GetLabels()[components.InstanceLabel] != "karmada-demo" || o.GetNamespace() != "test") {
			t.Errorf("%s has labels %v", name, o.GetLabels())
		}
	}
	for _, want := range []string{
		"Deployment karmada-demo-aggregated-apiserver", "Deployment karmada-demo-apiserver", "Deployment karmada-demo-controller-manager", "Deployment karmada-demo-descheduler",
		"Deployment karmada-demo-kube-controller-manager", "Deployment karmada-demo-metrics-adapter", "Deployment karmada-demo-scheduler", "Deployment karmada-demo-search",
		"Deployment karmada-demo-webhook", "PodDisruptionBudget karmada-demo-apiserver", "Secret karmada-demo-cert", "Secret karmada-demo-etcd-cert", "Secret karmada-demo-webhook-cert",
		"Secret karmada-demo-scheduler-config", "Service karmada-demo-apiserver", "Service karmada-demo-etcd", "Service karmada-demo-etcd-client", "Service karmada-demo-webhook", "StatefulSet karmada-demo-etcd",
	} {
		if objects[want] == nil {
			t.Errorf("no %s among %v", want, names)
		}
	}
	if t.Failed() {
		return
	}
	api := objects["Deployment karmada-demo-apiserver"].(*appsv1.Deployment).Spec.Template.Spec
	if len(api.Containers) != 2 || api.Containers[1].Name != "extra" || api.Volumes[len(api.Volumes)-1].Name != "more" || api.Containers[0].VolumeMounts[len(api.Containers[0].VolumeMounts)-1].MountPath != "/more" {
		t.Errorf("%+v", api)
	}
	scheduler := objects["Deployment karmada-demo-scheduler"].(*appsv1.Deployment)
	if pod := scheduler.Spec.Template; len(pod.Spec.Tolerations) != 1 || scheduler.Annotations["note"] != "a" || pod.Annotations["note"] != "a" || !slices.Contains(pod.Spec.Containers[0].Command, "--feature-gates=Failover=true") {
		t.Errorf("%+v", scheduler)
	}
	webhook := objects["Deployment karmada-demo-webhook"].(*appsv1.Deployment).Spec.Template.Spec.Containers[0].Command
	if !slices.Contains(webhook, "--v=7") || slices.Contains(webhook, "--v=2") {
		t.Errorf("%q", webhook)
	}
	descheduler := objects["Deployment karmada-demo-descheduler"].(*appsv1.Deployment).Spec.Template.Spec.Containers[0].Command
	if slices.ContainsFunc(descheduler, func(arg string) bool { return strings.HasPrefix(arg, "--feature-gates") }) {
		t.Errorf("the descheduler has no feature gates: %q", descheduler)
	}
	if adapter := objects["Deployment karmada-demo-metrics-adapter"].(*appsv1.Deployment); *adapter.Spec.Replicas != 2 {
		t.Errorf("%d replicas", *adapter.Spec.Replicas)
	}
	cert, err := pki.ParseCert(objects["Secret karmada-demo-cert"].(*corev1.Secret).Data["apiserver.crt"])
	if err != nil || cert.VerifyHostname("demo.example") != nil || cert.VerifyHostname("10.0.0.9") != nil || cert.VerifyHostname("karmada-demo-apiserver.test.svc.cluster.local") != nil {
		t.Errorf("%v, %v", err, cert.DNSNames)
	}
}
