package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
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
	got := New()
	got.ConfigFile = write(t, every)
	if err := got.LoadFile(nil); err != nil {
		t.Fatal(err)
	}
	want := New()
	want.ConfigFile = got.ConfigFile
	want.Certificates = Certificates{ExternalIP: List{"1.2.3.4"}, ExternalDNS: List{"a.example.org", "b.example.org"}, Validity: metav1.Duration{Duration: 24 * time.Hour}, CACertFile: "/ca.crt", CAKeyFile: "/ca.key", KeyAlgorithm: KeyECDSA}
	e := &want.Etcd
	e.Image, e.Replicas, e.DataPath, e.PVCSize, e.StorageMode, e.StorageClass, e.NodeLabels = "registry/etcd:v3", 3, "/data", "10Gi", "PVC", "fast", Labels{"a": "1", "b": "2"}
	e.ExtraArgs = ArgsOf("--quota-backend-bytes=1", "--verbose")
	e.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("200m")}
	want.Host = Host{Kubeconfig: "/host", Context: "host", Endpoint: "https://host:6443", Domain: "example.local"}
	want.Images = Images{Registry: Registry{PrivateRegistry: "private.example.org"}, PullPolicy: "Always", PullSecrets: []string{"pull"}, MirrorCountry: "cn", KubeRegistry: "kube.example.org", KubeTag: "v1.30.0"}
	a := &want.APIServer
	a.Image, a.Replicas, a.AdvertiseAddress, a.NodePort, a.Namespace = "registry/kube-apiserver:v1", 2, "10.0.0.1", 32000, "other"
	a.ServiceAnnotations, a.ExtraArgs = map[string]string{"a": "b"}, ArgsOf("--v=4")
	a.PodSettings = components.PodSettings{NodeSelector: map[string]string{"disk": "ssd"}, Tolerations: []corev1.Toleration{{Key: "x", Operator: "Exists"}}, Affinity: &corev1.Affinity{}}
	want.Aggregated.Replicas, want.KubeControllerManager.Replicas, want.ControllerManager.Replicas, want.Scheduler.Replicas = 3, 4, 5, 6
	want.Webhook.Image = "registry/webhook:v2"
	want.CRDs, want.DataPath, want.PKIPath, want.WaitSeconds = "/crds", "/data/karmada", "/data/pki", 60
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestComplete_EmptyValuesLeaveTheFlags(t *testing.T) {
	got := New()
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
	got.Certificates.ExternalIP, got.Images.PullSecrets, got.Webhook.ExtraArgs = List{"1.2.3.4"}, []string{"pull"}, ArgsOf("--a")
	want := got
	if err := got.Complete(nil, "karmadactl", nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestComplete_ExternalEtcd(t *testing.T) {
	o := New()
	o.ConfigFile = write(t, `
apiVersion: config.karmada.io/v1alpha1
kind: KarmadaInitConfig
spec:
  etcd:
    external: {endpoints: ["https://a:2379", "https://b:2379"], caFile: /ca, certFile: /crt, keyFile: /key, keyPrefix: /p}
`)
	if err := o.Complete(nil, "karmadactl", nil); err != nil {
		t.Fatal(err)
	}
	want := ExternalEtcd{Servers: List{"https://a:2379", "https://b:2379"}, CAFile: "/ca", CertFile: "/crt", KeyFile: "/key", KeyPrefix: "/p"}
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
		"an unknown field":    {head + "spec: {karmadaDataPat: /x}", `unknown field "spec.karmadaDataPat"`},
		"an unknown argument": {head + "spec: {components: {karmadaWebhook: {extraArgs: [{nam: x}]}}}", `unknown field "spec.components.karmadaWebhook.extraArgs[0].nam"`},
		"a value twice":       {head + "spec: {karmadaDataPath: /x, karmadaDataPath: /y}", `key "karmadaDataPath" already set`},
		"an empty unknown":    {head + "spec: {karmadaDataPat: ''}", `unknown field "spec.karmadaDataPat"`},
		"a wrong value":       {head + "spec: {waitComponentReadyTimeout: -1}", "must be greater than or equal to 0 (spec.waitComponentReadyTimeout in "},
		"a wrong type":        {head + "spec: {waitComponentReadyTimeout: soon}", "waitComponentReadyTimeout"},
		"no YAML":             {"a: b: c", "unable to read config from"},
		"a Secret":            {head + "spec: {hostCluster: {secretRef: {name: x}}}", "failed to parse karmada init configuration: spec.hostCluster.secretRef cannot be used"},
		"half an image":       {head + "spec: {components: {karmadaWebhook: {tag: v1}}}", "spec.components.karmadaWebhook has only one of repository and tag"},
		"a nameless argument": {head + "spec: {components: {karmadaScheduler: {extraArgs: [{name: a}, {value: x}]}}}", "spec.components.karmadaScheduler.extraArgs[1].name: the extra args[1] name is empty"},
		"two stores":          {head + "spec: {etcd: {local: {}, external: {}}}", "spec.etcd has both local and external"},
	} {
		t.Run(name, func(t *testing.T) {
			o := New()
			o.ConfigFile = write(t, tc.file)
			if err := o.Complete(nil, "karmadactl", nil); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
	o := New()
	o.ConfigFile = "/nowhere/x"
	if err := o.Complete(nil, "karmadactl", nil); err == nil || !strings.HasPrefix(err.Error(), `failed to load karmada init configuration: unable to read config from "/nowhere/x": `) {
		t.Error(err)
	}
}

func TestArgs(t *testing.T) {
	var got Args
	for _, text := range []string{"--a=1,2,--b", "--c_d-e=x=y,--f=", `"--g=""q"",r"`} {
		if err := got.Set(text); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"--a=1,2", "--b", "--c_d-e=x=y", "--f=", `--g="q",r`}, got.Strings()); diff != "" {
		t.Error(diff)
	}
	for text, want := range map[string]string{
		`" --a"`: `argument " --a" contains leading/trailing whitespace`, "a": `argument "a" is invalid: no preceding --key found`,
		"--=x": "invalid argument: --=x", "--1": "invalid argument: --1",
	} {
		if err := new(Args).Set(text); err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}

func FuzzArgs(f *testing.F) {
	for _, text := range []string{"--a=1,2,--b", "--f=", `"--g=""q"",r"`, "--a=--b,=,--c"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var args Args
		if args.Set(text) != nil {
			return
		}
		if diff := cmp.Diff(args, ArgsOf(args.Strings()...)); diff != "" {
			t.Error(diff)
		}
		for _, arg := range args.Strings() {
			if !strings.HasPrefix(arg, "--") {
				t.Errorf("%q of %q", arg, text)
			}
		}
	})
}

// Flags that are given precede the file, those that are not do not, and arguments are merged by their names.
func TestComplete_FlagsPrecedeTheFile(t *testing.T) {
	c := New()
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	c.AddFlags(fs)
	err := fs.Parse([]string{
		"--config=" + write(t, every), "--port=32443", "--cert-external-ip=::1", "--etcd-node-selector-labels=z=1", "--etcd-storage-mode=hostPath", "--etcd-replicas=1",
		"--image-pull-secrets=a,b", "--karmada-apiserver-extra-args=--v=1,--x", "--karmada-webhook-image=mine:1", "--cert-validity-period=1h", "-n", "third",
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Complete(fs, "karmadactl", nil); err != nil {
		t.Fatal(err)
	}
	want := New()
	want.ConfigFile = c.ConfigFile
	if err := want.LoadFile(nil); err != nil {
		t.Fatal(err)
	}
	want.APIServer.NodePort, want.Certificates.ExternalIP, want.Etcd.NodeLabels, want.Etcd.StorageMode, want.Etcd.Replicas = 32443, List{"::1"}, Labels{"z": "1"}, "hostPath", 1
	want.Images.PullSecrets, want.APIServer.ExtraArgs, want.Webhook.Image = []string{"a", "b"}, ArgsOf("--v=1", "--x"), "mine:1"
	want.Certificates.Validity.Duration, want.APIServer.Namespace = time.Hour, "third"
	if diff := cmp.Diff(want, c); diff != "" {
		t.Error(diff)
	}
}

// What is printed is read again to the same, other than secrets.
func TestFile(t *testing.T) {
	first := New()
	first.ConfigFile = write(t, strings.Replace(every, "nodeSelectorLabels:", "nodeSelector:", 1))
	if err := first.Complete(nil, "karmadactl", nil); err != nil {
		t.Fatal(err)
	}
	first.Webhook.PriorityClass, first.Certificates.KeyAlgorithm = "high", KeyRSA
	first.Scheduler.ExtraArgs = ArgsOf("--empty=", "--bare", "--list=1,2")
	text, err := first.File()
	if err != nil {
		t.Fatal(err)
	}
	second := New()
	second.ConfigFile = write(t, string(text))
	if err := second.Complete(nil, "karmadactl", nil); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	for _, p := range first.Parts() {
		p.Image = first.ImageOf(p)
	}
	second.ConfigFile = first.ConfigFile
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("%s in\n%s", diff, text)
	}
	external := New()
	external.Etcd.External = ExternalEtcd{Servers: List{"https://etcd:2379"}, CAFile: "/ca", CertFile: "/crt", KeyFile: "/key"}
	external.WaitSeconds = 0
	if text, err = external.File(); err != nil {
		t.Fatal(err)
	}
	second = New()
	second.ConfigFile = write(t, string(text))
	if err := second.Complete(nil, "karmadactl", nil); err != nil || !cmp.Equal(second.Etcd.External, external.Etcd.External) || second.Timeout() != Unlimited {
		t.Errorf("%v in\n%s", err, text)
	}
	secret := New()
	secret.Etcd.External.Servers = List{"https://user:hunter2@etcd:2379"}
	secret.Webhook.ExtraArgs = ArgsOf("--some-password=hunter2", "--v=2")
	if text, err = secret.File(); err != nil || strings.Contains(string(text), "hunter2") || !strings.Contains(string(text), "value: \"2\"") {
		t.Errorf("%v in\n%s", err, text)
	}
	if secret.Etcd.External.Servers[0] != "https://user:hunter2@etcd:2379" || secret.Webhook.ExtraArgs[0].Value != "hunter2" {
		t.Error("the configuration was changed")
	}
}

// validate returns the error of the request that the options make.
func validate(o Configuration) error {
	return o.Complete(nil, "karmadactl", []string{"certs", "etcd"})
}

func TestRequest_RefusesWhatCannotBe(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Configuration)
		want   string
	}{
		"the defaults":          {func(*Configuration) {}, ""},
		"an advertised name":    {func(o *Configuration) { o.APIServer.AdvertiseAddress = "host" }, "karmada apiserver advertise address is not valid"},
		"an external name":      {func(o *Configuration) { o.Certificates.ExternalIP = List{"1.2.3.4", "x"} }, `cert-external-ip "x" is not a valid IP address`},
		"half an authority":     {func(o *Configuration) { o.Certificates.CACertFile = "x" }, "ca-cert-file and ca-key-file must be used together"},
		"a pull policy":         {func(o *Configuration) { o.Images.PullPolicy = "Sometimes" }, "invalid image pull policy: Sometimes"},
		"no data path":          {func(o *Configuration) { o.Etcd.DataPath = "" }, "when etcd storage mode is hostPath, dataPath is not empty. See 'karmadactl init --help'"},
		"replicas on a disk":    {func(o *Configuration) { o.Etcd.Replicas = 3 }, "for data security,when etcd storage mode is hostPath,etcd-replicas can only be 1"},
		"no storage class":      {func(o *Configuration) { o.Etcd.StorageMode = "PVC" }, "when etcd storage mode is PVC, storageClassesName is not empty. See 'karmadactl init --help'"},
		"a size":                {func(o *Configuration) { o.Etcd.StorageMode, o.Etcd.StorageClass, o.Etcd.PVCSize = "PVC", "x", "big" }, `etcd-pvc-size "big" is not a size`},
		"a storage mode":        {func(o *Configuration) { o.Etcd.StorageMode = "tape" }, "unsupported etcd-storage-mode tape. See 'karmadactl init --help'"},
		"an empty storage mode": {func(o *Configuration) { o.Etcd.StorageMode = "" }, ""},
		"a time":                {func(o *Configuration) { o.WaitSeconds = -1 }, "wait-component-ready-timeout must be greater than or equal to 0"},
		"for ever":              {func(o *Configuration) { o.WaitSeconds = 0 }, ""},
		"half an identity": {func(o *Configuration) { o.Etcd.External.Servers, o.Etcd.External.CertFile = List{"https://x"}, "x" },
			"etcd client cert and key should be specified both or none"},
		"no identity": {func(o *Configuration) { o.Etcd.External.Servers = List{"https://x"} }, "an external etcd needs --external-etcd-ca-cert-path"},
		"a negative time there": {func(o *Configuration) {
			o.Etcd.External = ExternalEtcd{Servers: List{"https://x"}, CAFile: "a", CertFile: "b", KeyFile: "c"}
			o.WaitSeconds = -1
		}, "wait-component-ready-timeout"},
		"an argument of all roles": {func(o *Configuration) { o.Compact, o.Scheduler.ExtraArgs = true, ArgsOf("--v=4") }, "with --compact, --v is for all roles"},
		"a namespace":              {func(o *Configuration) { o.APIServer.Namespace = "A" }, `namespace "A"`},
		"no replicas":              {func(o *Configuration) { o.Webhook.Replicas = 0 }, "karmada-webhook-replicas 0 must be at least 1"},
		"an algorithm":             {func(o *Configuration) { o.Certificates.KeyAlgorithm = "dsa" }, "key-algorithm"},
		"both of phases":           {func(o *Configuration) { o.Phases.Only, o.Phases.Skip = []string{"certs"}, []string{"etcd"} }, "cannot be used together"},
		"a phase":                  {func(o *Configuration) { o.Phases.Only = []string{"x"} }, `there is no phase "x"`},
		"labels":                   {func(o *Configuration) { o.Etcd.NodeLabels = Labels{"-": ""} }, "the etcdNodeSelector format is incorrect"},
		"a country":                {func(o *Configuration) { o.Images.MirrorCountry = "xx" }, "kube-image-mirror-country"},
	} {
		t.Run(name, func(t *testing.T) {
			o := New()
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
		change func(*Configuration)
		want   []string
	}{
		"defaults": {func(*Configuration) {}, []string{
			"docker.io/karmada/karmada-aggregated-apiserver:REL", "docker.io/karmada/karmada-controller-manager:REL", "docker.io/karmada/karmada-scheduler:REL", "docker.io/karmada/karmada-webhook:REL",
			"registry.k8s.io/etcd:3.6.8-0", "registry.k8s.io/kube-apiserver:v1.36.2", "registry.k8s.io/kube-controller-manager:v1.36.2",
		}},
		"a private registry, a mirror and one image": {func(o *Configuration) {
			o.Images.PrivateRegistry, o.Images.MirrorCountry, o.Images.KubeTag, o.Webhook.Image = "private", "CN", "v1", "mine:1"
		}, []string{
			"mine:1", "private/karmada-aggregated-apiserver:REL", "private/karmada-controller-manager:REL", "private/karmada-scheduler:REL",
			chinaKubeRegistry + "/etcd:3.6.8-0", chinaKubeRegistry + "/kube-apiserver:v1", chinaKubeRegistry + "/kube-controller-manager:v1",
		}},
		"a registry of Kubernetes' images, an external etcd": {func(o *Configuration) {
			o.Images.PrivateRegistry, o.Images.KubeRegistry, o.Etcd.External.Servers = "private", "kube", List{"https://x"}
		}, []string{
			"kube/kube-apiserver:v1.36.2", "kube/kube-controller-manager:v1.36.2",
			"private/karmada-aggregated-apiserver:REL", "private/karmada-controller-manager:REL", "private/karmada-scheduler:REL", "private/karmada-webhook:REL",
		}},
		"one image for all": {func(o *Configuration) {
			o.Images.PrivateRegistry = "private"
			o.Aggregated.Image, o.Scheduler.Image, o.ControllerManager.Image, o.Webhook.Image = "all:1", "all:1", "all:1", "all:1"
		}, []string{
			"all:1", "private/etcd:3.6.8-0", "private/kube-apiserver:v1.36.2", "private/kube-controller-manager:v1.36.2",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			o := New()
			release := strings.TrimPrefix(o.Webhook.Image, "docker.io/karmada/karmada-webhook:")
			tc.change(&o)
			var got []string
			for _, image := range o.ImageList() {
				got = append(got, strings.Replace(image, ":"+release, ":REL", 1))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestComplete_FillsInTheRest(t *testing.T) {
	c := New()
	c.Certificates.KeyAlgorithm, c.DataPath, c.WaitSeconds, c.Phases.Only, c.Etcd.StorageMode = KeyRSA, "/data", 0, []string{"etcd"}, ""
	if err := c.Complete(nil, "karmadactl", []string{"certs", "etcd"}); err != nil {
		t.Fatal(err)
	}
	if c.CustomCRDs() != "" || c.Timeout() != Unlimited || c.PKIPath != "/data/pki" || c.Etcd.StorageMode != "emptyDir" || c.Etcd.OnNode() || c.Certificates.Algorithm() != pki.RSA {
		t.Errorf("got %+v", c)
	}
	if c.Runs("certs") || !c.Runs("etcd") {
		t.Error("only one phase runs")
	}
	if c = New(); c.Phases.Only != nil || !c.Etcd.OnNode() || c.Certificates.Algorithm() != pki.ECDSA {
		t.Errorf("got %+v", c)
	}
}
