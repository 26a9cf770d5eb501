package installer

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/pkg/apis/crds"
	"github.com/karmada-toolkit/karmada/pkg/init/components"
	"github.com/karmada-toolkit/karmada/pkg/member/registration"
)

// config is what the objects are made of.
func (o *Options) config(f *facts, c *credentials) (*components.Config, error) {
	cfg := &components.Config{
		Namespace: o.Namespace, Domain: o.Domain, IPv6: f.ipv6,
		PullSecrets: o.Images.PullSecrets, NodePort: o.APIServer.NodePort, ServiceAnnotations: o.APIServer.ServiceAnnotations,
		Workloads: map[string]components.Workload{},
		Etcd: components.EtcdConfig{
			StorageMode: o.Etcd.StorageMode, DataPath: o.Etcd.DataPath,
			StorageClass: o.Etcd.StorageClass, Size: o.Etcd.PVCSize,
			ExternalServers: o.Etcd.External.Servers, KeyPrefix: o.Etcd.External.KeyPrefix,
		},
		Certificates: c.data,
		Kubeconfigs:  c.internal,
	}
	for _, part := range o.named() {
		w := components.Workload{
			Image: o.Image(part.name), PullPolicy: corev1.PullIfNotPresent, Replicas: part.Replicas,
			PriorityClass: part.PriorityClass, ExtraArgs: part.ExtraArgs, PodSettings: part.Pod,
		}
		switch part.name {
		case components.Etcd, components.APIServer, components.KubeControllerManager:
		default:
			w.PullPolicy = corev1.PullPolicy(o.Images.PullPolicy)
		}
		cfg.Workloads[part.name] = w
	}
	if f.etcd != nil {
		cfg.Etcd.PodManagement = f.etcd.Spec.PodManagementPolicy
	}
	labels, err := parseLabels(o.Etcd.NodeSelector)
	if err != nil {
		return nil, fmt.Errorf("the etcdNodeSelector format is incorrect: %w", err)
	}
	if len(labels) == 0 {
		labels = map[string]string{components.EtcdNodeLabel: ""}
	}
	cfg.Etcd.NodeSelector = maps.Clone(labels)
	return cfg, nil
}

// hostObjects are the objects of a phase in the host cluster.
func hostObjects(phase string, cfg *components.Config) ([]client.Object, error) {
	objects, err := bareHostObjects(phase, cfg)
	if err != nil {
		return nil, err
	}
	return objects, stamp(objects)
}

// wantedHash is the annotation of objects with a hash of what was asked for. Fields
// that are not asked for any more show by it.
const wantedHash = "karmada.io/wanted-hash"

// stamp annotates workloads and Services with what is asked for.
func stamp(objects []client.Object) error {
	for _, o := range objects {
		switch o.(type) {
		case *corev1.Namespace, *corev1.Secret:
			continue
		}
		text, err := json.Marshal(o)
		if err != nil {
			return fmt.Errorf("encoding %T %s: %w", o, o.GetName(), err)
		}
		sum := sha256.Sum256(text)
		annotations := maps.Clone(o.GetAnnotations())
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[wantedHash] = hex.EncodeToString(sum[:8])
		o.SetAnnotations(annotations)
	}
	return nil
}

func bareHostObjects(phase string, cfg *components.Config) ([]client.Object, error) {
	switch phase {
	case phaseNamespace:
		secrets, err := components.Secrets(cfg)
		if err != nil {
			return nil, err
		}
		return append([]client.Object{components.HostNamespace(cfg)}, secrets...), nil
	case phaseEtcd:
		if cfg.Etcd.External() {
			return nil, nil
		}
		set, err := components.EtcdStatefulSet(cfg)
		if err != nil {
			return nil, err
		}
		return []client.Object{components.EtcdService(cfg), set}, nil
	case phaseAPIServer:
		deployment, err := components.APIServerDeployment(cfg)
		if err != nil {
			return nil, err
		}
		return []client.Object{components.APIServerService(cfg), deployment}, nil
	case phaseAggregated:
		return []client.Object{components.AggregatedHostService(cfg), components.AggregatedDeployment(cfg)}, nil
	case phaseKCM:
		return []client.Object{components.KubeControllerManagerService(cfg), components.KubeControllerManagerDeployment(cfg)}, nil
	case phaseScheduler:
		return []client.Object{components.SchedulerDeployment(cfg)}, nil
	case phaseControllerManager:
		return []client.Object{components.ControllerManagerDeployment(cfg)}, nil
	case phaseWebhook:
		return []client.Object{components.WebhookService(cfg), components.WebhookDeployment(cfg)}, nil
	}
	return nil, nil
}

// controlPlaneObjects are the objects of a phase in the control plane.
func (s *state) controlPlaneObjects(phase string, cfg *components.Config) ([]client.Object, error) {
	switch phase {
	case phaseCRDs:
		objects, err := s.crds(cfg)
		if err != nil {
			return nil, err
		}
		return append(components.SystemNamespaces(cfg.Namespace), objects...), nil
	case phaseRBAC:
		return slices.Concat(components.SystemNamespaces(cfg.Namespace), components.FederationRBAC(), components.ComponentRBAC(cfg.Namespace)), nil
	case phaseWebhooks:
		return components.WebhookConfigurations(cfg.WebhookURL(), cfg.CABundle()), nil
	case phaseAggregatedAPI:
		host := fmt.Sprintf("%s.%s.svc", components.AggregatedService, cfg.Namespace)
		namespace := components.SystemNamespaces(cfg.Namespace)
		return append(namespace, components.AggregatedAPI(cfg.Namespace, host, 443, cfg.CABundle())...), nil
	case phaseBootstrap:
		return registration.Bootstrap(s.sites.server, cfg.CABundle())
	}
	return nil, nil
}

// crds are the APIs of the federation: those that are built in, or the user's.
func (s *state) crds(cfg *components.Config) ([]client.Object, error) {
	if s.customCRDs == nil {
		return components.CRDs(cfg.WebhookURL(), cfg.CABundle())
	}
	all := crds.ConvertedBy(s.customCRDs, cfg.WebhookURL(), cfg.CABundle())
	out := make([]client.Object, len(all))
	for i := range all {
		out[i] = all[i]
	}
	return out, nil
}
