package operator

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	operatorv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/operator/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
	"github.com/karmada-toolkit/karmada/pkg/init/config"
	"github.com/karmada-toolkit/karmada/pkg/init/credentials"
	"github.com/karmada-toolkit/karmada/pkg/init/phases"
)

const (
	// systemNamespace is that of each control plane in its own API.
	systemNamespace = "karmada-system"
	// adminSecret is the Secret with the administrator's kubeconfig, as names call it, and adminKey its key.
	adminSecret = "karmada-admin-config" //nolint:gosec // a name
	adminKey    = "karmada.config"
	// metricsAdapterReplicas is the default of the metrics adapter.
	metricsAdapterReplicas = 2
)

// Labels of all objects of a control plane in its host cluster.
func labelsOf(k *operatorv1alpha1.Karmada) map[string]string {
	return map[string]string{components.ManagedByLabel: components.ManagedByOperator, components.InstanceLabel: k.Name}
}

// namesOf returns the names of the objects of a control plane: they begin with that of the Karmada.
func namesOf(k *operatorv1alpha1.Karmada) components.Naming {
	prefix := k.Name
	if !strings.Contains(prefix, "karmada") {
		prefix += "-karmada"
	}
	return func(name string) string { return prefix + "-" + strings.TrimPrefix(name, "karmada-") }
}

// given is what of a control plane is not in its Karmada.
type given struct {
	// authority is that of spec.customCertificate; nil for none.
	authority *config.KeyPair
	// etcd are the files of an external etcd.
	etcd map[string][]byte
	// nodePort of the API server; 0 if it has none.
	nodePort int32
	// server is the URL of the API server for the operator and administrators, and address its host.
	server, address string
}

// configurationOf returns the configuration of a control plane.
func configurationOf(k *operatorv1alpha1.Karmada, g given) *config.Configuration {
	c := config.New()
	spec, parts := &k.Spec, componentsOf(k)
	c.DataPath, c.PKIPath, c.OfferToken, c.KeepScale = "", "", false, true
	c.Names, c.Labels, c.SystemNamespace = namesOf(k), labelsOf(k), systemNamespace
	c.Phases.Skip = []string{phases.Preflight, phases.Certificates, phases.Kubeconfig, phases.Layout}
	if h := spec.HostCluster; h != nil {
		c.Host.Endpoint = h.APIEndpoint
		if h.Networking != nil {
			c.Host.Domain = cmp.Or(ptr.Deref(h.Networking.DNSDomain, ""), c.Host.Domain)
		}
	}
	if spec.PrivateRegistry != nil {
		c.Images.PrivateRegistry = spec.PrivateRegistry.Registry
	}
	if t := spec.CRDTarball; t != nil && t.HTTPSource != nil {
		c.CRDs = t.HTTPSource.URL
	}
	certificates(&c, k, g)
	etcd(&c, parts.Etcd, k.Namespace, g)
	apiServer(&c, k, g)
	gates := spec.FeatureGates
	if p := parts.KarmadaAggregatedAPIServer; p != nil {
		set(&c.Aggregated, &p.CommonSettings, p.ExtraArgs, gateArgs(gates, p.FeatureGates))
		c.Certificates.Names[components.AggregatedAPIServer] = p.CertSANs
	}
	if p := parts.KubeControllerManager; p != nil {
		set(&c.KubeControllerManager, &p.CommonSettings, p.ExtraArgs, gateArgs(p.FeatureGates), controllerArgs(p.Controllers), subnetArgs(parts.KarmadaAPIServer))
	}
	if p := parts.KarmadaControllerManager; p != nil {
		set(&c.ControllerManager, &p.CommonSettings, p.ExtraArgs, gateArgs(gates, p.FeatureGates), controllerArgs(p.Controllers))
	}
	if p := parts.KarmadaScheduler; p != nil {
		set(&c.Scheduler, &p.CommonSettings, p.ExtraArgs, gateArgs(gates, p.FeatureGates))
	}
	if p := parts.KarmadaWebhook; p != nil {
		set(&c.Webhook, &p.CommonSettings, p.ExtraArgs, gateArgs(gates))
	}
	addons(&c, parts)
	for _, part := range c.AllParts() {
		if part.Repository+part.Tag != "" {
			image := c.ImageOf(part)
			i := strings.LastIndex(image, ":")
			part.Image = cmp.Or(part.Repository, image[:i]) + ":" + cmp.Or(part.Tag, image[i+1:])
		}
	}
	return &c
}

// componentsOf returns the parts of a control plane, with an empty object for each that is always installed.
func componentsOf(k *operatorv1alpha1.Karmada) *operatorv1alpha1.KarmadaComponents {
	out := &operatorv1alpha1.KarmadaComponents{}
	if k.Spec.Components != nil {
		out = k.Spec.Components.DeepCopy()
	}
	out.Etcd = cmp.Or(out.Etcd, &operatorv1alpha1.Etcd{})
	if out.Etcd.External == nil {
		out.Etcd.Local = cmp.Or(out.Etcd.Local, &operatorv1alpha1.LocalEtcd{})
	}
	out.KarmadaAPIServer = cmp.Or(out.KarmadaAPIServer, &operatorv1alpha1.KarmadaAPIServer{})
	out.KarmadaAPIServer.ServiceType = cmp.Or(out.KarmadaAPIServer.ServiceType, corev1.ServiceTypeClusterIP)
	out.KarmadaAggregatedAPIServer = cmp.Or(out.KarmadaAggregatedAPIServer, &operatorv1alpha1.KarmadaAggregatedAPIServer{})
	out.KubeControllerManager = cmp.Or(out.KubeControllerManager, &operatorv1alpha1.KubeControllerManager{})
	out.KarmadaControllerManager = cmp.Or(out.KarmadaControllerManager, &operatorv1alpha1.KarmadaControllerManager{})
	out.KarmadaScheduler = cmp.Or(out.KarmadaScheduler, &operatorv1alpha1.KarmadaScheduler{})
	out.KarmadaWebhook = cmp.Or(out.KarmadaWebhook, &operatorv1alpha1.KarmadaWebhook{})
	out.KarmadaMetricsAdapter = cmp.Or(out.KarmadaMetricsAdapter, &operatorv1alpha1.KarmadaMetricsAdapter{})
	out.KarmadaMetricsAdapter.Replicas = cmp.Or(out.KarmadaMetricsAdapter.Replicas, ptr.To[int32](metricsAdapterReplicas))
	return out
}

func certificates(c *config.Configuration, k *operatorv1alpha1.Karmada, g given) {
	c.Certificates.CA, c.Certificates.Names = g.authority, map[string][]string{}
	if custom := k.Spec.CustomCertificate; custom != nil && custom.LeafCertValidityDays != nil {
		c.Certificates.Validity = metav1.Duration{Duration: time.Duration(*custom.LeafCertValidityDays) * 24 * time.Hour}
	}
}

func etcd(c *config.Configuration, e *operatorv1alpha1.Etcd, namespace string, g given) {
	if x := e.External; x != nil {
		c.Etcd.External.Servers, c.Etcd.External.Files = x.Endpoints, g.etcd
		return
	}
	l := e.Local
	set(&c.Etcd.Component, &l.CommonSettings, nil)
	c.Certificates.Names["etcd-server"] = slices.Concat(l.ServerCertSANs, l.PeerCertSANs, credentials.ServiceNames(namespace, c.Host.Domain, c.Names(components.EtcdClient)))
	switch data := l.VolumeData; {
	case data != nil && data.VolumeClaim != nil:
		c.Etcd.StorageMode, c.Etcd.Claim = components.StoragePVC, data.VolumeClaim
	case data != nil && data.HostPath != nil:
		c.Etcd.StorageMode, c.Etcd.DataPath = components.StorageHostPath, data.HostPath.Path
	default:
		c.Etcd.StorageMode = components.StorageEmptyDir
	}
}

func apiServer(c *config.Configuration, k *operatorv1alpha1.Karmada, g given) {
	p := componentsOf(k).KarmadaAPIServer
	a := &c.APIServer
	set(&a.Component, &p.CommonSettings, p.ExtraArgs, gateArgs(p.FeatureGates), subnetArgs(p))
	a.Namespace, a.NodePort, a.Server = k.Namespace, g.nodePort, g.server
	a.ServiceType, a.LoadBalancerClass, a.ServiceAnnotations = p.ServiceType, p.LoadBalancerClass, p.ServiceAnnotations
	a.Further.Sidecars, a.Further.Volumes, a.Further.Mounts = p.SidecarContainers, p.ExtraVolumes, p.ExtraVolumeMounts
	for _, name := range append(slices.Clone(p.CertSANs), g.address) {
		switch {
		case name == "":
		case net.ParseIP(name) != nil:
			c.Certificates.ExternalIP = append(c.Certificates.ExternalIP, name)
		default:
			c.Certificates.ExternalDNS = append(c.Certificates.ExternalDNS, name)
		}
	}
}

// addons adds those that are wanted. The metrics adapter always is.
func addons(c *config.Configuration, parts *operatorv1alpha1.KarmadaComponents) {
	c.With, c.Certificates.Servers = []string{components.MetricsAdapter}, []string{components.MetricsAdapter}
	set(&c.Addons.MetricsAdapter, &parts.KarmadaMetricsAdapter.CommonSettings, parts.KarmadaMetricsAdapter.ExtraArgs)
	if p := parts.KarmadaDescheduler; p != nil {
		c.With = append(c.With, components.Descheduler)
		set(&c.Addons.Descheduler, &p.CommonSettings, p.ExtraArgs)
	}
	if p := parts.KarmadaSearch; p != nil {
		c.With, c.Certificates.Servers = append(c.With, components.Search), append(c.Certificates.Servers, components.Search)
		set(&c.Addons.Search, &p.CommonSettings, p.ExtraArgs)
	}
}

// set sets a part as the settings have it. Arguments of extra replace those of defaults.
func set(c *config.Component, s *operatorv1alpha1.CommonSettings, extra map[string]string, defaults ...map[string]string) {
	c.Repository, c.Tag = s.ImageRepository, s.ImageTag
	c.Replicas = ptr.Deref(s.Replicas, c.Replicas)
	c.PriorityClass = cmp.Or(s.PriorityClassName, c.PriorityClass)
	args := map[string]string{}
	for _, d := range append(defaults, extra) {
		maps.Copy(args, d)
	}
	for _, name := range slices.Sorted(maps.Keys(args)) {
		c.ExtraArgs = append(c.ExtraArgs, config.ArgsOf("--"+strings.TrimPrefix(name, "--")+"="+args[name])...)
	}
	c.Resources, c.Tolerations, c.Affinity = s.Resources, s.Tolerations, s.Affinity
	w := &c.Further
	w.PullPolicy, w.OnlyTolerations = s.ImagePullPolicy, len(s.Tolerations) > 0
	w.Labels, w.PodLabels, w.Annotations, w.PodAnnotations = s.Labels, s.Labels, s.Annotations, s.Annotations
	if b := s.PodDisruptionBudgetConfig; b != nil {
		w.DisruptionBudget = &policyv1.PodDisruptionBudgetSpec{MinAvailable: b.MinAvailable, MaxUnavailable: b.MaxUnavailable}
	}
}

// gateArgs returns the argument with feature gates. Those of later maps count.
func gateArgs(all ...map[string]bool) map[string]string {
	gates := map[string]bool{}
	for _, g := range all {
		maps.Copy(gates, g)
	}
	if len(gates) == 0 {
		return nil
	}
	var list []string
	for _, name := range slices.Sorted(maps.Keys(gates)) {
		list = append(list, fmt.Sprintf("%s=%s", name, strconv.FormatBool(gates[name])))
	}
	return map[string]string{"feature-gates": strings.Join(list, ",")}
}

func controllerArgs(controllers []string) map[string]string {
	if len(controllers) == 0 {
		return nil
	}
	return map[string]string{"controllers": strings.Join(controllers, ",")}
}

func subnetArgs(p *operatorv1alpha1.KarmadaAPIServer) map[string]string {
	if p == nil || p.ServiceSubnet == nil {
		return nil
	}
	return map[string]string{"service-cluster-ip-range": *p.ServiceSubnet}
}
