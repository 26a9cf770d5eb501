package components

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/karmada-toolkit/karmada/internal/kube"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
)

// encryptionDir has the file of Encryption.
const encryptionDir = "/etc/karmada/encryption"

// pkiFile is where a certificate or key is in the pods.
func pkiFile(name string) string { return pkiDir + "/" + name }

// etcdServers are the URLs of the store.
func (c *Config) etcdServers() string {
	if c.Etcd.External() {
		return c.Etcd.ExternalServers
	}
	var out []string
	for _, host := range c.EtcdHosts(c.Workloads[Etcd].Replicas) {
		out = append(out, fmt.Sprintf("https://%s:%d", host, etcdClientPort))
	}
	return strings.Join(out, ",")
}

// etcdClientArgs are how the store at some URLs is reached.
func etcdClientArgs(servers string) []string {
	return []string{
		"--etcd-cafile=" + pkiFile("etcd-ca.crt"),
		"--etcd-certfile=" + pkiFile("etcd-client.crt"),
		"--etcd-keyfile=" + pkiFile("etcd-client.key"),
		"--etcd-servers=" + servers,
	}
}

func (e *EtcdConfig) prefixArgs() []string {
	if e.KeyPrefix == "" {
		return nil
	}
	return []string{"--etcd-prefix=" + e.KeyPrefix}
}

func etcdClientFiles() []string { return []string{"etcd-ca.crt", "etcd-client.crt", "etcd-client.key"} }

// APIServerDeployment returns the API server of the control plane.
func APIServerDeployment(c *Config) (*appsv1.Deployment, error) {
	w := c.Workloads[APIServer]
	admission, err := c.admission()
	if err != nil {
		return nil, err
	}
	command := []string{
		"kube-apiserver",
		"--allow-privileged=true",
		"--authorization-mode=Node,RBAC",
		"--client-ca-file=" + pkiFile("ca.crt"),
		"--enable-bootstrap-token-auth=true",
	}
	command = append(command, etcdClientArgs(c.etcdServers())...)
	command = append(command,
		"--bind-address="+c.IPv6.anyIP(),
		"--disable-admission-plugins=StorageObjectInUseProtection,ServiceAccount",
		AdmissionConfigFlag+"="+admissionDir+"/"+AdmissionConfigKey,
		"--runtime-config=",
		fmt.Sprintf("--apiserver-count=%d", w.Replicas),
		fmt.Sprintf("--secure-port=%d", apiServerPort),
		"--service-account-issuer=https://kubernetes.default.svc."+c.Domain,
		"--service-account-key-file="+pkiFile(ServiceAccountKey+".key"),
		"--service-account-signing-key-file="+pkiFile(ServiceAccountKey+".key"),
		"--service-cluster-ip-range="+c.IPv6.serviceRange(),
		// Until nodes have heard that the pod ends, they send it connections.
		"--shutdown-delay-duration=3s",
		"--proxy-client-cert-file="+pkiFile("front-proxy-client.crt"),
		"--proxy-client-key-file="+pkiFile("front-proxy-client.key"),
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-client-ca-file="+pkiFile("front-proxy-ca.crt"),
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-username-headers=X-Remote-User",
		"--tls-cert-file="+pkiFile("apiserver.crt"),
		"--tls-private-key-file="+pkiFile("apiserver.key"),
		"--tls-min-version=VersionTLS13",
		"--v=2",
	)
	command = append(command, c.Etcd.prefixArgs()...)
	mounts := []mount{{Volume: secretVolume("admission", c.Name(admissionSecret), nil), path: admissionDir, readOnly: true, content: admission}}
	if e := c.Encryption; e != nil {
		command = append(command, "--encryption-provider-config="+encryptionDir+"/"+e.Key)
		mounts = append(mounts, mount{Volume: secretVolume("encryption", e.Secret, []string{e.Key}), path: encryptionDir, readOnly: true})
	}
	env := []corev1.EnvVar{podField("POD_IP", "status.podIP")}
	if c.Compact {
		env = append(env, corev1.EnvVar{Name: "GOGC", Value: strconv.Itoa(compactGC)})
	}
	return c.deployment(pod{
		name: APIServer, command: command, env: env, ports: []corev1.ContainerPort{port("server", apiServerPort)},
		files: append(etcdClientFiles(), "ca.crt", "apiserver.crt", "apiserver.key", "front-proxy-ca.crt",
			"front-proxy-client.crt", "front-proxy-client.key", ServiceAccountKey+".key"),
		mounts: mounts,
		probe:  probe{scheme: corev1.URISchemeHTTPS, port: apiServerPort, live: "/livez", ready: "/readyz", liveThreshold: 8},
	}), nil
}

// AggregatedDeployment returns the aggregated API server.
func AggregatedDeployment(c *Config) *appsv1.Deployment { return c.deployment(c.aggregatedPod()) }

func (c *Config) aggregatedPod() pod {
	return pod{
		name:    AggregatedAPIServer,
		command: c.storingServer("/bin/karmada-aggregated-apiserver", pkiFile(AggregatedAPIServer+".crt"), pkiFile(AggregatedAPIServer+".key")),
		ports:   []corev1.ContainerPort{port("server", httpsPort)},
		labels:  map[string]string{"apiserver": "true"}, kubeconfig: true,
		files: append(etcdClientFiles(), AggregatedAPIServer+".crt", AggregatedAPIServer+".key"),
		probe: probe{scheme: corev1.URISchemeHTTPS, port: httpsPort, live: "/healthz", ready: "/readyz"},
	}
}

// storingServer returns the command of a server behind the aggregation layer that stores objects in etcd.
func (c *Config) storingServer(program, certificate, key string) []string {
	return slices.Concat([]string{
		program,
		"--kubeconfig=" + kubeconfigFile,
		"--authentication-kubeconfig=" + kubeconfigFile,
		"--authorization-kubeconfig=" + kubeconfigFile,
	}, etcdClientArgs(c.etcdServers()), []string{
		"--tls-cert-file=" + certificate,
		"--tls-private-key-file=" + key,
		"--tls-min-version=VersionTLS13",
		"--audit-log-path=-",
		"--audit-log-maxage=0",
		"--audit-log-maxbackup=0",
		"--bind-address=$(POD_IP)",
		"--v=2",
	}, c.Etcd.prefixArgs())
}

// controllers are those of Kubernetes that a control plane without nodes needs.
const controllers = "namespace,garbagecollector,serviceaccount-token,ttl-after-finished,bootstrapsigner,tokencleaner,csrcleaner,csrsigning,clusterrole-aggregation"

// KubeControllerManagerDeployment returns Kubernetes' controllers.
func KubeControllerManagerDeployment(c *Config) *appsv1.Deployment {
	pods, mask := c.IPv6.podRange()
	return c.deployment(pod{
		name: KubeControllerManager, before: c.await(KubeControllerManager),
		command: []string{
			"kube-controller-manager",
			"--allocate-node-cidrs=true",
			"--kubeconfig=" + kubeconfigFile,
			"--authentication-kubeconfig=" + kubeconfigFile,
			"--authorization-kubeconfig=" + kubeconfigFile,
			"--bind-address=" + c.IPv6.anyIP(),
			"--client-ca-file=" + pkiFile("ca.crt"),
			"--cluster-cidr=" + pods,
			"--cluster-name=karmada-apiserver",
			"--cluster-signing-cert-file=" + pkiFile(SigningCA),
			"--cluster-signing-key-file=" + pkiFile("ca.key"),
			"--controllers=" + controllers,
			"--leader-elect=true",
			"--leader-elect-resource-namespace=" + c.System(),
			"--node-cidr-mask-size=" + mask,
			// Given here, it need not be looked up in the API server, which may be
			// starting.
			"--requestheader-client-ca-file=" + pkiFile("front-proxy-ca.crt"),
			"--root-ca-file=" + pkiFile("ca.crt"),
			"--service-account-private-key-file=" + pkiFile(ServiceAccountKey+".key"),
			"--service-cluster-ip-range=" + c.IPv6.serviceRange(),
			"--use-service-account-credentials=true",
			"--v=2",
		},
		ports:      []corev1.ContainerPort{port("server", kcmPort)},
		kubeconfig: true,
		files:      []string{"ca.crt", "ca.key", SigningCA, "front-proxy-ca.crt", ServiceAccountKey + ".key"},
		probe:      probe{scheme: corev1.URISchemeHTTPS, port: kcmPort, live: "/healthz", ready: "/healthz", liveThreshold: 8},
	})
}

// SchedulerDeployment returns the scheduler.
func SchedulerDeployment(c *Config) *appsv1.Deployment { return c.deployment(c.schedulerPod()) }

func (c *Config) schedulerPod() pod {
	return pod{
		name: Scheduler,
		command: slices.Concat([]string{
			"/bin/karmada-scheduler",
			"--kubeconfig=" + kubeconfigFile,
			c.IPv6.metricsAddress(),
			fmt.Sprintf("--health-probe-bind-address=%s:%d", c.IPv6.podIP(), schedulerPort),
			"--enable-scheduler-estimator=true",
			"--leader-elect=true",
		}, estimatorClientArgs(c.System()), []string{
			"--leader-elect-resource-namespace=" + c.System(),
			"--v=2",
		}),
		ports:      []corev1.ContainerPort{port("metrics", metricsPort)},
		kubeconfig: true,
		files:      estimatorClientFiles(),
		probe:      probe{scheme: corev1.URISchemeHTTP, port: schedulerPort, live: "/healthz", ready: "/readyz"},
	}
}

// ControllerManagerDeployment returns the controllers of the federation.
func ControllerManagerDeployment(c *Config) *appsv1.Deployment {
	return c.deployment(c.controllerManagerPod())
}

func (c *Config) controllerManagerPod() pod {
	return pod{
		name: ControllerManager, before: c.await(ControllerManager),
		command: []string{
			"/bin/karmada-controller-manager",
			"--kubeconfig=" + kubeconfigFile,
			c.IPv6.metricsAddress(),
			fmt.Sprintf("--health-probe-bind-address=%s:%d", c.IPv6.podIP(), managerPort),
			"--cluster-status-update-frequency=10s",
			"--leader-elect-resource-namespace=" + c.System(),
			"--v=2",
		},
		ports:      []corev1.ContainerPort{port("server", managerPort), port("metrics", metricsPort)},
		kubeconfig: true,
		probe:      probe{scheme: corev1.URISchemeHTTP, port: managerPort, live: "/healthz", ready: "/readyz"},
	}
}

// await returns the container of a component that waits for the static resources, so that who waits for the workloads waits for those.
// It is in the pods of the federation's controllers; where they also serve what the static resources wait for, in those of Kubernetes'
// controllers.
func (c *Config) await(component string) []corev1.Container {
	if c.Await == nil || c.Compact != (component == KubeControllerManager) {
		return nil
	}
	w := c.Workloads[c.Workload(ControllerManager)]
	return []corev1.Container{{
		Name: "wait", Image: w.Image, ImagePullPolicy: w.PullPolicy,
		Command: []string{
			"/bin/karmada", names.AwaitResourcesCommand, "--kubeconfig=" + kubeconfigFile,
			"--namespace=" + c.System(), "--release=" + c.Await.Version, "--settings=" + c.Await.Settings,
		},
		VolumeMounts:             []corev1.VolumeMount{{Name: "karmada-config", MountPath: configDir, ReadOnly: true}},
		SecurityContext:          kube.ContainerSecurity(),
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
	}}
}

// WebhookDeployment returns the webhook server.
func WebhookDeployment(c *Config) *appsv1.Deployment { return c.deployment(c.webhookPod()) }

func (c *Config) webhookPod() pod {
	return pod{
		name: Webhook,
		command: []string{
			"/bin/karmada-webhook",
			"--kubeconfig=" + kubeconfigFile,
			"--bind-address=$(POD_IP)",
			c.IPv6.metricsAddress(),
			fmt.Sprintf("--health-probe-bind-address=%s:%d", c.IPv6.podIP(), webhookProbe),
			fmt.Sprintf("--secure-port=%d", webhookPort),
			"--cert-dir=" + servingDir,
			"--client-ca-file=" + pkiFile("ca.crt"),
			"--v=2",
		},
		ports:      []corev1.ContainerPort{port("webhook", webhookPort), port("metrics", metricsPort)},
		kubeconfig: true,
		files:      []string{"ca.crt"},
		mounts:     []mount{{Volume: secretVolume("cert", c.Name(webhookCertSecret), nil), path: servingDir, readOnly: true, content: c.Certificates.webhook()}},
		probe:      probe{scheme: corev1.URISchemeHTTPS, port: webhookPort, live: "/readyz/", ready: "/readyz/"},
	}
}
