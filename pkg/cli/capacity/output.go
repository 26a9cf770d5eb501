package capacity

import (
	corev1 "k8s.io/api/core/v1"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/operate/capacity"
)

// freeDocument is what clusters have left in JSON.
type freeDocument struct {
	Clusters []freeCluster `json:"clusters"`
}

// freeCluster is what a cluster has left. What it has not reported is left out.
type freeCluster struct {
	Name       string              `json:"name"`
	Ready      string              `json:"ready"`
	ReadyNodes *int32              `json:"readyNodes,omitempty"`
	Nodes      *int32              `json:"nodes,omitempty"`
	Free       corev1.ResourceList `json:"free,omitempty"`
}

func newFreeDocument(clusters []clusterv1alpha1.Cluster) freeDocument {
	out := freeDocument{Clusters: make([]freeCluster, 0, len(clusters))}
	for i := range clusters {
		c := &clusters[i]
		d := freeCluster{Name: c.Name, Ready: string(c.ReadyStatus()), Free: capacity.FreeResources(c)}
		if s := c.Status.NodeSummary; s != nil {
			d.ReadyNodes, d.Nodes = &s.ReadyNum, &s.TotalNum
		}
		out.Clusters = append(out.Clusters, d)
	}
	return out
}

// fitsDocument is how much of a workload fits into clusters in JSON.
type fitsDocument struct {
	Workload fitsWorkload `json:"workload"`
	Clusters []fitCluster `json:"clusters"`
}

// fitsWorkload is the workload. Requests are those of one unit: a replica, or a set of components.
type fitsWorkload struct {
	Kind      string              `json:"kind"`
	Namespace string              `json:"namespace,omitempty"`
	Name      string              `json:"name"`
	Replicas  int32               `json:"replicas"`
	Unit      string              `json:"unit"`
	Requests  corev1.ResourceList `json:"requests,omitempty"`
}

// fitCluster is how many more replicas, or sets of components, fit into a cluster; none if that is not known.
type fitCluster struct {
	Cluster  string `json:"cluster"`
	Ready    string `json:"ready,omitempty"`
	Replicas *int32 `json:"replicas,omitempty"`
	BoundBy  string `json:"boundBy,omitempty"`
	Source   string `json:"source,omitempty"`
	Note     string `json:"note,omitempty"`
}

func newFitsDocument(w *capacity.Workload, fits []capacity.Fit) fitsDocument {
	out := fitsDocument{
		Workload: fitsWorkload{Kind: w.Kind, Namespace: w.Namespace, Name: w.Name, Replicas: w.Replicas, Unit: "replica", Requests: w.TotalRequests()},
		Clusters: make([]fitCluster, 0, len(fits)),
	}
	if len(w.Components) > 0 {
		out.Workload.Unit = "set"
	}
	for i := range fits {
		d := fitCluster{Cluster: fits[i].Cluster, Ready: fits[i].Ready, BoundBy: fits[i].Bound, Source: fits[i].Source, Note: fits[i].Note()}
		if fits[i].Known {
			d.Replicas = &fits[i].Replicas
		}
		out.Clusters = append(out.Clusters, d)
	}
	return out
}
