package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/karmada-toolkit/karmada/internal/pki"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
)

// every is a configuration file with every field.
const every = `
apiVersion: config.karmada.io/v1alpha1
kind: KarmadaInitConfig
metadata: {name: x}
spec:
  certificates:
    caCertFile: /ca.crt
    caKeyFile: /ca.key
    externalDNS: [a.example.org, b.example.org]
    externalIP: [1.2.3.4]
    validityPeriod: 24h
  etcd:
    local:
      repository: registry/etcd
      tag: v3
      replicas: 3
      dataPath: /data
      pvcSize: 10Gi
      storageMode: PVC
      storageClassesName: fast
      nodeSelectorLabels: {b: "2", a: "1"}
      extraArgs: [{name: quota-backend-bytes, value: "1"}, {name: verbose}]
      resources: {requests: {cpu: 200m}}
  hostCluster: {kubeconfig: /host, context: host, domain: example.local, apiEndpoint: "https://host:6443"}
  images:
    imagePullPolicy: Always
    imagePullSecrets: [pull]
    kubeImageMirrorCountry: cn
    kubeImageRegistry: kube.example.org
    kubeImageTag: v1.30.0
    privateRegistry: {registry: private.example.org}
  components:
    karmadaAPIServer:
      repository: registry/kube-apiserver
      tag: v1
      replicas: 2
      advertiseAddress: 10.0.0.1
      networking: {namespace: other, port: 32000}
      serviceAnnotations: {a: b}
      extraArgs: [{name: v, value: "4"}]
      nodeSelector: {disk: ssd}
      tolerations: [{key: x, operator: Exists}]
      affinity: {}
    karmadaAggregatedAPIServer: {replicas: 3}
    kubeControllerManager: {replicas: 4}
    karmadaControllerManager: {replicas: 5}
    karmadaScheduler: {replicas: 6}
    karmadaWebhook: {repository: registry/webhook, tag: v2}
  karmadaCRDs: /crds
  karmadaDataPath: /data/karmada
  karmadaPKIPath: /data/pki
  waitComponentReadyTimeout: 60
`

func write(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "init.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestComplete_EveryFieldOfTheFile(t *testing.T) {
	got := NewOptions()
	got.ConfigFile = write(t, every)
	got.Webhook.ExtraArgs = []string{"--a=1", "2"}
	got.APIServer.ExtraArgs = []string{"--v=1", "--x"}
	if err := got.Complete(); err != nil {
		t.Fatal(err)
	}
	want := NewOptions()
	want.ConfigFile = got.ConfigFile
	want.Certificates = CertificateOptions{ExternalIP: "1.2.3.4", ExternalDNS: "a.example.org,b.example.org", Validity: metav1.Duration{Duration: 24 * time.Hour}, CACertFile: "/ca.crt", CAKeyFile: "/ca.key", KeyAlgorithm: KeyECDSA}
	e := &want.Etcd
	e.Image, e.Replicas, e.DataPath, e.PVCSize, e.StorageMode, e.StorageClass, e.NodeSelector = "registry/etcd:v3", 3, "/data", "10Gi", "PVC", "fast", "a=1,b=2"
	e.ExtraArgs = []string{"--quota-backend-bytes=1", "--verbose"}
	e.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("200m")}
	want.Host = HostOptions{Kubeconfig: "/host", Context: "host", Endpoint: "https://host:6443", Domain: "example.local"}
	want.Images = ImageOptions{RegistryOptions: RegistryOptions{PrivateRegistry: "private.example.org"}, PullPolicy: "Always", PullSecrets: []string{"pull"}, MirrorCountry: "cn", KubeRegistry: "kube.example.org", KubeTag: "v1.30.0"}
	a := &want.APIServer
	a.Image, a.Replicas, a.AdvertiseAddress, a.NodePort, a.Namespace = "registry/kube-apiserver:v1", 2, "10.0.0.1", 32000, "other"
	a.ServiceAnnotations, a.ExtraArgs = map[string]string{"a": "b"}, []string{"--x", "--v=4"}
	a.PodSettings = components.PodSettings{NodeSelector: map[string]string{"disk": "ssd"}, Tolerations: []corev1.Toleration{{Key: "x", Operator: "Exists"}}, Affinity: &corev1.Affinity{}}
	want.Aggregated.Replicas, want.KubeControllerManager.Replicas, want.ControllerManager.Replicas, want.Scheduler.Replicas = 3, 4, 5, 6
	want.Webhook.Image, want.Webhook.ExtraArgs = "registry/webhook:v2", []string{"--a=1,2"}
	want.CRDs, want.DataPath, want.PKIPath, want.WaitSeconds = "/crds", "/data/karmada", "/data/pki", 60
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestComplete_EmptyValuesLeaveTheFlags(t *testing.T) {
	got := NewOptions()
	got.ConfigFile = write(t, `
apiVersion: config.karmada.io/v1alpha1
kind: KarmadaInitConfig
spec:
  certificates: {externalIP: [], validityPeriod: 0s}
  etcd: {local: {storageMode: "", nodeSelectorLabels: {}}, external: null}
  hostCluster: {domain: ""}
  images: {imagePullSecrets: []}
  components: {karmadaAPIServer: {replicas: 0, networking: {}, serviceAnnotations: {}}, karmadaWebhook: null}
  waitComponentReadyTimeout: 0
`)
	got.Certificates.ExternalIP, got.Images.PullSecrets, got.Webhook.ExtraArgs = "1.2.3.4", []string{"pull"}, []string{"--a"}
	want := got
	if err := got.Complete(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestComplete_ExternalEtcd(t *testing.T) {
	o := NewOptions()
	o.ConfigFile = write(t, `
apiVersion: config.karmada.io/v1alpha1
kind: KarmadaInitConfig
spec:
  etcd:
    external: {endpoints: ["https://a:2379", "https://b:2379"], caFile: /ca, certFile: /crt, keyFile: /key, keyPrefix: /p}
`)
	if err := o.Complete(); err != nil {
		t.Fatal(err)
	}
	want := ExternalEtcdOptions{Servers: "https://a:2379,https://b:2379", CAFile: "/ca", CertFile: "/crt", KeyFile: "/key", KeyPrefix: "/p"}
	if diff := cmp.Diff(want, o.Etcd.External); diff != "" {
		t.Error(diff)
	}
}

func TestComplete_RefusesWhatItDoesNotKnow(t *testing.T) {
	const head = "apiVersion: config.karmada.io/v1alpha1\nkind: KarmadaInitConfig\n"
	for name, tc := range map[string]struct{ file, want string }{
		"no kind":             {"spec: {}", "failed to load karmada init configuration: invalid configuration for GroupVersionKind /, Kind=: kind and apiVersion is mandatory information that must be specified"},
		"another group":       {"apiVersion: x/v1\nkind: KarmadaInitConfig", "invalid Group or Version: expected group"},
		"another kind":        {"apiVersion: config.karmada.io/v1alpha1\nkind: Other", "no KarmadaInitConfig kind was found in the YAML file"},
		"an unknown field":    {head + "spec: {karmadaDataPat: /x}", `unknown field "karmadaDataPat"`},
		"a setting of flags":  {head + "spec: {components: {karmadaWebhook: {priorityClass: x}}}", `unknown field "priorityClass"`},
		"a wrong type":        {head + "spec: {waitComponentReadyTimeout: soon}", "waitComponentReadyTimeout"},
		"no YAML":             {"a: b: c", "unable to read config from"},
		"a Secret":            {head + "spec: {hostCluster: {secretRef: {name: x}}}", "failed to parse karmada init configuration: spec.hostCluster.secretRef cannot be used"},
		"half an image":       {head + "spec: {components: {karmadaWebhook: {tag: v1}}}", "spec.components.karmadaWebhook has only one of repository and tag"},
		"a nameless argument": {head + "spec: {components: {karmadaScheduler: {extraArgs: [{name: a}, {value: x}]}}}", "the extra args[1] name is empty"},
		"two stores":          {head + "spec: {etcd: {local: {}, external: {}}}", "spec.etcd has both local and external"},
	} {
		t.Run(name, func(t *testing.T) {
			o := NewOptions()
			o.ConfigFile = write(t, tc.file)
			if err := o.Complete(); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
	o := NewOptions()
	o.ConfigFile = "/nowhere/x"
	if err := o.Complete(); err == nil || !strings.HasPrefix(err.Error(), `failed to load karmada init configuration: unable to read config from "/nowhere/x": `) {
		t.Error(err)
	}
}

func TestParseExtraArgs(t *testing.T) {
	got, err := parseExtraArgs([]string{"--a=1", "2", "--b", "--c_d-e=x=y"})
	if diff := cmp.Diff([]string{"--a=1,2", "--b", "--c_d-e=x=y"}, got); diff != "" || err != nil {
		t.Error(err, diff)
	}
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{" --a"}, `argument " --a" contains leading/trailing whitespace`},
		{[]string{"a"}, `argument "a" is invalid: no preceding --key found`},
		{[]string{"--=x"}, "invalid argument: --=x"},
		{[]string{"--1"}, "invalid argument: --1"},
	} {
		if _, err := parseExtraArgs(tc.args); err == nil || err.Error() != tc.want {
			t.Errorf("%q: got %v, want %s", tc.args, err, tc.want)
		}
	}
}

// validate returns the error of the request that the options make.
func validate(o Options) error {
	_, err := o.Request("karmadactl", []string{"certs", "etcd"})
	return err
}

func TestRequest_RefusesWhatCannotBe(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"the defaults":          {func(*Options) {}, ""},
		"an advertised name":    {func(o *Options) { o.APIServer.AdvertiseAddress = "host" }, "karmada apiserver advertise address is not valid"},
		"an external name":      {func(o *Options) { o.Certificates.ExternalIP = "1.2.3.4,x" }, `cert-external-ip "x" is not a valid IP address`},
		"half an authority":     {func(o *Options) { o.Certificates.CACertFile = "x" }, "ca-cert-file and ca-key-file must be used together"},
		"a pull policy":         {func(o *Options) { o.Images.PullPolicy = "Sometimes" }, "invalid image pull policy: Sometimes"},
		"no data path":          {func(o *Options) { o.Etcd.DataPath = "" }, "when etcd storage mode is hostPath, dataPath is not empty. See 'karmadactl init --help'"},
		"replicas on a disk":    {func(o *Options) { o.Etcd.Replicas = 3 }, "for data security,when etcd storage mode is hostPath,etcd-replicas can only be 1"},
		"no storage class":      {func(o *Options) { o.Etcd.StorageMode = "PVC" }, "when etcd storage mode is PVC, storageClassesName is not empty. See 'karmadactl init --help'"},
		"a size":                {func(o *Options) { o.Etcd.StorageMode, o.Etcd.StorageClass, o.Etcd.PVCSize = "PVC", "x", "big" }, `etcd-pvc-size "big" is not a size`},
		"a storage mode":        {func(o *Options) { o.Etcd.StorageMode = "tape" }, "unsupported etcd-storage-mode tape. See 'karmadactl init --help'"},
		"an empty storage mode": {func(o *Options) { o.Etcd.StorageMode = "" }, ""},
		"a time":                {func(o *Options) { o.WaitSeconds = -1 }, "wait-component-ready-timeout must be greater than or equal to 0"},
		"for ever":              {func(o *Options) { o.WaitSeconds = 0 }, ""},
		"half an identity": {func(o *Options) { o.Etcd.External.Servers, o.Etcd.External.CertFile = "https://x", "x" },
			"etcd client cert and key should be specified both or none"},
		"no identity": {func(o *Options) { o.Etcd.External.Servers = "https://x" }, "an external etcd needs --external-etcd-ca-cert-path"},
		"a negative time there": {func(o *Options) {
			o.Etcd.External = ExternalEtcdOptions{Servers: "https://x", CAFile: "a", CertFile: "b", KeyFile: "c"}
			o.WaitSeconds = -1
		}, "wait-component-ready-timeout"},
		"a namespace":    {func(o *Options) { o.APIServer.Namespace = "A" }, `namespace "A"`},
		"no replicas":    {func(o *Options) { o.Webhook.Replicas = 0 }, "karmada-webhook-replicas 0 must be at least 1"},
		"an algorithm":   {func(o *Options) { o.Certificates.KeyAlgorithm = "dsa" }, "key-algorithm"},
		"both of phases": {func(o *Options) { o.Phases.Only, o.Phases.Skip = []string{"certs"}, []string{"etcd"} }, "cannot be used together"},
		"a phase":        {func(o *Options) { o.Phases.Only = []string{"x"} }, `there is no phase "x"`},
		"labels":         {func(o *Options) { o.Etcd.NodeSelector = "a" }, "the etcdNodeSelector format is incorrect"},
		"a country":      {func(o *Options) { o.Images.MirrorCountry = "xx" }, "kube-image-mirror-country"},
	} {
		t.Run(name, func(t *testing.T) {
			o := NewOptions()
			tc.change(&o)
			err := validate(o)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}

func TestImageList(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Options)
		want   []string
	}{
		"defaults": {func(*Options) {}, []string{
			"docker.io/karmada/karmada-aggregated-apiserver:REL", "docker.io/karmada/karmada-controller-manager:REL", "docker.io/karmada/karmada-scheduler:REL", "docker.io/karmada/karmada-webhook:REL",
			"registry.k8s.io/etcd:3.6.8-0", "registry.k8s.io/kube-apiserver:v1.36.2", "registry.k8s.io/kube-controller-manager:v1.36.2",
		}},
		"a private registry, a mirror and one image": {func(o *Options) {
			o.Images.PrivateRegistry, o.Images.MirrorCountry, o.Images.KubeTag, o.Webhook.Image = "private", "CN", "v1", "mine:1"
		}, []string{
			"mine:1", "private/karmada-aggregated-apiserver:REL", "private/karmada-controller-manager:REL", "private/karmada-scheduler:REL",
			chinaKubeRegistry + "/etcd:3.6.8-0", chinaKubeRegistry + "/kube-apiserver:v1", chinaKubeRegistry + "/kube-controller-manager:v1",
		}},
		"a registry of Kubernetes' images, an external etcd": {func(o *Options) {
			o.Images.PrivateRegistry, o.Images.KubeRegistry, o.Etcd.External.Servers = "private", "kube", "https://x"
		}, []string{
			"kube/kube-apiserver:v1.36.2", "kube/kube-controller-manager:v1.36.2",
			"private/karmada-aggregated-apiserver:REL", "private/karmada-controller-manager:REL", "private/karmada-scheduler:REL", "private/karmada-webhook:REL",
		}},
		"one image for all": {func(o *Options) { o.SetKarmadaImage("all:1"); o.Images.PrivateRegistry = "private" }, []string{
			"all:1", "private/etcd:3.6.8-0", "private/kube-apiserver:v1.36.2", "private/kube-controller-manager:v1.36.2",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			o := NewOptions()
			release := strings.TrimPrefix(o.Webhook.Image, "docker.io/karmada/karmada-webhook:")
			tc.change(&o)
			var got []string
			for _, image := range o.ImageSet().List() {
				got = append(got, strings.Replace(image, ":"+release, ":REL", 1))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRequest_ParsesTheOptions(t *testing.T) {
	o := NewOptions()
	o.Certificates.ExternalIP, o.Certificates.ExternalDNS = "1.2.3.4, ::1,", "a.example.org"
	o.Certificates.KeyAlgorithm, o.Etcd.NodeSelector, o.DataPath = KeyRSA, "a=1,b=", "/data"
	o.WaitSeconds, o.Phases.Only = 0, []string{"etcd"}
	r, err := o.Request("karmadactl", []string{"certs", "etcd"})
	if err != nil {
		t.Fatal(err)
	}
	want := Certificates{ExternalIPs: []string{"1.2.3.4", "::1"}, ExternalDNS: []string{"a.example.org"}, Validity: o.Certificates.Validity.Duration, Algorithm: pki.RSA}
	if diff := cmp.Diff(want, r.Certificates); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"a": "1", "b": ""}, r.Etcd.NodeSelector); diff != "" || r.Etcd.External != nil || !r.Etcd.OnNode() {
		t.Errorf("etcd: %+v", r.Etcd)
	}
	if r.CRDs != "" || r.Timeout != Unlimited || r.Directory != (Directory{Data: "/data", PKI: "/data/pki"}) || len(r.Workloads) != 7 {
		t.Errorf("got %+v", r)
	}
	if r.Runs("certs") || !r.Runs("etcd") {
		t.Error("only one phase runs")
	}
	o = NewOptions()
	o.Etcd.StorageMode, o.Phases.Skip = "", []string{"etcd"}
	if r, err = o.Request("karmadactl", []string{"certs", "etcd"}); err != nil || r.Etcd.StorageMode != "emptyDir" || r.Runs("etcd") || !r.Runs("certs") || r.Certificates.Algorithm != pki.ECDSA {
		t.Errorf("got %+v, %v", r, err)
	}
}
