package phases

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/karmada-toolkit/karmada/pkg/init/components"
	"github.com/karmada-toolkit/karmada/pkg/init/config"
	"github.com/karmada-toolkit/karmada/pkg/init/credentials"
	"github.com/karmada-toolkit/karmada/pkg/init/hostcluster"
)

// Inputs are what the objects of the phases are made of.
type Inputs struct {
	*components.Config
	// Server is the URL of the API server for those outside the host cluster.
	Server string
	// CRDs are the APIs of the federation; nil means those that are built in.
	CRDs []*apiextensionsv1.CustomResourceDefinition
}

// componentsConfig returns what the objects in the host cluster are made of.
func componentsConfig(r *config.Request, f *hostcluster.Facts, c *credentials.Credentials) *components.Config {
	cfg := &components.Config{
		Namespace: r.Namespace, Domain: r.Domain, IPv6: components.IPv6(f.IPv6),
		PullSecrets: r.PullSecrets, NodePort: r.APIServer.NodePort, ServiceAnnotations: r.APIServer.ServiceAnnotations,
		Workloads: map[string]components.Workload{},
		Etcd: components.EtcdConfig{
			StorageMode: r.Etcd.StorageMode, DataPath: r.Etcd.DataPath,
			StorageClass: r.Etcd.StorageClass, Size: r.Etcd.PVCSize, NodeSelector: maps.Clone(r.Etcd.NodeSelector),
		},
		Certificates: c.Data,
		Kubeconfigs:  c.Internal,
	}
	if x := r.Etcd.External; x != nil {
		cfg.Etcd.ExternalServers, cfg.Etcd.KeyPrefix = x.Servers, x.KeyPrefix
	}
	if f.Etcd != nil {
		cfg.Etcd.PodManagement = f.Etcd.Spec.PodManagementPolicy
	}
	if len(cfg.Etcd.NodeSelector) == 0 {
		cfg.Etcd.NodeSelector = map[string]string{components.EtcdNodeLabel: ""}
	}
	for _, part := range r.Workloads {
		w := components.Workload{
			Image: r.Images.Image(part.Name), PullPolicy: r.PullPolicy, Replicas: part.Replicas,
			PriorityClass: part.PriorityClass, ExtraArgs: part.ExtraArgs, PodSettings: part.Pod,
		}
		if components.OfKubernetes(part.Name) {
			w.PullPolicy = corev1.PullIfNotPresent
		}
		cfg.Workloads[part.Name] = w
	}
	return cfg
}
