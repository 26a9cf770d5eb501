// Package capacity reports what member clusters have left, and how many more replicas of a workload fit into each.
package capacity

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/replicas"
	"github.com/karmada-toolkit/karmada/pkg/domain/schedule/core"
)

// Sources of an answer.
const (
	// Summary is the sum of what is free in the status of the Cluster.
	Summary = "summary"
	// Models are the numbers of nodes by grade in the status of the Cluster.
	Models = "models"
	// Estimator is the estimator of the cluster.
	Estimator = "estimator"
	// Quota is a ResourceQuota of the namespace in the cluster.
	Quota = "quota"
)

// Workload is what is to fit.
type Workload struct {
	Kind, Namespace, Name string
	// Replicas is how many there are now.
	Replicas int32
	// Requirements of a replica; nil means that only pods count.
	Requirements *workv1alpha2.ReplicaRequirements
	// Components are the parts of a workload with several pod templates. It is counted in sets of all of them.
	Components []workv1alpha2.Component
}

// Fit is how many more replicas, or sets of components, of a workload fit into a cluster.
type Fit struct {
	Cluster string
	// Ready is the status of the condition Ready of the cluster.
	Ready string
	// Known reports whether the cluster has reported resources.
	Known    bool
	Replicas int32
	// Bound names the resource that keeps it from being more, empty where the source does not name it.
	Bound string
	// Source is who reports it: Summary, Models, Estimator or Quota.
	Source string
	// Summed is what fits into the sum of what is free; set if the models count instead.
	Summed int32
}

// Note returns why models allow fewer replicas than the sum of what is free, or "".
func (f *Fit) Note() string {
	if f.Source != Models || f.Summed <= f.Replicas {
		return ""
	}
	return fmt.Sprintf("a node counts as the minimum of its grade; the free sum allows %d", f.Summed)
}

// Fits returns how many more replicas of a workload fit into each cluster, in the order of the clusters. Estimates by
// cluster can only lower what the status of the Cluster contains, as in the scheduler; those that failed are ignored.
func Fits(w *Workload, clusters []clusterv1alpha1.Cluster, estimates map[string]core.Estimate) []Fit {
	out := make([]Fit, len(clusters))
	for i := range clusters {
		f := fit(w, &clusters[i])
		if e, ok := estimates[f.Cluster]; ok && e.Err == "" && e.Replicas != core.Unauthentic && f.Known && e.Replicas < f.Replicas {
			f.Replicas, f.Bound, f.Source = e.Replicas, "", Estimator
		}
		out[i] = f
	}
	return out
}

func fit(w *Workload, cluster *clusterv1alpha1.Cluster) Fit {
	c := replicas.NewCapacity(cluster, true)
	f := Fit{Cluster: cluster.Name, Ready: string(cluster.ReadyStatus()), Source: Summary, Known: cluster.Status.ResourceSummary != nil}
	f.Replicas, f.Bound = w.into(c)
	if c.Graded() {
		f.Source = Models
		f.Summed, _ = w.into(replicas.NewCapacity(cluster, false))
	}
	if !f.Known {
		f.Source = ""
	}
	return f
}

// into returns how many more replicas, or sets of components, fit, and the name of what keeps it from being more.
func (w *Workload) into(c *replicas.Capacity) (int32, string) {
	if len(w.Components) > 0 {
		d := replicas.NewSetDemand(w.Components)
		n, bound := c.Sets(&d)
		return n, d.BoundName(bound)
	}
	d := replicas.Demand{Nothing: w.Requirements == nil}
	if w.Requirements != nil {
		d = replicas.NewDemand(w.Requirements.ResourceRequest)
	}
	n, bound := c.Replicas(&d)
	return n, d.BoundName(bound)
}

// Requests returns what one replica, or one set of components, requests, such as "cpu 100m, memory 64Mi".
func (w *Workload) Requests() string { return requestText(w.TotalRequests()) }

// TotalRequests returns what one replica, or one set of components, requests.
func (w *Workload) TotalRequests() corev1.ResourceList {
	total := corev1.ResourceList{}
	add := func(requests corev1.ResourceList, times int32) {
		for name, quantity := range requests {
			product, sum := quantity.DeepCopy(), total[name]
			product.Mul(int64(times))
			sum.Add(product)
			total[name] = sum
		}
	}
	if w.Requirements != nil {
		add(w.Requirements.ResourceRequest, 1)
	}
	for _, c := range w.Components {
		if c.ReplicaRequirements != nil {
			add(c.ReplicaRequirements.ResourceRequest, c.Replicas)
		}
	}
	return total
}

func requestText(list corev1.ResourceList) string {
	var parts []string
	for name, quantity := range list {
		if !quantity.IsZero() {
			parts = append(parts, fmt.Sprintf("%s %s", name, quantity.String()))
		}
	}
	if len(parts) == 0 {
		return "nothing but a pod"
	}
	slices.SortFunc(parts, cmp.Compare[string])
	return joined(parts)
}
