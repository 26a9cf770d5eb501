package components

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/apis/names"
)

const (
	estimatorPort      = EstimatorPort
	estimatorProbePort = 10351
	deschedulerPort    = 10358

	// clusterLabel is on the objects of an estimator, with the name of its cluster.
	clusterLabel = "cluster"
	// kubeconfigSuffix follows the name of a cluster in the name of the Secret with its kubeconfig, which is also its key.
	kubeconfigSuffix = "-kubeconfig"
)

// EstimatorPort is the port of the Service of an estimator.
const EstimatorPort = 10352

// File names of the certificates of a server that is installed as an addon.
const (
	AddonCA   = "ca.crt"
	AddonCert = corev1.TLSCertKey
	AddonKey  = corev1.TLSPrivateKeyKey
)

// AddonCertSecret returns the name of the Secret with the certificates of a server that is installed as an addon.
func AddonCertSecret(workload string) string { return workload + "-cert" }

// AddonSecret returns the Secret with the certificates of a server that is installed as an addon.
func AddonSecret(c *Config, workload string) client.Object {
	return c.secret(AddonCertSecret(workload), c.Certificates.addon(workload))
}

// EstimatorWorkload returns the name of the Deployment and of the Service of a cluster's estimator.
func EstimatorWorkload(cluster string) string { return Estimator + "-" + cluster }

// EstimatorKubeconfigSecret returns the name of the Secret with the kubeconfig of a cluster, for its estimator.
func EstimatorKubeconfigSecret(cluster string) string { return cluster + kubeconfigSuffix }

// EstimatorRules are what an estimator needs in its cluster.
func EstimatorRules() []rbacv1.PolicyRule {
	read := []string{"get", "list", "watch"}
	return []rbacv1.PolicyRule{
		rule("", []string{"nodes", "pods", "resourcequotas"}, nil, read...),
		rule("apps", []string{"deployments", "replicasets"}, nil, read...),
	}
}

// DeschedulerDeployment returns the descheduler.
func DeschedulerDeployment(c *Config) *appsv1.Deployment {
	return c.deployment(pod{
		name: Descheduler,
		command: append([]string{
			"/bin/karmada-descheduler",
			"--kubeconfig=" + kubeconfigFile,
			c.IPv6.metricsAddress(),
			fmt.Sprintf("--health-probe-bind-address=%s:%d", c.IPv6.podIP(), deschedulerPort),
			"--leader-elect-resource-namespace=" + c.System(),
			"--v=2",
		}, estimatorClientArgs(c.System())...),
		ports:      []corev1.ContainerPort{port("metrics", metricsPort)},
		kubeconfig: true,
		files:      estimatorClientFiles(),
		probe:      probe{scheme: corev1.URISchemeHTTP, port: deschedulerPort, live: "/healthz", ready: "/readyz"},
	})
}

// MetricsAdapterHost returns the Service of the metrics adapter and its Deployment.
func MetricsAdapterHost(c *Config) []client.Object {
	service := c.service(MetricsAdapter, servicePort("server", httpsPort, httpsPort))
	service.Spec.Selector["apiserver"] = "true"
	deployment := c.deployment(pod{
		name: MetricsAdapter,
		command: []string{
			"/bin/karmada-metrics-adapter",
			"--kubeconfig=" + kubeconfigFile,
			"--authentication-kubeconfig=" + kubeconfigFile,
			"--authorization-kubeconfig=" + kubeconfigFile,
			c.IPv6.metricsAddress(),
			"--client-ca-file=" + pkiFile(AddonCA),
			"--tls-cert-file=" + pkiFile(AddonCert),
			"--tls-private-key-file=" + pkiFile(AddonKey),
			"--tls-min-version=VersionTLS13",
			"--audit-log-path=-",
			"--audit-log-maxage=0",
			"--audit-log-maxbackup=0",
			"--bind-address=$(POD_IP)",
			"--v=2",
		},
		ports:  []corev1.ContainerPort{port("server", httpsPort), port("metrics", metricsPort)},
		labels: map[string]string{"apiserver": "true"}, kubeconfig: true,
		mounts: []mount{c.addonCertMount(MetricsAdapter)},
		probe:  probe{scheme: corev1.URISchemeHTTPS, port: httpsPort, live: "/healthz", ready: "/readyz"},
	})
	return []client.Object{service, c.secret(AddonCertSecret(MetricsAdapter), c.Certificates.addon(MetricsAdapter)), deployment}
}

// SearchHost returns the Service of the search role, the Secret with its certificate, and its Deployment. It stores
// ResourceRegistries in the etcd of the Config.
func SearchHost(c *Config) []client.Object {
	service := c.service(Search, servicePort("server", httpsPort, httpsPort))
	service.Spec.Selector["apiserver"] = "true"
	certificate := c.addonCertMount(Search)
	certificate.path = servingDir // pkiDir has the certificates for etcd
	deployment := c.deployment(pod{
		name: Search, command: c.storingServer("/bin/karmada-search", servingDir+"/"+AddonCert, servingDir+"/"+AddonKey),
		ports:  []corev1.ContainerPort{port("server", httpsPort)},
		labels: map[string]string{"apiserver": "true"}, kubeconfig: true,
		files:  etcdClientFiles(),
		mounts: []mount{certificate},
		probe:  probe{scheme: corev1.URISchemeHTTPS, port: httpsPort, live: "/livez", ready: "/readyz"},
	})
	return []client.Object{service, c.secret(AddonCertSecret(Search), c.Certificates.addon(Search)), deployment}
}

// EstimatorHost returns the objects of the estimator of a cluster: its Secrets, its Service and its Deployment. The
// kubeconfig of the cluster is among those of the Config, by the name of the workload.
func EstimatorHost(c *Config, cluster string) []client.Object {
	name, secret := EstimatorWorkload(cluster), EstimatorKubeconfigSecret(cluster)
	file := "/etc/" + secret
	content := map[string][]byte{secret: c.Kubeconfigs[name]}
	kubeconfig := c.secret(secret, content)
	kubeconfig.Labels[clusterLabel] = cluster
	certificate := c.secret(AddonCertSecret(name), c.Certificates.addon(name))
	certificate.Labels[clusterLabel] = cluster
	service := c.service(name, servicePort("grpc", estimatorPort, estimatorPort))
	service.Labels[clusterLabel], service.Spec.Selector[clusterLabel] = cluster, cluster
	deployment := c.deployment(pod{
		name: name, container: Estimator,
		command: []string{
			"/bin/karmada-scheduler-estimator",
			"--kubeconfig=" + file,
			"--cluster-name=" + cluster,
			"--grpc-auth-cert-file=" + pkiFile(AddonCert),
			"--grpc-auth-key-file=" + pkiFile(AddonKey),
			"--grpc-client-ca-file=" + pkiFile(AddonCA),
			"--grpc-client-allowed-names=" + EstimatorClientName + "," + names.ComponentUser("addons"),
			c.IPv6.metricsAddress(),
			fmt.Sprintf("--health-probe-bind-address=%s:%d", c.IPv6.podIP(), estimatorProbePort),
			"--v=2",
		},
		ports:  []corev1.ContainerPort{port("grpc", estimatorPort), port("metrics", metricsPort)},
		labels: map[string]string{clusterLabel: cluster},
		mounts: []mount{
			c.addonCertMount(name),
			{Volume: secretVolume("member-kubeconfig", c.Name(secret), nil), path: file, subPath: secret, readOnly: true, content: content},
		},
		probe: probe{scheme: corev1.URISchemeHTTP, port: estimatorProbePort, live: "/healthz", ready: "/readyz"},
	})
	return []client.Object{kubeconfig, certificate, service, deployment}
}

// EstimatorService makes the scheduler find the estimator of a cluster at a host and port: a Service of the control
// plane.
func EstimatorService(cluster, namespace, host string, target int32) *corev1.Service {
	out := externalService(EstimatorWorkload(cluster), namespace, host)
	out.Spec.Ports = []corev1.ServicePort{{Name: "grpc", Port: estimatorPort, TargetPort: intstr.FromInt32(target)}}
	return out
}

// estimatorClientArgs are how the estimators of a control plane in a namespace are reached.
func estimatorClientArgs(namespace string) []string {
	args := []string{
		"--scheduler-estimator-ca-file=" + pkiFile("ca.crt"),
		"--scheduler-estimator-cert-file=" + pkiFile(EstimatorClient+".crt"),
		"--scheduler-estimator-key-file=" + pkiFile(EstimatorClient+".key"),
	}
	if namespace != clusterv1alpha1.NamespaceKarmadaSystem { // the default of the flag
		args = append(args, "--scheduler-estimator-service-namespace="+namespace)
	}
	return args
}

func estimatorClientFiles() []string {
	return []string{"ca.crt", EstimatorClient + ".crt", EstimatorClient + ".key"}
}

// addonCertMount mounts the certificates of a server that is installed as an addon.
func (c *Config) addonCertMount(workload string) mount {
	return mount{Volume: secretVolume("cert", c.Name(AddonCertSecret(workload)), nil), path: pkiDir, readOnly: true, content: c.Certificates.addon(workload)}
}

// AddonServing makes the API server pass requests for the APIs of an addon on to its server at host, under the name of a
// Service in the namespace.
func AddonServing(addon, namespace, host string, port int32, caBundle []byte) []client.Object {
	groupPriority, versionPriority := int32(100), int32(200)
	if addon == Search {
		groupPriority, versionPriority = 2000, 10
	}
	out := []client.Object{externalService(addon, namespace, host)}
	for _, gv := range AddonAPIs(addon) {
		out = append(out, apiService(gv, groupPriority, versionPriority, namespacedService{addon, namespace, port}, caBundle))
	}
	return out
}
