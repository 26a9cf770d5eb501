package names

import (
	"slices"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
)

// FailoverState is the name of the ConfigMap in the namespace karmada-system that stores
// the state of failover.
const FailoverState = "karmada-failover"

// RemoveEtcdDataCommand is the command of the control plane's program that removes
// the data of an etcd from a directory.
const RemoveEtcdDataCommand = "remove-etcd-data"

// SystemLabels returns the labels of objects that the control plane creates for its
// own use.
func SystemLabels() map[string]string {
	return map[string]string{workv1alpha2.SystemLabel: workv1alpha2.SystemLabelValue}
}

// SystemNamespaces returns the sorted names of the namespaces of the control plane's
// own objects: karmada-system, karmada-cluster, and those given.
func SystemNamespaces(more ...string) []string {
	out := append([]string{clusterv1alpha1.NamespaceKarmadaSystem, clusterv1alpha1.NamespaceKarmadaCluster}, more...)
	slices.Sort(out)
	return slices.Compact(out)
}
