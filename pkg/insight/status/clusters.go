package status

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	clusterv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/cluster/v1alpha1"
	"github.com/karmada-toolkit/karmada/pkg/domain/clustercondition"
	"github.com/karmada-toolkit/karmada/pkg/insight/snapshot"
	"github.com/karmada-toolkit/karmada/pkg/insight/why"
	"github.com/karmada-toolkit/karmada/pkg/operate/capacity"
)

// Clusters are the member clusters in numbers.
type Clusters struct {
	Total int `json:"total"`
	Ready int `json:"ready"`
	Push  int `json:"push"`
	Pull  int `json:"pull"`
	// Cordoned have the taint of "cordon", Tainted another one.
	Cordoned int `json:"cordoned"`
	Tainted  int `json:"tainted"`
	// Removed are being removed.
	Removed int `json:"removed"`
	// Free is what is left in those that are Ready, together.
	Free Free `json:"free"`
	// Items are the clusters, by name.
	Items []Cluster `json:"items"`
}

// Cluster is a member cluster.
type Cluster struct {
	Name  string `json:"name"`
	Mode  string `json:"mode"`
	Ready bool   `json:"ready"`
	// Reason is why it is not Ready.
	Reason   string `json:"reason,omitempty"`
	Cordoned bool   `json:"cordoned,omitempty"`
	Tainted  bool   `json:"tainted,omitempty"`
	Removed  bool   `json:"removed,omitempty"`
	// Workloads is the number of bindings that have it as a target.
	Workloads int  `json:"workloads"`
	Free      Free `json:"free"`
}

// Free is what is left, as "get clusters -o wide" prints it.
type Free struct {
	CPU    string `json:"cpu"`
	Memory string `json:"memory"`
	Pods   string `json:"pods"`
}

func (r *reporter) clusters() {
	if r.Lacks(snapshot.Clusters) {
		return
	}
	out, free := &Clusters{Items: []Cluster{}}, corev1.ResourceList{}
	r.out.Clusters = out
	for _, c := range r.Clusters {
		item := Cluster{
			Name: c.Name, Mode: string(c.Spec.SyncMode), Ready: c.Ready(), Removed: c.DeletionTimestamp != nil, Workloads: r.targets[c.Name], Free: Free(capacity.FreeOf(c)),
			Cordoned: slices.ContainsFunc(c.Spec.Taints, clustercondition.Cordons),
			Tainted:  slices.ContainsFunc(c.Spec.Taints, func(t corev1.Taint) bool { return !clustercondition.Cordons(t) }),
		}
		if item.Ready && !item.Removed {
			add(free, capacity.FreeResources(c))
		}
		if !item.Ready {
			item.Reason = r.notReady(c)
		}
		for _, condition := range why.ClusterProblems(c) {
			r.add(Problem{Reason: condition.Type, Object: object(clusterv1alpha1.GroupVersion.String(), "Cluster", "", c.Name), Workloads: item.Workloads,
				Text: fmt.Sprintf("cluster %s: %s: %s", c.Name, condition.Type, condition.Message), rank: rankClusterProblem}, r.program, "why", "cluster", c.Name)
		}
		out.Items = append(out.Items, item)
		out.count(&item)
	}
	out.Free = Free(capacity.FreeText(free))
}

// count counts a cluster.
func (c *Clusters) count(item *Cluster) {
	c.Total++
	for n, counts := range map[*int]bool{
		&c.Ready: item.Ready, &c.Cordoned: item.Cordoned, &c.Tainted: item.Tainted, &c.Removed: item.Removed,
		&c.Pull: item.Mode == string(clusterv1alpha1.Pull), &c.Push: item.Mode != string(clusterv1alpha1.Pull),
	} {
		if counts {
			*n++
		}
	}
}

// notReady adds the problem of a cluster that is not Ready and returns the reason. One that is being removed has none.
func (r *reporter) notReady(c *clusterv1alpha1.Cluster) string {
	reason, message := "NotYetReported", "it has not reported yet"
	if ready := c.ReadyCondition(); ready != nil {
		reason, message = why.Line(ready.Reason), ready.Reason+": "+ready.Message
	}
	if c.DeletionTimestamp == nil {
		text := fmt.Sprintf("cluster %s is not Ready (%s): %s", c.Name, why.Count(r.targets[c.Name], "workload"), message)
		r.add(Problem{Reason: reason, Object: object(clusterv1alpha1.GroupVersion.String(), "Cluster", "", c.Name),
			Workloads: r.targets[c.Name], Text: text, rank: rankCluster}, r.program, "describe", "cluster", c.Name)
	}
	return reason
}

// evictionsStopped reports whether evictions from a cluster are stopped.
func evictionsStopped(c *clusterv1alpha1.Cluster) bool {
	return meta.IsStatusConditionTrue(c.Status.Conditions, clusterv1alpha1.ClusterConditionEvictionsStopped)
}

func object(apiVersion, kind, namespace, name string) why.Object {
	return why.Object{APIVersion: apiVersion, Kind: kind, Namespace: namespace, Name: name}
}

func add(sum, list corev1.ResourceList) {
	for name, q := range list {
		total := sum[name]
		total.Add(q)
		sum[name] = total
	}
}
