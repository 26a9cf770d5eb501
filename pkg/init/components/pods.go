package components

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/internal/kube"
)

// Directories in the pods.
const (
	configDir  = "/etc/karmada/config"
	pkiDir     = "/etc/karmada/pki"
	servingDir = "/var/serving-cert"
	etcdDir    = "/var/lib/karmada-etcd"

	kubeconfigKey  = "karmada.config"
	kubeconfigFile = configDir + "/" + kubeconfigKey
)

// pod is what differs between the pods of the components.
type pod struct {
	name string
	// container is the name of the container, that of the workload by default.
	container string
	command   []string
	ports     []corev1.ContainerPort
	// kubeconfig mounts the Secret <name>-config.
	kubeconfig bool
	// files are the keys of the Secret karmada-cert that are mounted.
	files []string
	// labels beside app.
	labels map[string]string
	// mounts are further volumes.
	mounts []mount

	probe probe
	root  bool
	env   []corev1.EnvVar
	// extra are arguments like those of the Workload, which they precede.
	extra []string
	// before are containers that end before the component starts.
	before []corev1.Container
}

type mount struct {
	corev1.Volume
	path     string
	readOnly bool
	// subPath mounts one file of the volume.
	subPath string
	// content is the data of a Secret.
	content map[string][]byte
}

// probe is how the health of a component is read.
type probe struct {
	scheme        corev1.URIScheme
	port          int
	live, ready   string
	liveThreshold int32
}

// Times of the probes. The startup probe answers as soon as a component does, and
// allows as long as the installation may take; it keeps the others away until
// then, so that they need no delay.
const (
	startupPeriod, startupFailures = 1, 150
	readyPeriod, readyFailures     = 2, 3
	livePeriod, liveFailures       = 10, 3
	probeTimeout                   = 5
)

func (p probe) get(path string) corev1.ProbeHandler {
	return corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromInt(p.port), Scheme: p.scheme}}
}

func (p probe) apply(c *corev1.Container) {
	c.StartupProbe = &corev1.Probe{ProbeHandler: p.get(p.ready), PeriodSeconds: startupPeriod, TimeoutSeconds: probeTimeout, FailureThreshold: startupFailures}
	c.ReadinessProbe = &corev1.Probe{ProbeHandler: p.get(p.ready), PeriodSeconds: readyPeriod, TimeoutSeconds: probeTimeout, FailureThreshold: readyFailures}
	if p.live != "" {
		c.LivenessProbe = &corev1.Probe{ProbeHandler: p.get(p.live), PeriodSeconds: livePeriod, TimeoutSeconds: probeTimeout, FailureThreshold: max(liveFailures, p.liveThreshold)}
	}
}

// template returns the pods of a component.
func (c *Config) template(p pod) corev1.PodTemplateSpec {
	w := c.Workloads[p.name]
	labels := maps.Clone(w.PodLabels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels["app"] = c.Name(p.name)
	maps.Copy(labels, c.selector(p))
	container := corev1.Container{
		Name: cmp.Or(p.container, p.name), Image: w.Image, ImagePullPolicy: w.PullPolicy,
		Command: p.command, Ports: p.ports, Env: p.env,
		Resources:       resources(p, w),
		SecurityContext: kube.ContainerSecurity(),
	}
	p.probe.apply(&container)
	spec := corev1.PodSpec{
		AutomountServiceAccountToken: new(bool),
		EnableServiceLinks:           new(bool),
		PriorityClassName:            w.PriorityClass,
		NodeSelector:                 w.NodeSelector,
		Tolerations:                  w.tolerations(),
		Affinity:                     affinity(c.Name(p.name), w),
		SecurityContext:              podSecurity(p),
		HostNetwork:                  w.HostNetwork,
		InitContainers:               p.before,
	}
	if w.HostNetwork {
		spec.DNSPolicy = corev1.DNSClusterFirstWithHostNet
	}
	for _, m := range c.volumes(p) {
		spec.Volumes = append(spec.Volumes, m.Volume)
		container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: m.Name, MountPath: m.path, SubPath: m.subPath, ReadOnly: m.readOnly})
	}
	for _, name := range slices.Concat(c.PullSecrets, w.PullSecrets) {
		spec.ImagePullSecrets = append(spec.ImagePullSecrets, corev1.LocalObjectReference{Name: name})
	}
	container.VolumeMounts = append(container.VolumeMounts, w.Mounts...)
	spec.Volumes = append(spec.Volumes, w.Volumes...)
	spec.Containers = append([]corev1.Container{container}, w.Sidecars...)
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: c.annotations(p)},
		Spec:       spec,
	}
}

// annotations of the pods of a component.
func (c *Config) annotations(p pod) map[string]string {
	out := maps.Clone(c.Workloads[p.name].PodAnnotations)
	if c.Certificates == nil {
		return out
	}
	if out == nil {
		out = map[string]string{}
	}
	out[ContentHashAnnotation] = c.contentHash(p)
	return out
}

// volumes returns what the pod mounts in the order in which it is listed.
func (c *Config) volumes(p pod) []mount {
	var out []mount
	if p.kubeconfig {
		out = append(out, mount{Volume: secretVolume("karmada-config", c.Name(p.name+"-config"), nil), path: configDir, readOnly: true, content: map[string][]byte{kubeconfigKey: c.Kubeconfigs[p.name]}})
	}
	if len(p.files) > 0 {
		out = append(out, mount{Volume: secretVolume(certSecret, c.Name(certSecret), p.files), path: pkiDir, readOnly: true, content: c.Certificates})
	}
	return append(out, p.mounts...)
}

// contentHash returns the ContentHash of the pods of a component.
func (c *Config) contentHash(p pod) string {
	var volumes []corev1.Volume
	secrets := map[string]map[string][]byte{}
	for _, m := range c.volumes(p) {
		volumes = append(volumes, m.Volume)
		if m.Secret != nil {
			secrets[m.Secret.SecretName] = m.content
		}
	}
	return ContentHash(cmp.Or(p.container, p.name), SecretFiles(volumes, func(name string) map[string][]byte { return secrets[name] }))
}

// secretVolume mounts the given keys of a Secret, or all of them.
func secretVolume(name, secret string, keys []string) corev1.Volume {
	source := &corev1.SecretVolumeSource{SecretName: secret, DefaultMode: new(int32(0o440))}
	for _, key := range keys {
		source.Items = append(source.Items, corev1.KeyToPath{Key: key, Path: key})
	}
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Secret: source}}
}

// requests returns the resources that the container of a component requests unless the user chooses others: what it takes at
// rest in a small federation, rounded up. The figures are in docs/helm.md.
func requests(container string) corev1.ResourceList {
	at := map[string][2]string{
		Etcd: {"50m", "64Mi"}, APIServer: {"100m", "384Mi"}, AggregatedAPIServer: {"100m", "64Mi"}, KubeControllerManager: {"20m", "64Mi"},
		Scheduler: {"10m", "32Mi"}, AllInOne: {"120m", "128Mi"}, ControllerManager: {"20m", "64Mi"}, Webhook: {"10m", "32Mi"}, Descheduler: {"10m", "32Mi"},
		MetricsAdapter: {"100m", "32Mi"}, Search: {"100m", "64Mi"}, Estimator: {"10m", "32Mi"},
	}[container]
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(at[0]), corev1.ResourceMemory: resource.MustParse(at[1])}
}

func resources(p pod, w Workload) corev1.ResourceRequirements {
	r := w.Resources
	if r.Requests == nil && r.Limits == nil {
		r.Requests = requests(cmp.Or(p.container, p.name))
	}
	return r
}

// DefaultTolerations let the control plane run where ordinary pods may not.
func DefaultTolerations() []corev1.Toleration {
	return []corev1.Toleration{
		{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
		{Key: "node-role.kubernetes.io/control-plane", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
		{Key: "node-role.kubernetes.io/master", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
	}
}

func (w *Workload) tolerations() []corev1.Toleration {
	if w.OnlyTolerations {
		return w.Tolerations
	}
	return append(DefaultTolerations(), w.Tolerations...)
}

// affinity spreads replicas over nodes where there are enough.
func affinity(name string, w Workload) *corev1.Affinity {
	if w.Affinity != nil {
		return w.Affinity
	}
	return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{
			Weight: 100,
			PodAffinityTerm: corev1.PodAffinityTerm{
				TopologyKey:   corev1.LabelHostname,
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
			},
		}},
	}}
}

// podSecurity is kube.PodSecurity, with ports below 1024 open to the pods that use one;
// pods that need root have it.
func podSecurity(p pod) *corev1.PodSecurityContext {
	s := kube.PodSecurity()
	if p.root {
		s.RunAsNonRoot, s.RunAsUser, s.RunAsGroup, s.FSGroup = nil, nil, nil, nil
		return s
	}
	if slices.ContainsFunc(p.ports, func(port corev1.ContainerPort) bool { return port.ContainerPort < 1024 }) {
		s.Sysctls = []corev1.Sysctl{{Name: "net.ipv4.ip_unprivileged_port_start", Value: "0"}}
	}
	return s
}

// deployment returns the Deployment of a component.
func (c *Config) deployment(p pod) *appsv1.Deployment {
	w := c.Workloads[p.name]
	p.command = mergeArgs(p.command, slices.Concat(p.extra, w.ExtraArgs))
	if p.env == nil {
		p.env = []corev1.EnvVar{podField("POD_IP", "status.podIP")}
	}
	d := &appsv1.Deployment{
		ObjectMeta: c.workloadMeta(p),
		Spec: appsv1.DeploymentSpec{
			Replicas: &w.Replicas,
			Selector: &metav1.LabelSelector{MatchLabels: c.selector(p)},
			Template: c.template(p),
		},
	}
	if w.Strategy != nil {
		d.Spec.Strategy = *w.Strategy
	}
	return d
}

// workloadMeta returns the metadata of a workload.
func (c *Config) workloadMeta(p pod) metav1.ObjectMeta {
	meta := c.meta(p.name, AppDefaults)
	maps.Copy(meta.Labels, c.Workloads[p.name].Labels)
	maps.Copy(meta.Labels, c.selector(p))
	meta.Annotations = maps.Clone(c.Workloads[p.name].Annotations)
	return meta
}

// DisruptionBudgets limit how many pods of each component may be evicted at a time.
func DisruptionBudgets(c *Config) []client.Object {
	var out []client.Object
	for _, name := range slices.Sorted(maps.Keys(c.Workloads)) {
		if budget := DisruptionBudget(c, name); budget != nil {
			out = append(out, budget)
		}
	}
	return out
}

// DisruptionBudget limits how many pods of a component may be evicted at a time; nil for none.
func DisruptionBudget(c *Config, name string) client.Object {
	budget := c.Workloads[name].DisruptionBudget
	if budget == nil {
		return nil
	}
	spec := *budget
	spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": c.Name(name)}}
	return &policyv1.PodDisruptionBudget{ObjectMeta: c.meta(name, AppDefaults), Spec: spec}
}

func (c *Config) selector(p pod) map[string]string { return c.selects(p.name, p.labels) }

// selects returns the labels by which a workload selects its pods: its name, and more.
func (c *Config) selects(workload string, more map[string]string) map[string]string {
	if own := c.Selectors[workload]; own != nil {
		return maps.Clone(own)
	}
	out := map[string]string{"app": c.Name(workload)}
	maps.Copy(out, more)
	return out
}

func podField(name, path string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}}
}

func port(name string, number int32) corev1.ContainerPort {
	return corev1.ContainerPort{Name: name, ContainerPort: number, Protocol: corev1.ProtocolTCP}
}

// mergeArgs returns the default arguments without those that are overridden, then
// the extra ones, sorted by name. Several extra arguments of one name stay in
// their order: flags that may be repeated are, and of others the last counts.
func mergeArgs(defaults, extra []string) []string {
	overridden := map[string]bool{}
	for _, arg := range extra {
		overridden[argName(arg)] = true
	}
	var out []string
	for _, arg := range defaults {
		if !overridden[argName(arg)] {
			out = append(out, arg)
		}
	}
	sorted := slices.Clone(extra)
	slices.SortStableFunc(sorted, func(a, b string) int { return strings.Compare(argName(a), argName(b)) })
	return append(out, sorted...)
}

func argName(arg string) string {
	name, _, _ := strings.Cut(arg, "=")
	return name
}
