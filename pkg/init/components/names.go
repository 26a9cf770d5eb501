package components

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Names of the workloads of a control plane on a host cluster.
const (
	Etcd                  = "etcd"
	APIServer             = "karmada-apiserver"
	AggregatedAPIServer   = AggregatedService
	KubeControllerManager = "kube-controller-manager"
	Scheduler             = "karmada-scheduler"
	ControllerManager     = "karmada-controller-manager"
	Webhook               = "karmada-webhook"
)

// WorkloadNames returns the names of the workloads, each after those that it needs.
func WorkloadNames() []string {
	return []string{Etcd, APIServer, AggregatedAPIServer, KubeControllerManager, Webhook, Scheduler, ControllerManager, AllInOne}
}

// EtcdClient is the Service of the members of etcd that are ready, where there is one.
const EtcdClient = "etcd-client"

// Naming returns the name of an object in the host cluster by the one that init gives it.
type Naming func(string) string

// ReleaseNames are the names of the objects of a Helm release: they begin with its name. fixed begins those that the
// release "karmada" has without its name.
func ReleaseNames(release, fixed string) Naming {
	return func(name string) string {
		if name == Etcd || name == EtcdClient || strings.HasSuffix(name, kubeconfigSuffix) {
			return fixed + name
		}
		return release + "-" + strings.TrimPrefix(name, "karmada-")
	}
}

// Names of the parts that are installed later.
const (
	Descheduler    = "karmada-descheduler"
	MetricsAdapter = "karmada-metrics-adapter"
	Search         = "karmada-search"
	Estimator      = "karmada-scheduler-estimator"
)

// IsWorkload reports whether a workload of this name belongs to a control plane, those that are installed later among
// them.
func IsWorkload(name string) bool {
	return slices.Contains(append(WorkloadNames(), Descheduler, MetricsAdapter, Search), name) || strings.HasPrefix(name, EstimatorWorkload(""))
}

// AddonAPIs returns the APIs that a part which is installed later adds to the control plane.
func AddonAPIs(addon string) []schema.GroupVersion {
	switch addon {
	case Search:
		return []schema.GroupVersion{{Group: groupSearch, Version: "v1alpha1"}}
	case MetricsAdapter:
		return metricsAPIs()
	}
	return nil
}

func metricsAPIs() []schema.GroupVersion {
	const custom = "custom.metrics.k8s.io"
	return []schema.GroupVersion{
		{Group: "metrics.k8s.io", Version: "v1beta1"}, {Group: custom, Version: "v1beta1"}, {Group: custom, Version: "v1beta2"},
	}
}

// Storage modes of etcd.
const (
	StorageHostPath = "hostPath"
	StorageEmptyDir = "emptyDir"
	StoragePVC      = "PVC"
)

// PodSettings are where the pods of a component run and what they may use.
type PodSettings struct {
	Resources    corev1.ResourceRequirements `json:"resources,omitzero"`
	NodeSelector map[string]string           `json:"nodeSelector,omitempty"`
	Tolerations  []corev1.Toleration         `json:"tolerations,omitempty"`
	Affinity     *corev1.Affinity            `json:"affinity,omitempty"`
}

// OfKubernetes reports whether a workload runs a program of Kubernetes or etcd, and not one of Karmada.
func OfKubernetes(workload string) bool {
	return workload == Etcd || workload == APIServer || workload == KubeControllerManager
}
