package components

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/karmada-toolkit/karmada/internal/build"
)

// sample is a control plane with the usual settings.
func sample() *Config {
	c := &Config{
		Namespace: "karmada-system", Domain: "cluster.local", NodePort: 32443,
		Workloads:    map[string]Workload{},
		Etcd:         EtcdConfig{StorageMode: StorageHostPath, DataPath: "/var/lib/karmada-etcd", NodeSelector: map[string]string{EtcdNodeLabel: ""}},
		Certificates: map[string][]byte{}, Kubeconfigs: map[string][]byte{},
	}
	for _, name := range []string{Etcd, APIServer, AggregatedAPIServer, KubeControllerManager, Scheduler, ControllerManager, Webhook} {
		c.Workloads[name] = Workload{Image: "registry.example.org/" + name + ":v1", PullPolicy: corev1.PullIfNotPresent, Replicas: 1, PriorityClass: "system-node-critical"}
	}
	return c
}

func render(t *testing.T, objects ...client.Object) string {
	t.Helper()
	var out strings.Builder
	for _, o := range objects {
		text, err := yaml.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		out.WriteString("---\n")
		out.Write(text)
	}
	return out.String()
}

func statefulSet(t *testing.T, c *Config) client.Object {
	t.Helper()
	s, err := EtcdStatefulSet(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func apiServer(t *testing.T, c *Config) *appsv1.Deployment {
	t.Helper()
	d, err := APIServerDeployment(c)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestWorkloads(t *testing.T) {
	c := sample()
	build.AssertGolden(t, "etcd", render(t, EtcdService(c), statefulSet(t, c)))
	build.AssertGolden(t, "apiserver", render(t, APIServerService(c), apiServer(t, c)))
	build.AssertGolden(t, "aggregated", render(t, AggregatedHostService(c), AggregatedDeployment(c)))
	build.AssertGolden(t, "kube-controller-manager", render(t, KubeControllerManagerService(c), KubeControllerManagerDeployment(c)))
	build.AssertGolden(t, "scheduler", render(t, SchedulerDeployment(c)))
	build.AssertGolden(t, "controller-manager", render(t, ControllerManagerDeployment(c)))
	build.AssertGolden(t, "webhook", render(t, WebhookService(c), WebhookDeployment(c)))
}

// sampleAddons is a control plane with the usual settings and addons.
func sampleAddons() *Config {
	c := sample()
	for _, name := range []string{Descheduler, MetricsAdapter, Search, EstimatorWorkload("member1")} {
		c.Workloads[name] = Workload{Image: "registry.example.org/" + name + ":v1", PullPolicy: corev1.PullIfNotPresent, Replicas: 1, PriorityClass: "system-node-critical"}
	}
	c.Certificates = map[string][]byte{
		"ca.crt": []byte("ca"), "ca.key": []byte("secret"), "karmada-metrics-adapter.crt": []byte("c"), "karmada-metrics-adapter.key": []byte("k"),
		"karmada-search.crt": []byte("c2"), "karmada-search.key": []byte("k2"),
		"karmada-scheduler-estimator-member1.crt": []byte("c1"), "karmada-scheduler-estimator-member1.key": []byte("k1"),
	}
	c.Kubeconfigs[EstimatorWorkload("member1")] = []byte("member1")
	return c
}

func TestAddons(t *testing.T) {
	c := sampleAddons()
	build.AssertGolden(t, "descheduler", render(t, DeschedulerDeployment(c)))
	build.AssertGolden(t, "estimator", render(t, EstimatorHost(c, "member1")...))
	build.AssertGolden(t, "metrics-adapter", render(t, append(MetricsAdapterHost(c),
		AddonServing(MetricsAdapter, c.Namespace, "karmada-metrics-adapter.karmada-system.svc.cluster.local", 443, []byte("ca"))...)...))
	build.AssertGolden(t, "search", render(t, append(SearchHost(c),
		AddonServing(Search, c.Namespace, "karmada-search.karmada-system.svc.cluster.local", 443, []byte("ca"))...)...))
}

func TestAddons_HaveNoKeysOfOthers(t *testing.T) {
	c := sampleAddons()
	text := render(t, append(append(EstimatorHost(c, "member1"), MetricsAdapterHost(c)...), DeschedulerDeployment(c))...)
	for _, key := range []string{base64.StdEncoding.EncodeToString([]byte("secret")), "ca.key", "karmada.key", "front-proxy", "etcd"} {
		if strings.Contains(text, key) {
			t.Errorf("an addon mounts or holds %s", key)
		}
	}
	if n := strings.Count(text, "secretName: "+CertSecret+"\n"); n != 1 {
		t.Errorf("%d addons mount %s, want the descheduler alone", n, CertSecret)
	}
}

func TestEstimator_PodsFollowTheirKubeconfig(t *testing.T) {
	hash := func(kubeconfig string) string {
		c := sampleAddons()
		c.Kubeconfigs[EstimatorWorkload("member1")] = []byte(kubeconfig)
		objects := EstimatorHost(c, "member1")
		return objects[len(objects)-1].(*appsv1.Deployment).Spec.Template.Annotations[ContentHashAnnotation]
	}
	if hash("a") == hash("b") {
		t.Error("pods are not replaced when the kubeconfig changes")
	}
}

func TestWorkloads_EverythingElse(t *testing.T) {
	c := sample()
	c.IPv6, c.PullSecrets, c.ServiceAnnotations = true, []string{"pull"}, map[string]string{"a": "b"}
	c.Etcd = EtcdConfig{StorageMode: StoragePVC, StorageClass: "fast", Size: "5Gi"}
	w := c.Workloads[Etcd]
	w.Replicas = 3
	c.Workloads[Etcd] = w
	w = c.Workloads[APIServer]
	w.Replicas, w.ExtraArgs = 3, []string{"--v=4", "--audit-log-path=-"}
	w.PodSettings = PodSettings{
		NodeSelector: map[string]string{"disk": "ssd"}, Tolerations: []corev1.Toleration{{Key: "x", Operator: corev1.TolerationOpExists}},
		Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}},
		Affinity:  &corev1.Affinity{},
	}
	c.Workloads[APIServer] = w
	build.AssertGolden(t, "ha", render(t, statefulSet(t, c), APIServerService(c), apiServer(t, c)))
}

func TestExternalEtcd(t *testing.T) {
	c := sample()
	c.Etcd = EtcdConfig{ExternalServers: "https://a:2379,https://b:2379", KeyPrefix: "/karmada"}
	for _, d := range []client.Object{apiServer(t, c), AggregatedDeployment(c)} {
		text := render(t, d)
		for _, want := range []string{"--etcd-servers=https://a:2379,https://b:2379", "--etcd-prefix=/karmada"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s lacks %s", d.GetName(), want)
			}
		}
	}
}

func TestPods_MountOnlyTheKeysTheyNeed(t *testing.T) {
	c := sample()
	holders := map[string][]string{}
	for _, d := range []client.Object{
		statefulSet(t, c), apiServer(t, c), AggregatedDeployment(c), KubeControllerManagerDeployment(c),
		SchedulerDeployment(c), ControllerManagerDeployment(c), WebhookDeployment(c),
	} {
		text := render(t, d)
		for _, key := range []string{"ca.key", "etcd-ca.key", "front-proxy-ca.key", "karmada.key", "service-account.key", "etcd-server.key"} {
			if strings.Contains(text, "key: "+key+"\n") {
				holders[key] = append(holders[key], d.GetName())
			}
		}
	}
	want := map[string][]string{
		"ca.key":              {KubeControllerManager},
		"service-account.key": {APIServer, KubeControllerManager},
		"etcd-server.key":     {Etcd},
	}
	if diff := cmp.Diff(want, holders); diff != "" {
		t.Error(diff)
	}
}

func TestEtcdStatefulSet_KeepsPodsThatHaveTheData(t *testing.T) {
	c := sample()
	c.Etcd.ContentHash = "of another version"
	if got := statefulSet(t, c).(*appsv1.StatefulSet).Spec.Template.Annotations[ContentHashAnnotation]; got != "of another version" {
		t.Errorf("the pods are replaced: %q", got)
	}
}

func TestContentHash_ChangesOnlyForThoseWhoMountWhatChanged(t *testing.T) {
	hashes := func(c *Config) map[string]string {
		return map[string]string{
			APIServer: apiServer(t, c).Spec.Template.Annotations[ContentHashAnnotation],
			Webhook:   WebhookDeployment(c).Spec.Template.Annotations[ContentHashAnnotation],
			Scheduler: SchedulerDeployment(c).Spec.Template.Annotations[ContentHashAnnotation],
		}
	}
	before := hashes(sample())
	c := sample()
	c.Certificates["karmada-webhook.crt"] = []byte("new")
	after := hashes(c)
	if after[Webhook] == before[Webhook] || after[APIServer] != before[APIServer] || after[Scheduler] != before[Scheduler] {
		t.Errorf("before %v, after %v", before, after)
	}
	c.Kubeconfigs[Scheduler] = []byte("new")
	if got := hashes(c); got[Scheduler] == before[Scheduler] || got[Webhook] != after[Webhook] {
		t.Errorf("after the kubeconfig changed: %v", got)
	}
}

func TestSecrets(t *testing.T) {
	c := sample()
	c.Certificates = map[string][]byte{"ca.crt": []byte("ca"), "karmada-webhook.crt": []byte("w"), "karmada-webhook.key": []byte("k"), "etcd-ca.crt": []byte("e")}
	got := map[string][]string{}
	secrets, err := Secrets(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range secrets {
		s, ok := o.(*corev1.Secret)
		if !ok || s.Labels[BootstrapLabel] != SecretDefaults || s.Namespace != c.Namespace {
			t.Errorf("%s: %v", o.GetName(), o.GetLabels())
			continue
		}
		got[s.Name] = keysOf(s.Data)
	}
	kubeconfig := []string{"karmada.config"}
	want := map[string][]string{
		"etcd-cert":            {"etcd-ca.crt", "etcd-ca.key", "etcd-server.crt", "etcd-server.key"},
		"karmada-cert":         {"ca.crt", "etcd-ca.crt", "karmada-webhook.crt", "karmada-webhook.key"},
		"karmada-webhook-cert": {"tls.crt", "tls.key"}, "karmada-aggregated-apiserver-config": kubeconfig, "karmada-controller-manager-config": kubeconfig,
		"karmada-apiserver-admission":    {"admission.yaml", "webhooks.kubeconfig"},
		"kube-controller-manager-config": kubeconfig, "karmada-scheduler-config": kubeconfig, "karmada-descheduler-config": kubeconfig,
		"karmada-metrics-adapter-config": kubeconfig, "karmada-search-config": kubeconfig, "karmada-webhook-config": kubeconfig,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestMergeArgs(t *testing.T) {
	got := mergeArgs([]string{"program", "--a=1", "--b=2", "--c"}, []string{"--z=1", "--b=3", "--z=0", "--a"})
	want := []string{"program", "--c", "--a", "--b=3", "--z=1", "--z=0"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestObjects_AreTheSameEachTime(t *testing.T) {
	for range 20 {
		a, err := json.Marshal(apiServer(t, sample()))
		if err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(apiServer(t, sample()))
		if err != nil {
			t.Fatal(err)
		}
		if string(a) != string(b) {
			t.Fatal("they differ")
		}
	}
}

// Workloads that others made keep the labels by which they select their pods, and Services lead to the same pods.
func TestSelectors(t *testing.T) {
	c := sample()
	own := map[string]string{"app.kubernetes.io/name": "server"}
	c.Selectors = map[string]map[string]string{AggregatedAPIServer: own, Etcd: own}
	d := AggregatedDeployment(c)
	if !maps.Equal(d.Spec.Selector.MatchLabels, own) || d.Spec.Template.Labels["app.kubernetes.io/name"] != "server" || d.Spec.Template.Labels["app"] != AggregatedAPIServer {
		t.Errorf("%v, %v", d.Spec.Selector, d.Spec.Template.Labels)
	}
	for _, o := range []client.Object{AggregatedHostService(c), EtcdService(c), EtcdClientService(c)} {
		if s := o.(*corev1.Service); !maps.Equal(s.Spec.Selector, own) {
			t.Errorf("Service %s selects %v", s.Name, s.Spec.Selector)
		}
	}
	if s := WebhookService(c).(*corev1.Service); !maps.Equal(s.Spec.Selector, map[string]string{"app": Webhook}) {
		t.Errorf("Service %s selects %v", s.Name, s.Spec.Selector)
	}
}
