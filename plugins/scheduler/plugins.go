// Package scheduler has the scheduler plugins that are built in.
package scheduler

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/schedule/framework"
)

// Reasons for the user. All but notCollected are those of the contract.
const (
	notServed    = "cluster(s) did not have the API resource"
	notCollected = "cluster(s) whose API resources are not collected yet"
	notSelected  = "cluster(s) did not match the placement cluster affinity constraint"
	evicting     = "cluster(s) is in the process of eviction"
	noProvider   = "cluster(s) did not have provider property"
	noRegion     = "cluster(s) did not have region property"
	noZones      = "cluster(s) did not have zones property"
	untolerated  = "cluster(s) had untolerated taint"
	notWithPeers = "ResourceBinding with the same affinity group does not target this cluster"
	withPeers    = "cluster already has workload with the same anti-affinity group"
)

// apiEnablement keeps bindings off clusters that do not serve the kind of their template.
type apiEnablement struct{}

func (apiEnablement) Name() string { return "APIEnablement" }

// Filter passes clusters that serve the kind, and those that are targets already:
// the list of APIs may be incomplete for a while.
func (apiEnablement) Filter(pass *framework.Pass, cluster *framework.ClusterInfo) framework.Verdict {
	if pass.IsTarget(cluster) || pass.Served(cluster) {
		return framework.Verdict{}
	}
	if !cluster.APIsCollected() {
		return framework.Reject(notCollected)
	}
	return framework.Reject(notServed)
}

// clusterAffinity keeps bindings on the clusters that their placement selects.
type clusterAffinity struct{}

func (clusterAffinity) Name() string { return "ClusterAffinity" }

// Filter passes clusters that the affinity in use or, for workloads, one of its
// overflow affinities selects.
func (clusterAffinity) Filter(pass *framework.Pass, cluster *framework.ClusterInfo) framework.Verdict {
	if pass.Tier(cluster) == framework.OutsideTiers {
		return framework.Reject(notSelected)
	}
	return framework.Verdict{}
}

// Score prefers no cluster.
func (clusterAffinity) Score(*framework.Pass, *framework.ClusterInfo) (int64, error) { return 0, nil }

// clusterEviction keeps bindings off clusters that they are just being evicted from.
type clusterEviction struct{}

func (clusterEviction) Name() string { return "ClusterEviction" }

// Filter passes clusters that no eviction task of the binding leaves.
func (clusterEviction) Filter(pass *framework.Pass, cluster *framework.ClusterInfo) framework.Verdict {
	if len(pass.Spec.GracefulEvictionTasks) > 0 && pass.Spec.EvictingFrom(cluster.Name()) {
		return framework.Reject(evicting)
	}
	return framework.Verdict{}
}

// clusterLocality prefers the clusters that a binding is on already.
type clusterLocality struct{}

func (clusterLocality) Name() string { return "ClusterLocality" }

// Score gives the most to clusters in the target list and nothing to others.
func (clusterLocality) Score(pass *framework.Pass, cluster *framework.ClusterInfo) (int64, error) {
	if pass.IsTarget(cluster) {
		return framework.MaxScore, nil
	}
	return 0, nil
}

// spreadConstraint keeps bindings that are spread over providers, regions or zones off clusters that do not say theirs.
type spreadConstraint struct{}

func (spreadConstraint) Name() string { return "SpreadConstraint" }

// Filter passes clusters that have every property which a spread constraint
// groups by.
func (spreadConstraint) Filter(pass *framework.Pass, cluster *framework.ClusterInfo) framework.Verdict {
	spec := &cluster.Object.Spec
	for i := range pass.Spec.Placement.SpreadConstraints {
		switch pass.Spec.Placement.SpreadConstraints[i].SpreadByField {
		case policyv1alpha1.SpreadByFieldProvider:
			if spec.Provider == "" {
				return framework.Reject(noProvider)
			}
		case policyv1alpha1.SpreadByFieldRegion:
			if spec.Region == "" {
				return framework.Reject(noRegion)
			}
		case policyv1alpha1.SpreadByFieldZone:
			if len(spec.Zones) == 0 {
				return framework.Reject(noZones)
			}
		}
	}
	return framework.Verdict{}
}

// taintToleration keeps bindings off clusters whose taints they do not tolerate.
type taintToleration struct{}

func (taintToleration) Name() string { return "TaintToleration" }

// Filter passes clusters whose NoSchedule and NoExecute taints are all tolerated,
// and those that are targets already. A toleration whose seconds are over does not
// count: the binding would be evicted at once, and scheduled again, without end.
func (taintToleration) Filter(pass *framework.Pass, cluster *framework.ClusterInfo) framework.Verdict {
	if len(cluster.Taints) == 0 || pass.IsTarget(cluster) {
		return framework.Verdict{}
	}
	for i := range cluster.Taints {
		taint := &cluster.Taints[i]
		used := pass.Tolerating(&taint.Taint)
		if used == nil || over(used, cluster.Taints, pass.Now) {
			return framework.Verdict{Reason: untolerated, Detail: taint.Text}
		}
	}
	return framework.Verdict{}
}

// over reports whether the seconds of a toleration are over for one of the taints that it tolerates, as the taint
// manager counts them.
func over(t *corev1.Toleration, taints []framework.Taint, now time.Time) bool {
	if t.TolerationSeconds == nil || now.IsZero() {
		return false
	}
	return slices.ContainsFunc(taints, func(taint framework.Taint) bool {
		return taint.Effect == corev1.TaintEffectNoExecute && taint.TimeAdded != nil && framework.Tolerates(t, &taint.Taint) &&
			!now.Before(taint.TimeAdded.Add(time.Duration(*t.TolerationSeconds)*time.Second))
	})
}

// workloadAffinity draws a workload to the clusters that its group already uses.
type workloadAffinity struct{}

func (workloadAffinity) Name() string { return "WorkloadAffinity" }

// Filter passes clusters that every placed peer targets. The first of a group may
// go anywhere; targets of the binding itself stay.
func (workloadAffinity) Filter(pass *framework.Pass, cluster *framework.ClusterInfo) framework.Verdict {
	if len(pass.Peers.Affinity) == 0 || pass.IsTarget(cluster) {
		return framework.Verdict{}
	}
	for i := range pass.Peers.Affinity {
		if clusters := pass.Peers.Affinity[i].Clusters; len(clusters) > 0 && !targets(clusters, cluster) {
			return framework.Reject(notWithPeers)
		}
	}
	return framework.Verdict{}
}

// workloadAntiAffinity keeps a workload off the clusters that its group already uses.
type workloadAntiAffinity struct{}

func (workloadAntiAffinity) Name() string { return "WorkloadAntiAffinity" }

// Filter passes clusters that no peer targets; targets of the binding itself
// stay.
func (workloadAntiAffinity) Filter(pass *framework.Pass, cluster *framework.ClusterInfo) framework.Verdict {
	if len(pass.Peers.AntiAffinity) == 0 || pass.IsTarget(cluster) {
		return framework.Verdict{}
	}
	for i := range pass.Peers.AntiAffinity {
		if targets(pass.Peers.AntiAffinity[i].Clusters, cluster) {
			return framework.Reject(withPeers)
		}
	}
	return framework.Verdict{}
}

// targets reports whether a cluster is among targets.
func targets(list []workv1alpha2.TargetCluster, cluster *framework.ClusterInfo) bool {
	return slices.ContainsFunc(list, func(t workv1alpha2.TargetCluster) bool { return t.Name == cluster.Name() })
}

// Registry returns the built-in plugins; those of workload affinity only when
// that feature is on. Out-of-tree plugins are added with Register.
func Registry(withWorkloadAffinity bool) framework.Registry {
	list := []framework.Plugin{
		apiEnablement{}, clusterAffinity{}, clusterEviction{}, clusterLocality{}, spreadConstraint{}, taintToleration{},
	}
	if withWorkloadAffinity {
		list = append(list, workloadAffinity{}, workloadAntiAffinity{})
	}
	r := framework.Registry{}
	for _, p := range list {
		r[p.Name()] = func() (framework.Plugin, error) { return p, nil }
	}
	return r
}
