package services

import (
	"fmt"
	"slices"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
)

// Clusters are the Clusters by name.
type Clusters map[string]*clusterv1alpha1.Cluster

// ClustersOf returns the Clusters of a list. They are shared with it.
func ClustersOf(list *clusterv1alpha1.ClusterList) Clusters {
	out := make(Clusters, len(list.Items))
	for i := range list.Items {
		out[list.Items[i].Name] = &list.Items[i]
	}
	return out
}

// Ready reports whether a cluster exists, is not being deleted, and is Ready.
func (c Clusters) Ready(name string) bool { return Reachable(c[name]) }

// Reachable reports whether a cluster exists, is not being deleted, and is Ready.
func Reachable(c *clusterv1alpha1.Cluster) bool {
	return c != nil && c.DeletionTimestamp == nil && c.Ready()
}

// ReachableChanged reports whether a cluster is reachable after a change and was not before, or the reverse.
func ReachableChanged(before, after *clusterv1alpha1.Cluster) bool {
	return Reachable(before) != Reachable(after)
}

// ServesSlices reports whether a cluster serves EndpointSlices, as far as is known.
func ServesSlices(cluster *clusterv1alpha1.Cluster) bool {
	for _, enablement := range cluster.Status.APIEnablements {
		if enablement.GroupVersion != discoveryv1.SchemeGroupVersion.String() {
			continue
		}
		return slices.ContainsFunc(enablement.Resources, func(r clusterv1alpha1.APIResource) bool { return r.Kind == kindEndpointSlice })
	}
	return !meta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1alpha1.ClusterConditionCompleteAPIEnablements)
}

// unusable returns the event about a cluster that takes no part, or nil. role and object
// are for the message.
func (c Clusters) unusable(name, role, object string) *Event {
	var e Event
	switch cluster := c[name]; {
	case cluster == nil:
		e = warning(ReasonClusterNotFound, fmt.Sprintf("%s cluster %s is not found", role, name))
	case !c.Ready(name):
		e = warning(ReasonSyncServiceFailed, fmt.Sprintf("%s cluster %s is not ready, skip to propagate %s", role, name, object))
	case !ServesSlices(cluster):
		e = warning(ReasonAPIIncompatible, fmt.Sprintf("%s cluster %s does not support EndpointSlice", role, name))
	default:
		return nil
	}
	return &e
}

// Unusable returns why a cluster neither provides nor consumes, or an empty string.
func (c Clusters) Unusable(name string) string {
	switch cluster := c[name]; {
	case cluster == nil:
		return "the cluster does not exist"
	case !c.Ready(name):
		condition := cluster.ReadyCondition()
		if condition == nil {
			condition = &metav1.Condition{Message: "its status is not known yet"}
		}
		return "the cluster is not ready: " + condition.Message
	case !ServesSlices(cluster):
		return "the cluster does not serve EndpointSlices"
	}
	return ""
}

// Prefixed returns the name in other clusters of a slice of a cluster. Where the name of a
// cluster begins with that of another one, a hyphen does not separate the name of the
// cluster from that of the slice; a dot does, as names of clusters have none.
func (c Clusters) Prefixed(prefix, cluster, slice string) string {
	name := cluster + "-" + slice
	for other := range c {
		if strings.HasPrefix(other, cluster+"-") && strings.HasPrefix(name, other+"-") {
			return prefix + cluster + "." + slice
		}
	}
	return prefix + name
}

// UsabilityChanged reports whether a cluster can provide or consume slices since, or no
// longer.
func UsabilityChanged(before, after *clusterv1alpha1.Cluster) bool {
	return ReachableChanged(before, after) || ServesSlices(before) != ServesSlices(after)
}
