//go:build helm

package render

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"helm.sh/helm/v4/pkg/chart/common"
	chartutil "helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	v2util "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"
	"helm.sh/helm/v4/pkg/strvals"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/karmada-toolkit/karmada/pkg/init/components"
)

const chartDir = "../../../../charts/karmada"

type object = map[string]any

// render returns the objects of the chart by kind and name. Hooks are left out unless all is set.
func render(t *testing.T, release, values string, all bool) map[string]object {
	t.Helper()
	out, err := tryRender(release, values, all)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// load reads the chart once.
var load = sync.OnceValues(func() (*chart.Chart, error) { return loader.Load(chartDir) })

// schema compiles the schema once.
var schema = sync.OnceValues(func() (*jsonschema.Schema, error) {
	return jsonschema.NewCompiler().Compile(chartDir + "/values.schema.json")
})

// What $CRT and $KEY stand for in values.
const (
	certificate = "'-----BEGIN CERTIFICATE-----'"
	key         = "'-----BEGIN PRIVATE KEY-----'"
)

// tryRender renders with a file of values and arguments of --set.
func tryRender(release, values string, all bool, arguments ...string) (map[string]object, error) {
	return renderBy(engine.Engine{}, release, values, all, arguments...)
}

func renderBy(e engine.Engine, release, values string, all bool, arguments ...string) (map[string]object, error) {
	return renderAs(e, &common.Capabilities{KubeVersion: common.KubeVersion{Version: "v1.36.3"}}, release, values, all, arguments...)
}

// renderAs renders for a cluster.
func renderAs(e engine.Engine, cluster *common.Capabilities, release, values string, all bool, arguments ...string) (map[string]object, error) {
	chart, err := load()
	if err != nil {
		return nil, err
	}
	if want := chart.Metadata.KubeVersion; !v2util.IsCompatibleRange(want, cluster.KubeVersion.String()) {
		return nil, fmt.Errorf("chart requires kubeVersion: %s which is incompatible with Kubernetes %s", want, cluster.KubeVersion.Version) // as Helm does
	}
	set := map[string]any{}
	if err := yaml.Unmarshal([]byte(strings.NewReplacer("$CRT", certificate, "$KEY", key).Replace(values)), &set); err != nil {
		return nil, err
	}
	for _, argument := range arguments {
		if err := strvals.ParseInto(argument, set); err != nil {
			return nil, err
		}
	}
	in, err := chartutil.ToRenderValuesWithSchemaValidation(chart, set, common.ReleaseOptions{Name: release, Namespace: "team", Revision: 1, IsInstall: true}, cluster, true)
	if err != nil {
		return nil, err
	}
	// As Helm does, which compiles the schema each time.
	schema, err := schema()
	if err != nil {
		return nil, err
	}
	if err := schema.Validate(in["Values"].(common.Values).AsMap()); err != nil {
		return nil, err
	}
	files, err := e.Render(chart, in)
	if err != nil {
		return nil, err
	}
	out := map[string]object{}
	for name, text := range files {
		if strings.HasSuffix(name, ".txt") {
			out["NOTES"] = object{"text": text}
			continue
		}
		for _, document := range strings.Split("\n"+text, "\n---") {
			o := object{}
			if err := yaml.UnmarshalStrict([]byte(document), &o); err != nil {
				return nil, fmt.Errorf("%s: %w\n%s", name, err, document)
			}
			if len(o) == 0 {
				continue
			}
			meta := o["metadata"].(object)
			if annotations, _ := meta["annotations"].(object); annotations["helm.sh/hook"] != nil && !all {
				continue
			}
			key := fmt.Sprint(o["kind"], "/", meta["name"])
			if out[key] != nil {
				return nil, fmt.Errorf("%s is there twice", key)
			}
			out[key] = o
		}
	}
	return out, nil
}

// config is a release with the defaults of values.yaml.
func config(release string) *components.Config {
	fixed := ""
	if release != "karmada" {
		fixed = release + "-"
	}
	c := &components.Config{
		Namespace: "team", Domain: "cluster.local", SystemNamespace: "karmada-system", Names: components.ReleaseNames(release, fixed),
		Labels:      map[string]string{"app.kubernetes.io/instance": release, "app.kubernetes.io/managed-by": "Helm", "helm.sh/chart": "karmada-0.0.0"},
		ServiceType: corev1.ServiceTypeClusterIP, Workloads: map[string]components.Workload{},
		Etcd: components.EtcdConfig{StorageMode: components.StorageHostPath, DataPath: "/var/lib/team/" + fixed + "karmada-etcd"},
	}
	args := map[string][]string{
		components.Etcd: {"--log-level=info"}, components.Scheduler: {"--enable-scheduler-estimator=false"}, components.ControllerManager: {"--feature-gates=PropagateDeps=false"},
		components.APIServer: {"--max-requests-inflight=1500", "--max-mutating-requests-inflight=500", "--shutdown-delay-duration=5s"},
		components.KubeControllerManager: {"--cluster-cidr=10.244.0.0/16", "--controllers=namespace,garbagecollector,serviceaccount-token,ttl-after-finished," +
			"bootstrapsigner,tokencleaner,csrcleaner,csrsigning,clusterrole-aggregation"},
	}
	images := map[string]string{components.Etcd: "registry.k8s.io/etcd:3.6.8-0", components.APIServer: "registry.k8s.io/kube-apiserver:v1.36.3", components.KubeControllerManager: "registry.k8s.io/kube-controller-manager:v1.36.3"}
	for _, name := range append(components.WorkloadNames(), components.Descheduler, components.MetricsAdapter, components.Search, components.EstimatorWorkload("m1")) {
		w := components.Workload{
			Image: images[name], PullPolicy: corev1.PullIfNotPresent, Replicas: 1, PriorityClass: "system-node-critical", ExtraArgs: args[name],
			Strategy: &appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: &appsv1.RollingUpdateDeployment{
				MaxUnavailable: new(intstr.FromInt32(0)), MaxSurge: new(intstr.FromString("50%")),
			}},
		}
		program := name
		if strings.HasPrefix(name, components.Estimator) {
			program = components.Estimator
		}
		if w.Image == "" {
			w.Image = "docker.io/karmada/" + program + ":latest"
		}
		if name != components.Etcd {
			w.ExtraArgs = append(slices.Clone(w.ExtraArgs), "--v=2")
		}
		if name == components.APIServer {
			w.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxUnavailable: new(intstr.FromInt32(0)), MaxSurge: new(intstr.FromInt32(1))}
		}
		if name == components.Descheduler || name == components.Search {
			w.Replicas = 2
		}
		c.Workloads[name] = w
	}
	return c
}

// compact is a release with one workload for all roles.
func compact(c *components.Config) {
	c.Compact = true
	change(c, components.AllInOne, func(w *components.Workload) {
		w.DisruptionBudget = c.Workloads[components.ControllerManager].DisruptionBudget
	})
	for _, name := range components.CompactParts() {
		change(c, name, func(w *components.Workload) { w.DisruptionBudget = nil })
	}
	change(c, components.AllInOne, func(w *components.Workload) {
		w.Image = strings.Replace(w.Image, components.AllInOne, components.ControllerManager, 1)
	})
}

// change changes a workload of a Config.
func change(c *components.Config, name string, by func(*components.Workload)) {
	w := c.Workloads[name]
	by(&w)
	c.Workloads[name] = w
}

// objects returns what the installer makes for a Config and optional components.
func objects(t *testing.T, c *components.Config, optional ...string) map[string]object {
	t.Helper()
	apiServer, err := components.APIServerDeployment(c)
	if err != nil {
		t.Fatal(err)
	}
	list := append(components.DisruptionBudgets(c), components.APIServerService(c), apiServer, components.AggregatedHostService(c),
		components.KubeControllerManagerService(c), components.KubeControllerManagerDeployment(c), components.WebhookService(c))
	if c.Compact {
		list = append(list, components.AllInOneDeployment(c))
	} else {
		list = append(list, components.AggregatedDeployment(c), components.SchedulerDeployment(c), components.ControllerManagerDeployment(c), components.WebhookDeployment(c))
	}
	if !c.Etcd.External() {
		etcd, err := components.EtcdStatefulSet(c)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, components.EtcdService(c), components.EtcdClientService(c), etcd)
	}
	for _, name := range optional {
		switch name {
		case components.Descheduler:
			list = append(list, components.DeschedulerDeployment(c))
		case components.Search:
			list = append(list, components.SearchHost(c)...)
		case components.MetricsAdapter:
			list = append(list, components.MetricsAdapterHost(c)...)
		case components.Estimator:
			list = append(list, components.EstimatorHost(c, "m1")...)
		}
	}
	out := map[string]object{}
	for _, o := range list {
		if _, ok := o.(*corev1.Secret); ok {
			continue // made by a Job, or of the user
		}
		kind := strings.TrimPrefix(fmt.Sprintf("%T", o), "*v1.")
		out[kind+"/"+o.GetName()] = encode(t, o)
	}
	return out
}

func encode(t *testing.T, o client.Object) object {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	out := object{}
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	delete(out, "status")
	return out
}

// normal returns an object without what is empty: Kubernetes takes both for the same.
func normal(in any) any {
	switch v := in.(type) {
	case object:
		out := object{}
		for key, value := range v {
			if value = normal(value); value != nil {
				out[key] = value
			}
		}
		if len(out) == 0 {
			return nil
		}
		return out
	case []any:
		var out []any
		for _, value := range v {
			out = append(out, normal(value))
		}
		if len(out) == 0 {
			return nil
		}
		return out
	case int64, int32, int:
		return fmt.Sprint(v)
	case float64:
		return fmt.Sprint(int64(v))
	case string:
		if v == "" {
			return nil
		}
	}
	return in
}

// sorted sorts what has no order: volumes by their names.
func sorted(o object) object {
	spec, _ := o["spec"].(object)
	template, _ := spec["template"].(object)
	if meta, ok := template["metadata"].(object); ok {
		if annotations, ok := meta["annotations"].(object); ok {
			delete(annotations, "karmada.io/certificates") // the installer has a hash of what each mounts
		}
	}
	pod, _ := template["spec"].(object)
	if list, ok := pod["volumes"].([]any); ok {
		slices.SortFunc(list, func(a, b any) int { return strings.Compare(a.(object)["name"].(string), b.(object)["name"].(string)) })
	}
	return o
}

const allValues = `
global: {imageRegistry: mirror.example.org, imagePullSecrets: [a], commonLabels: {team: x, app: bad}}
karmadaImageVersion: v9
karmadaImagePullPolicy: Always
podDisruptionBudget: {maxUnavailable: 1}
clusterDomain: other.example
systemNamespace: federation
components: [search, descheduler, metricsAdapter, schedulerEstimator]
schedulerEstimator: {memberClusters: [{clusterName: m1, replicaCount: 3, kubeconfig: {caCrt: $CRT, crt: $CRT, key: $KEY, server: "https://m1"}}]}
scheduler: {enableSchedulerEstimator: true, featureGates: {WorkloadAffinity: true, AllAlpha: false}, logVerbosity: "4", replicaCount: "2"}
apiServer:
  serviceType: NodePort
  nodePort: 31443
  serviceAnnotations: {a: b}
  hostNetwork: true
  oidc: {issuerUrl: "https://issuer", clientId: karmada}
  encryptionAtRest: {enabled: true, existingSecret: {name: mine, key: k.yaml}}
  labels: {a: b, app: other}
  podLabels: {c: d}
  podAnnotations: {e: f}
  resources: {requests: {cpu: 300m}}
  nodeSelector: {g: h}
  tolerations: [{key: i, operator: Exists}]
  affinity: {nodeAffinity: {}}
  priorityClassName: ""
  strategy: {type: Recreate}
  image: {repository: my/kube-apiserver, tag: v0, pullPolicy: Never, pullSecrets: [b]}
  podDisruptionBudget: {minAvailable: 50%}
etcd: {internal: {replicaCount: 3, storageType: pvc, pvc: {storageClass: fast, size: 5Gi}}}
controllerManager: {extraCommandArgs: {cluster-status-update-frequency: 20s, v: 5}, controllers: "*"}
`

func all(c *components.Config) {
	c.Labels["team"] = "x"
	c.PullSecrets, c.Domain, c.SystemNamespace = []string{"a"}, "other.example", "federation"
	c.ServiceType, c.NodePort, c.ServiceAnnotations = corev1.ServiceTypeNodePort, 31443, map[string]string{"a": "b"}
	c.Encryption = &components.Encryption{Secret: "mine", Key: "k.yaml"}
	c.Etcd = components.EtcdConfig{StorageMode: components.StoragePVC, StorageClass: "fast", Size: "5Gi"}
	for name := range c.Workloads {
		change(c, name, func(w *components.Workload) {
			_, rest, _ := strings.Cut(w.Image, "/")
			w.Image, w.PullPolicy = "mirror.example.org/"+strings.Replace(rest, ":latest", ":v9", 1), corev1.PullAlways
			if name != components.Etcd {
				w.DisruptionBudget = &policyv1.PodDisruptionBudgetSpec{MaxUnavailable: new(intstr.FromInt32(1))}
			}
		})
	}
	if !c.Compact {
		change(c, components.AllInOne, func(w *components.Workload) { w.DisruptionBudget = nil })
	}
	change(c, components.Etcd, func(w *components.Workload) { w.Replicas = 3 })
	change(c, components.EstimatorWorkload("m1"), func(w *components.Workload) { w.Replicas = 3 })
	change(c, components.Scheduler, func(w *components.Workload) {
		w.Replicas, w.ExtraArgs = 2, []string{"--enable-scheduler-estimator=true", "--feature-gates=AllAlpha=false,WorkloadAffinity=true", "--v=4"}
	})
	change(c, components.ControllerManager, func(w *components.Workload) {
		w.ExtraArgs = append(slices.DeleteFunc(w.ExtraArgs, func(arg string) bool { return arg == "--v=2" }), "--v=5", "--cluster-status-update-frequency=20s", "--controllers=*")
	})
	change(c, components.APIServer, func(w *components.Workload) {
		w.Labels, w.PodLabels, w.PodAnnotations = map[string]string{"a": "b"}, map[string]string{"c": "d"}, map[string]string{"e": "f"}
		w.Resources.Requests, w.NodeSelector = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("300m")}, map[string]string{"g": "h"}
		w.Tolerations = []corev1.Toleration{{Key: "i", Operator: corev1.TolerationOpExists}}
		w.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}}
		w.PriorityClass, w.Strategy, w.HostNetwork = "", &appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}, true
		w.Image, w.PullPolicy, w.PullSecrets = "mirror.example.org/my/kube-apiserver:v0", corev1.PullNever, []string{"b"}
		w.DisruptionBudget = &policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromString("50%"))}
		w.ExtraArgs = append(w.ExtraArgs, "--oidc-client-id=karmada", "--oidc-issuer-url=https://issuer")
	})
}

func TestChart_HasTheObjectsOfTheInstaller(t *testing.T) {
	addons := []string{components.Search, components.Descheduler, components.MetricsAdapter, components.Estimator}
	for name, tc := range map[string]struct {
		release, values string
		set             func(*components.Config)
		optional        []string
	}{
		"defaults":     {"karmada", "", func(*components.Config) {}, nil},
		"another name": {"try", "", func(*components.Config) {}, nil},
		"all settings": {"try", allValues, all, addons},
		"three members": {"karmada", "etcd: {internal: {replicaCount: 3}}\napiServer: {replicaCount: 2}", func(c *components.Config) {
			change(c, components.Etcd, func(w *components.Workload) { w.Replicas = 3 })
			change(c, components.APIServer, func(w *components.Workload) {
				w.Replicas, w.Strategy.RollingUpdate.MaxUnavailable = 2, new(intstr.FromInt32(1))
			})
		}, nil},
		"a port of the node": {"karmada", "apiServer: {hostNetwork: true}", func(c *components.Config) {
			change(c, components.APIServer, func(w *components.Workload) {
				w.HostNetwork, w.Strategy.RollingUpdate.MaxUnavailable = true, new(intstr.FromInt32(1))
			})
		}, nil},
		"port of nodes without serviceType NodePort": {"karmada", "apiServer: {nodePort: 31443}", func(*components.Config) {}, nil},
		"external etcd": {"karmada", "etcd: {mode: external, external: {servers: \"https://a:2379\", certs: {caCrt: $CRT, crt: $CRT, key: $KEY}}}", func(c *components.Config) {
			c.Etcd = components.EtcdConfig{ExternalServers: "https://a:2379", KeyPrefix: "/registry/karmada"}
		}, nil},
		"compact": {"karmada", "compact: true", compact, nil},
		"compact, beside": {"try", strings.Replace(allValues, ", v: 5", "", 1) + "compact: true\nallInOne: {replicaCount: 2, extraCommandArgs: {webhook.tls-min-version: VersionTLS13, v: 3}}\n", func(c *components.Config) {
			all(c)
			compact(c)
			change(c, components.AllInOne, func(w *components.Workload) {
				w.Replicas, w.ExtraArgs = 2, []string{"--v=3", "--webhook.tls-min-version=VersionTLS13"}
			})
		}, addons},
	} {
		t.Run(name, func(t *testing.T) {
			got := render(t, tc.release, tc.values, false)
			c := config(tc.release)
			tc.set(c)
			version := "latest"
			if strings.Contains(tc.values, "karmadaImageVersion: v9") {
				version = "v9"
			}
			waits := "-controller-manager"
			if c.Compact {
				waits = "-kube-controller-manager"
			}
			args := got["Deployment/"+tc.release+waits]["spec"].(object)["template"].(object)["spec"].(object)["initContainers"].([]any)[0].(object)["command"].([]any)
			c.Await = &components.Await{Version: version, Settings: strings.TrimPrefix(args[len(args)-1].(string), "--settings=")}
			want := objects(t, c, tc.optional...)
			for key, o := range want {
				if diff := cmp.Diff(normal(sorted(o)), normal(sorted(without(got[key])))); diff != "" {
					t.Errorf("%s (-installer +chart):\n%s", key, diff)
				}
				delete(got, key)
			}
			for key := range got {
				if kind, _, _ := strings.Cut(key, "/"); kind != "NOTES" && kind != "Job" && kind != "Secret" {
					t.Errorf("the installer does not make %s", key)
				}
			}
		})
	}
}

// without leaves out what the functions do not set.
func without(o object) object {
	out := maps.Clone(o)
	delete(out, "apiVersion")
	delete(out, "kind")
	return out
}

// noEffect are the values that change nothing. NOTES.txt names them.
func noEffect() []string {
	return []string{"cfssl", "kubectl", "certs.auto.rootCAExpiryDays", "certs.auto.rsaSize", "etcd.internal.name", "apiServer.encryptionAtRest.configFile"}
}

// With installMode component there is what components names, with the Secrets of a control plane of Karmada's chart.
func TestComponent_UsesExistingSecrets(t *testing.T) {
	secrets := map[string][]string{
		"Deployment/try-search": {"other-kubeconfig kubeconfig=karmada.config", "try-external-etcd-cert ca.crt=etcd-ca.crt tls.crt=etcd-client.crt tls.key=etcd-client.key",
			"other-cert server-ca.crt=ca.crt karmada.crt=tls.crt karmada.key=tls.key"},
		"Deployment/try-descheduler": {"karmada-kubeconfig kubeconfig=karmada.config",
			"karmada-cert server-ca.crt=ca.crt karmada.crt=scheduler-estimator-client.crt karmada.key=scheduler-estimator-client.key"},
		"Deployment/try-metrics-adapter":            {"karmada-kubeconfig kubeconfig=karmada.config", "karmada-cert server-ca.crt=ca.crt karmada.crt=tls.crt karmada.key=tls.key"},
		"Deployment/karmada-scheduler-estimator-m1": {"karmada-cert server-ca.crt=ca.crt karmada.crt=tls.crt karmada.key=tls.key", "m1-kubeconfig"},
		"Job/try-search-post-install":               {"other-kubeconfig kubeconfig=karmada.config"},
		"Job/try-search-post-delete":                {"other-kubeconfig kubeconfig=karmada.config"},
		"Job/try-metrics-adapter-post-install":      {"karmada-kubeconfig kubeconfig=karmada.config"},
		"Job/try-metrics-adapter-post-delete":       {"karmada-kubeconfig kubeconfig=karmada.config"},
	}
	others := []string{"NOTES", "Secret/m1-kubeconfig", "Secret/try-external-etcd-cert", "Service/try-search", "Service/try-metrics-adapter", "Service/karmada-scheduler-estimator-m1",
		"PodDisruptionBudget/try-search", "PodDisruptionBudget/try-descheduler", "PodDisruptionBudget/try-metrics-adapter", "PodDisruptionBudget/karmada-scheduler-estimator-m1"}
	values := "installMode: component\npodDisruptionBudget: {maxUnavailable: 1}\nsearch: {kubeconfig: other-kubeconfig, certs: other-cert}\n" +
		`etcd: {mode: external, external: {servers: "https://a:2379", certs: {caCrt: $CRT, crt: $CRT, key: $KEY}}}`
	got := render(t, "try", values+allValuesOfOne, true)
	if diff := cmp.Diff(slices.Sorted(slices.Values(append(others, slices.Collect(maps.Keys(secrets))...))), slices.Sorted(maps.Keys(got))); diff != "" {
		t.Error(diff)
	}
	for key, want := range secrets {
		var mounted []string
		for _, volume := range got[key]["spec"].(object)["template"].(object)["spec"].(object)["volumes"].([]any) {
			secret := volume.(object)["secret"].(object)
			line := fmt.Sprint(secret["secretName"])
			items, _ := secret["items"].([]any)
			for _, item := range items {
				line += fmt.Sprintf(" %v=%v", item.(object)["key"], item.(object)["path"])
			}
			mounted = append(mounted, line)
		}
		if diff := cmp.Diff(want, mounted); diff != "" {
			t.Errorf("%s: %s", key, diff)
		}
	}
	inside := render(t, "try", "installMode: component\ncomponents: [search]", true)["Deployment/try-search"]
	command := inside["spec"].(object)["template"].(object)["spec"].(object)["containers"].([]any)[0].(object)["command"].([]any)
	if !slices.Contains(command, any("--etcd-servers=https://etcd-client.team.svc.cluster.local:2379")) {
		t.Errorf("the etcd of the control plane: %v", command)
	}
}

// The versions of Kubernetes that each mode needs, and what older ones do not have.
func TestVersions_OfKubernetes(t *testing.T) {
	agent := `{installMode: agent, podDisruptionBudget: {maxUnavailable: 1}, agent: {clusterName: m1, kubeconfig: {caCrt: $CRT, crt: $CRT, key: $KEY, server: "https://x"}}}`
	for _, tc := range []struct{ version, values, want, budget string }{
		{"v1.18.20", agent, "chart requires kubeVersion: >= 1.19.0-0 which is incompatible with Kubernetes v1.18.20", ""},
		{"v1.19.5", agent, "", "policy/v1beta1"},
		{"v1.20.15", agent, "", "policy/v1beta1"},
		{"v1.21.0-gke.100", agent, "", "policy/v1"},
		{"v1.21.14", "podDisruptionBudget: {maxUnavailable: 1}", "installMode host needs Kubernetes 1.22, and this cluster has v1.21.14", ""},
		{"v1.21.14", "{installMode: component, components: [search], podDisruptionBudget: {maxUnavailable: 1}}", "installMode component needs Kubernetes 1.22, and this cluster has v1.21.14", ""},
		{"v1.22.0", "podDisruptionBudget: {maxUnavailable: 1}", "", "policy/v1"},
		{"v1.24.15", "podDisruptionBudget: {maxUnavailable: 1}", "", "policy/v1"},
	} {
		version, err := common.ParseKubeVersion(tc.version)
		if err != nil {
			t.Fatal(err)
		}
		got, err := renderAs(engine.Engine{}, &common.Capabilities{KubeVersion: *version}, "try", tc.values, true)
		if (err != nil) != (tc.want != "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s with %s: %v", tc.version, tc.values, err)
		}
		for key, o := range got {
			if strings.HasPrefix(key, "PodDisruptionBudget/") && o["apiVersion"] != tc.budget {
				t.Errorf("%s with %s: %s is %v, want %s", tc.version, tc.values, key, o["apiVersion"], tc.budget)
			}
		}
	}
}

func TestReleases_InOneNamespaceDoNotCollide(t *testing.T) {
	karmada, try := render(t, "karmada", allValuesOfOne, true), render(t, "try", allValuesOfOne, true)
	for key := range try {
		if karmada[key] != nil && key != "NOTES" {
			t.Errorf("both have %s", key)
		}
		if kind, _, _ := strings.Cut(key, "/"); strings.HasPrefix(kind, "Cluster") {
			t.Errorf("%s is not of a namespace", key)
		}
	}
}

const allValuesOfOne = `
components: [search, descheduler, metricsAdapter, schedulerEstimator]
schedulerEstimator: {memberClusters: [{clusterName: m1, kubeconfig: {caCrt: $CRT, crt: $CRT, key: $KEY, server: "https://m1"}}]}
`
