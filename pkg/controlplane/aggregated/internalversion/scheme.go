// Package internalversion holds the types that the aggregated API server works with in
// memory, and the scheme that ties them to the served version. A hub type has the
// shape of the served one: converting is a copy of the top level struct.
package internalversion

import (
	"fmt"
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
)

// NewScheme returns the scheme of the aggregated API server.
func NewScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	metaVersion := schema.GroupVersion{Version: "v1"}
	metav1.AddToGroupVersion(scheme, metaVersion)
	scheme.AddUnversionedTypes(metaVersion, &metav1.Status{}, &metav1.APIVersions{}, &metav1.APIGroupList{}, &metav1.APIGroup{}, &metav1.APIResourceList{})

	internal := schema.GroupVersion{Group: clusterv1alpha1.GroupName, Version: runtime.APIVersionInternal}
	scheme.AddKnownTypes(internal, &Cluster{}, &ClusterList{})
	if err := clusterv1alpha1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("building the scheme: %w", err)
	}
	if err := addConversions(scheme); err != nil {
		return nil, fmt.Errorf("building the scheme: %w", err)
	}
	if err := scheme.SetVersionPriority(clusterv1alpha1.GroupVersion); err != nil {
		return nil, fmt.Errorf("building the scheme: %w", err)
	}
	return scheme, nil
}

func addConversions(scheme *runtime.Scheme) error {
	for _, c := range []struct {
		from, to any
		convert  conversion.ConversionFunc
	}{
		{(*Cluster)(nil), (*clusterv1alpha1.Cluster)(nil), func(from, to any, _ conversion.Scope) error {
			*to.(*clusterv1alpha1.Cluster) = clusterv1alpha1.Cluster(*from.(*Cluster))
			return nil
		}},
		{(*clusterv1alpha1.Cluster)(nil), (*Cluster)(nil), func(from, to any, _ conversion.Scope) error {
			*to.(*Cluster) = Cluster(*from.(*clusterv1alpha1.Cluster))
			return nil
		}},
		{(*ClusterList)(nil), (*clusterv1alpha1.ClusterList)(nil), func(from, to any, _ conversion.Scope) error {
			in, out := from.(*ClusterList), to.(*clusterv1alpha1.ClusterList)
			out.ListMeta = in.ListMeta
			out.Items = make([]clusterv1alpha1.Cluster, len(in.Items))
			for i := range in.Items {
				out.Items[i] = clusterv1alpha1.Cluster(in.Items[i])
			}
			return nil
		}},
		{(*clusterv1alpha1.ClusterList)(nil), (*ClusterList)(nil), func(from, to any, _ conversion.Scope) error {
			in, out := from.(*clusterv1alpha1.ClusterList), to.(*ClusterList)
			out.ListMeta = in.ListMeta
			out.Items = make([]Cluster, len(in.Items))
			for i := range in.Items {
				out.Items[i] = Cluster(in.Items[i])
			}
			return nil
		}},
		{(*url.Values)(nil), (*clusterv1alpha1.ClusterProxyOptions)(nil), func(from, to any, _ conversion.Scope) error {
			to.(*clusterv1alpha1.ClusterProxyOptions).Path = from.(*url.Values).Get("path")
			return nil
		}},
	} {
		if err := scheme.AddConversionFunc(c.from, c.to, c.convert); err != nil {
			return err
		}
	}
	return nil
}

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
