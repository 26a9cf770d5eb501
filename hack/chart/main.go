// Program chart writes the templates of the Helm chart for the workloads of a control plane. They are what
// pkg/init/components returns for settings in whose place expressions of Helm stand.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/karmada-toolkit/karmada/pkg/init/components"
)

// header begins every file.
const header = "{{/* Written by \"make generate\" from pkg/init/components. */}}\n"

// cluster is the name of a member whose estimator is rendered.
const cluster = "zclusterz"

// expressions of Helm stand behind their marks, which have no spaces, so that no line is folded.
var expressions = map[string]string{cluster: "{{ $cluster.clusterName }}"}

// helm returns the mark of an expression.
func helm(expression string) string {
	mark := fmt.Sprintf("z%dz", len(expressions))
	expressions[mark] = expression
	return mark
}

// nodePort and size stand for values that are no strings.
const (
	nodePort = 31999
	size     = "7777Gi"
)

func main() {
	out := flag.String("out", "charts/karmada", "directory of the chart")
	flag.Parse()
	if err := errors.Join(run(filepath.Join(*out, "templates", "host")), values(*out)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// file is a template: objects that are there if a condition holds.
type file struct {
	name, condition string
	// key of the values.
	key     string
	objects []client.Object
}

func run(out string) error {
	c := config()
	etcd, err := components.EtcdStatefulSet(internal(c, components.StoragePVC))
	if err != nil {
		return err
	}
	compact := *c
	compact.Compact = true
	apiServer, err := components.APIServerDeployment(&compact)
	if err != nil {
		return err
	}
	const host = `eq .Values.installMode "host"`
	const each, one = `and (` + host + `) (not .Values.compact)`, `and (` + host + `) .Values.compact`
	addon := func(name string) string {
		return fmt.Sprintf(`and (ne .Values.installMode "agent") (has %q .Values.components)`, name)
	}
	adapter, search := components.MetricsAdapterHost(c), components.SearchHost(c)
	ofControlPlane := *c
	ofControlPlane.Names = components.ReleaseNames(helm(`{{ include "karmada.controlPlane" . }}`), helm(`{{ include "karmada.fixed" . }}`))
	estimator := components.EstimatorHost(&ofControlPlane, cluster)
	for _, f := range []file{
		{"etcd", fmt.Sprintf(`and (%s) (eq .Values.etcd.mode "internal")`, host), "etcd", []client.Object{components.EtcdService(c), components.EtcdClientService(c), etcd}},
		{"apiserver", host, "apiServer", []client.Object{components.APIServerService(c), apiServer}},
		{"aggregated-apiserver", each, "aggregatedApiServer", []client.Object{components.AggregatedHostService(c), components.AggregatedDeployment(c)}},
		{"kube-controller-manager", host, "kubeControllerManager", []client.Object{components.KubeControllerManagerService(c), components.KubeControllerManagerDeployment(&compact)}},
		{"all-in-one", one, "allInOne", []client.Object{components.AggregatedHostService(&compact), components.WebhookService(&compact), components.AllInOneDeployment(&compact)}},
		{"scheduler", each, "scheduler", []client.Object{components.SchedulerDeployment(c)}},
		{"controller-manager", each, "controllerManager", []client.Object{components.ControllerManagerDeployment(c)}},
		{"webhook", each, "webhook", []client.Object{components.WebhookService(c), components.WebhookDeployment(c)}},
		{"descheduler", addon("descheduler"), "descheduler", []client.Object{components.DeschedulerDeployment(c)}},
		{"metrics-adapter", addon("metricsAdapter"), "metricsAdapter", []client.Object{adapter[0], adapter[2]}},
		{"search", addon("search"), "search", []client.Object{search[0], search[2]}},
		{"scheduler-estimator", addon("schedulerEstimator"), "schedulerEstimator", estimator[2:]},
	} {
		text, err := f.render()
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(out, f.name+".yaml"), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// keys are those of the values by workload.
func keys() map[string]string {
	return map[string]string{
		components.Etcd: "etcd", components.APIServer: "apiServer", components.AggregatedAPIServer: "aggregatedApiServer",
		components.KubeControllerManager: "kubeControllerManager", components.Scheduler: "scheduler", components.ControllerManager: "controllerManager",
		components.Webhook: "webhook", components.Descheduler: "descheduler", components.MetricsAdapter: "metricsAdapter", components.Search: "search",
		components.EstimatorWorkload(cluster): "schedulerEstimator", components.AllInOne: "allInOne",
	}
}

// call is an expression for a setting of a component.
func call(helper, key string) string {
	return helm(fmt.Sprintf(`{{ include "karmada.%s" (list . %q) }}`, helper, key))
}

// marks are maps that a block replaces.
func mark(block, key string) map[string]string { return map[string]string{"__" + block + "__": key} }

func config() *components.Config {
	c := &components.Config{
		Namespace: helm("{{ .Release.Namespace }}"), Domain: helm(`{{ .Values.clusterDomain }}`), SystemNamespace: helm(`{{ .Values.systemNamespace }}`),
		Names:  components.ReleaseNames(helm("{{ .Release.Name }}"), helm(`{{ include "karmada.fixed" . }}`)),
		Labels: mark("labels", "all"), NodePort: nodePort, ServiceAnnotations: mark("serviceAnnotations", "apiServer"),
		ServiceType: corev1.ServiceType(helm(`{{ .Values.apiServer.serviceType }}`)),
		Encryption:  &components.Encryption{Secret: helm(`{{ .Values.apiServer.encryptionAtRest.existingSecret.name }}`), Key: helm(`{{ .Values.apiServer.encryptionAtRest.existingSecret.key }}`)},
		Await:       &components.Await{Version: helm(`{{ include "karmada.version" . }}`), Settings: helm(`{{ include "karmada.settings" . }}`)},
		Etcd:        components.EtcdConfig{ExternalServers: helm(`{{ include "karmada.etcdServers" . }}`), KeyPrefix: helm(`{{ .Values.etcd.external.registryPrefix }}`)},
		Workloads:   map[string]components.Workload{}, Kubeconfigs: map[string][]byte{},
	}
	for workload, key := range keys() {
		c.Workloads[workload] = components.Workload{
			Image: call("image", key), PullPolicy: corev1.PullPolicy(call("pullPolicy", key)), Replicas: 1, PriorityClass: call("priorityClass", key),
			Labels: mark("workloadLabels", key), PodLabels: mark("podLabels", key), PodAnnotations: mark("podAnnotations", key),
			PullSecrets: []string{"__pullSecrets__"}, Strategy: &appsv1.DeploymentStrategy{Type: "__strategy__"}, HostNetwork: workload == components.APIServer,
			PodSettings: components.PodSettings{NodeSelector: mark("nodeSelector", key), Tolerations: []corev1.Toleration{{Key: "__tolerations__", Value: key}}},
		}
	}
	return c
}

// internal returns the settings of an etcd of the release.
func internal(c *components.Config, storage string) *components.Config {
	in := *c
	in.Etcd = components.EtcdConfig{StorageMode: storage, StorageClass: helm("{{ .Values.etcd.internal.pvc.storageClass }}"), Size: size}
	return &in
}

// marked is the value of a key that is a mark, or has one.
var (
	marked = regexp.MustCompile(`(?m)^( *(?:- )?[\w./-]+: )([^'"\n]*z\w+z[^'"\n]*)$`)
	marks  = regexp.MustCompile(`z(\d+|cluster)z`)
)

// selector are the labels by which a workload or a Service selects pods, and those of the pods.
var selector = regexp.MustCompile(`(?m)^( *(?:selector|labelSelector|matchLabels):\n|        \{\{- include "karmada.podLabels".*\n)((?:( +)(?:app|apiserver|cluster): .*\n)+)`)

// name returns the expression for a name in which marks are.
func name(text string) string {
	var args strings.Builder
	format := marks.ReplaceAllStringFunc(text, func(mark string) string {
		args.WriteString(" (" + strings.Trim(expressions[mark], "{ }") + ")")
		return "%s"
	})
	return fmt.Sprintf("(printf %q%s)", format, args.String())
}

func (f *file) render() (string, error) {
	var out strings.Builder
	commands := ""
	for _, o := range f.objects {
		text, err := yaml.Marshal(o)
		if err != nil {
			return "", err
		}
		kind := map[string]string{"*v1.Service": "v1\nkind: Service", "*v1.Deployment": "apps/v1\nkind: Deployment", "*v1.StatefulSet": "apps/v1\nkind: StatefulSet"}[fmt.Sprintf("%T", o)]
		body, command := f.template(string(text))
		commands += command
		if _, ok := o.(*appsv1.StatefulSet); ok {
			body = strings.Replace(body, "\nspec:\n", "\nspec:\n{{- with include \"karmada.formerEtcd\" . }}\n  {{- . | nindent 2 }}\n{{- else }}\n", 1) + "{{- end }}\n"
		}
		fmt.Fprintf(&out, "---\napiVersion: %s\n%s", kind, body)
	}
	body := out.String()
	if f.key == "schedulerEstimator" {
		body = "{{- range $cluster := .Values.schedulerEstimator.memberClusters }}\n{{- with $ }}\n" + body + "{{- end }}\n{{- end }}\n"
		commands = strings.ReplaceAll(commands, expressions[cluster], "CLUSTER")
		body = strings.ReplaceAll(body, `(include "karmada.schedulerEstimator.command" .)`, `(include "karmada.schedulerEstimator.command" . | replace "CLUSTER" $cluster.clusterName)`)
		body = strings.ReplaceAll(body, `replicas: {{ include "karmada.replicas" (list . "schedulerEstimator") }}`, `replicas: {{ kindIs "invalid" $cluster.replicaCount | ternary (include "karmada.replicas" (list . "schedulerEstimator")) $cluster.replicaCount }}`)
	}
	if f.key == "allInOne" {
		commands += "{{/* The flags that all roles share. */}}\n{{- define \"karmada.sharedFlags\" -}}\n" + strings.Join(components.SharedFlags(), ",") + "\n{{- end -}}\n"
	}
	return header + commands + "{{- include \"karmada.setDefaults\" . }}\n{{- if " + f.condition + " }}\n" + body + "{{- end }}\n", nil
}

// template puts expressions into the place of marks. It returns the command of the first container apart.
func (f *file) template(text string) (body, command string) {
	replace := func(pattern, by string) { text = regexp.MustCompile("(?m)"+pattern).ReplaceAllString(text, by) }
	replace(`^ *(?:updateStrategy|strategy|status): \{\}\n`, "")
	replace(`^status:\n((  .*\n)+)|^status: \{\}\n|^  loadBalancer: \{\}\n`, "")
	// A block that may be empty, with the key of the map around it.
	for _, block := range []string{"podAnnotations", "nodeSelector", "serviceAnnotations"} {
		replace(`^( *)\w+:\n *__`+block+`__: (\w+)\n`, `${1}{{- include "karmada.`+block+`" (list . "$2") | nindent INDENT$1 }}`+"\n")
	}
	replace(`^( *)__(\w+)__: (\w+)\n`, `${1}{{- include "karmada.$2" (list . "$3") | nindent INDENT$1 }}`+"\n")
	replace(`^( *)- key: __tolerations__\n *value: (\w+)\n`, `${1}{{- include "karmada.tolerations" (list . "$2") | nindent INDENT$1 }}`+"\n")
	replace(`^( *)imagePullSecrets:\n *- name: __pullSecrets__\n`, `${1}{{- include "karmada.pullSecrets" (list . "`+f.key+`") | nindent INDENT$1 }}`+"\n")
	replace(`^( *)strategy:\n *type: __strategy__\n`, `${1}{{- include "karmada.strategy" (list . "`+f.key+`") | nindent INDENT$1 }}`+"\n")
	replace(`^        resources: \{\}\n`, `        {{- include "karmada.resources" (list . "`+f.key+`" "" "") | nindent 8 }}`+"\n")
	replace(`^        resources:\n          requests:\n            cpu: (\w+)\n            memory: (\w+)\n`, `        {{- include "karmada.resources" (list . "`+f.key+`" "$1" "$2") | nindent 8 }}`+"\n")
	replace(`^      affinity:\n((?:        .*\n)+)`, `      affinity:`+"\n"+`        {{- with (include "karmada.affinity" (list . "`+f.key+`")) }}`+"\n        {{- . | nindent 8 }}\n        {{- else }}\n$1        {{- end }}\n")
	replace(`^  replicas: 1\n`, `  replicas: {{ include "karmada.replicas" (list . "`+f.key+`") }}`+"\n")
	// Settings that are not always there.
	replace(`^( *nodePort: )31999\n`, "{{- if and (ne .Values.apiServer.serviceType \"ClusterIP\") (ne (int .Values.apiServer.nodePort) 0) }}\n$1{{ int .Values.apiServer.nodePort }}\n{{- end }}\n")
	replace(`^( *(?:dnsPolicy: ClusterFirstWithHostNet|hostNetwork: true)\n)`, "{{- if .Values.apiServer.hostNetwork }}\n$1{{- end }}\n")
	replace(`^( *- '?--(?:[a-z-]+\.)?etcd-prefix=.*\n)`, "{{- if eq .Values.etcd.mode \"external\" }}\n$1{{- end }}\n")
	replace(`^( *- '?--(?:scheduler\.)?scheduler-estimator-service-namespace=.*\n)`, "{{- if ne .Values.systemNamespace \"karmada-system\" }}\n$1{{- end }}\n")
	replace(`^( *- '?--encryption-provider-config=.*\n)`, "{{- if .Values.apiServer.encryptionAtRest.enabled }}\n$1{{- end }}\n")
	replace(`^(        - mountPath: /etc/karmada/encryption\n(?:          .*\n)+)`, "{{- if .Values.apiServer.encryptionAtRest.enabled }}\n$1{{- end }}\n")
	replace(`^(      - name: encryption\n(?:        .*\n)+)`, "{{- if .Values.apiServer.encryptionAtRest.enabled }}\n$1{{- end }}\n")
	// The layout.
	replace(`^( *- name: GOGC\n *value: .*\n)`, "{{- if .Values.compact }}\n$1{{- end }}\n")
	if f.key == "kubeControllerManager" {
		replace(`^(      initContainers:\n(?:      - .*\n|        .*\n)+)`, "{{- if .Values.compact }}\n$1{{- end }}\n")
	}
	// Access to a control plane that is not of this release.
	replace(`^( *- '?--grpc-client-allowed-names=.*)\n`, "$1{{ if eq .Values.installMode \"component\" }},system:admin{{ end }}\n")
	if slices.Contains([]string{"descheduler", "metricsAdapter", "search", "schedulerEstimator"}, f.key) {
		replace(`^(      - name: (karmada-config|karmada-cert|cert)\n(?:        .*\n)+)`, "      {{- if eq .Values.installMode \"component\" }}\n"+
			`      {{- include "karmada.existingVolume" (list . "`+f.key+`" "$2") | nindent 6 }}`+"\n      {{- else }}\n$1      {{- end }}\n")
	}
	replace(`--apiserver-count=1$`, `--apiserver-count={{ include "karmada.replicas" (list . "apiServer") }}`)
	// etcd.
	replace(`^( *- )'?--initial-cluster=.*\n`, `${1}--initial-cluster={{ include "karmada.etcdCluster" . }}`+"\n")
	replace(`^( *terminationGracePeriodSeconds: .*\n)`, "{{- if eq (int .Values.etcd.internal.replicaCount) 1 }}\n$1{{- end }}\n")
	replace(size, "{{ .Values.etcd.internal.pvc.size }}")
	replace(`^( *storageClassName: .*\n)`, "{{- if .Values.etcd.internal.pvc.storageClass }}\n$1{{- end }}\n")
	replace(`^(  volumeClaimTemplates:\n(?:  [ -].*\n|\{\{.*\n)+)`, "{{- if eq .Values.etcd.internal.storageType \"pvc\" }}\n$1{{- end }}\n")
	replace(`^(      volumes:\n)(      - name: etcd-cert\n)`, "$1"+`{{- if ne .Values.etcd.internal.storageType "pvc" }}
      - name: etcd-data
        hostPath:
          path: /var/lib/{{ .Release.Namespace }}/{{ include "karmada.fixed" . }}karmada-etcd
          type: DirectoryOrCreate
{{- end }}
`+"$2")
	// A workload that is there keeps its labels.
	text = selector.ReplaceAllStringFunc(text, func(found string) string {
		m := selector.FindStringSubmatch(found)
		var labels strings.Builder
		for line := range strings.Lines(m[2]) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
			fmt.Fprintf(&labels, " %q %s", key, name(strings.Trim(value, `"`)))
		}
		helper := "selector"
		if strings.HasSuffix(m[1], "matchLabels:\n") && len(m[3]) > len("  selector: ") { // of an affinity
			helper = "apart"
		}
		return fmt.Sprintf("%s%s{{- include \"karmada.%s\" (list .%s) | nindent %d }}\n", m[1], m[3], helper, labels.String(), len(m[3]))
	})
	text = marked.ReplaceAllString(text, "$1'$2'")
	text = marks.ReplaceAllStringFunc(text, func(mark string) string { return expressions[mark] })
	lines := regexp.MustCompile(`(?m)^      - command:\n((?:        - .*\n|\{\{-.*\n)+)`).FindStringSubmatch(text)
	if lines != nil {
		name := "karmada." + f.key + ".command"
		command = "{{- define \"" + name + "\" -}}\n" + strings.ReplaceAll(lines[1], "        - ", "- ") + "{{- end -}}\n"
		text = strings.Replace(text, lines[0], fmt.Sprintf("      - command:\n        {{- include \"karmada.command\" (list . %q (include %q .)) | nindent 8 }}\n", f.key, name), 1)
	}
	text = regexp.MustCompile(` *\{\{-([^\n]*)INDENT( *)`).ReplaceAllStringFunc(text, func(s string) string {
		i := strings.Index(s, "INDENT")
		return fmt.Sprintf("%s%d ", s[:i], len(s)-i-len("INDENT")-1)
	})
	return text, command
}
