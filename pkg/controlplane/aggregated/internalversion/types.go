// Package internalversion holds the types that the aggregated API server works with in
// memory, and the scheme that ties them to the served version. A hub type has the
// shape of the served one: converting is a copy of the top level struct.
package internalversion

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
)

// Cluster is the hub's form of a member cluster.
type Cluster clusterv1alpha1.Cluster

// DeepCopyObject implements runtime.Object.
func (c *Cluster) DeepCopyObject() runtime.Object {
	if c == nil {
		return nil
	}
	return (*Cluster)(c.Versioned().DeepCopy())
}

// Versioned is the cluster as the served type; the memory is shared.
func (c *Cluster) Versioned() *clusterv1alpha1.Cluster { return (*clusterv1alpha1.Cluster)(c) }

// ClusterList is the hub's form of a list of clusters.
type ClusterList struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []Cluster
}

// DeepCopyObject implements runtime.Object.
func (l *ClusterList) DeepCopyObject() runtime.Object {
	if l == nil {
		return nil
	}
	out := &ClusterList{TypeMeta: l.TypeMeta}
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	if l.Items != nil {
		out.Items = make([]Cluster, len(l.Items))
		for i := range l.Items {
			l.Items[i].Versioned().DeepCopyInto(out.Items[i].Versioned())
		}
	}
	return out
}
