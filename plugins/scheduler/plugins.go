// Package scheduler has the scheduler plugins that are built in.
package scheduler

import (
	"fmt"
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

// Detail names the kind.
func (apiEnablement) Detail(pass *framework.Pass, cluster *framework.ClusterInfo) string {
	if !cluster.APIsCollected() {
		return "its APIs are not collected yet"
	}
	return fmt.Sprintf("does not serve %s %s", pass.Spec.Resource.APIVersion, pass.Spec.Resource.Kind)
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

// Detail names the part of the affinity that does not select the cluster.
func (clusterAffinity) Detail(pass *framework.Pass, cluster *framework.ClusterInfo) string {
	detail := pass.Mismatch(cluster)
	if pass.Term != nil {
		detail = fmt.Sprintf("term %s: %s", pass.Term.AffinityName, detail)
	}
	if pass.Tiered() {
		detail += ", nor selected by overflowAffinities"
	}
	return detail
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

// Detail is the reason of the eviction.
func (clusterEviction) Detail(pass *framework.Pass, cluster *framework.ClusterInfo) string {
	for i := range pass.Spec.GracefulEvictionTasks {
		if task := &pass.Spec.GracefulEvictionTasks[i]; task.FromCluster == cluster.Name() {
			return "being evicted: " + task.Reason
		}
	}
	return ""
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

// Detail names the property.
func (s spreadConstraint) Detail(pass *framework.Pass, cluster *framework.ClusterInfo) string {
	verdict := s.Filter(pass, cluster)
	return map[string]string{noProvider: "has no provider", noRegion: "has no region", noZones: "has no zones"}[verdict.Reason]
}

// taintToleration keeps bindings off clusters whose taints they do not tolerate.
type taintToleration struct{}

func (taintToleration) Name() string { return "TaintToleration" }

// Filter passes clusters whose NoSchedule and NoExecute taints are all tolerated,
// and those that are targets already.
func (taintToleration) Filter(pass *framework.Pass, cluster *framework.ClusterInfo) framework.Verdict {
	if len(cluster.Taints) == 0 || pass.IsTarget(cluster) {
		return framework.Verdict{}
	}
	if taint, _ := firstUntolerated(pass, cluster); taint != nil {
		return framework.Verdict{Reason: untolerated, Detail: taint.Text}
	}
	return framework.Verdict{}
}

// Detail names the first taint that counts.
func (taintToleration) Detail(pass *framework.Pass, cluster *framework.ClusterInfo) string {
	taint, expired := firstUntolerated(pass, cluster)
	switch {
	case taint == nil:
		return ""
	case expired != nil:
		return fmt.Sprintf("taint %s is tolerated for %ds only", taint.ToString(), *expired.TolerationSeconds)
	default:
		return fmt.Sprintf("taint %s is not tolerated", taint.ToString())
	}
}

// firstUntolerated returns the first taint that is not tolerated, or that a toleration tolerates whose seconds are over. Such a
// toleration does not count: the binding would be evicted at once, and scheduled again, without end.
func firstUntolerated(pass *framework.Pass, cluster *framework.ClusterInfo) (*framework.Taint, *corev1.Toleration) {
	for i := range cluster.Taints {
		taint := &cluster.Taints[i]
		used := pass.Tolerating(&taint.Taint)
		if used == nil || over(used, cluster.Taints, pass.Now) {
			return taint, used
		}
	}
	return nil, nil
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
	if len(pass.Peers.Affinity) == 0 || pass.IsTarget(cluster) || peerElsewhere(pass, cluster) < 0 {
		return framework.Verdict{}
	}
	return framework.Reject(notWithPeers)
}

// Detail names the first peer that does not target the cluster.
func (workloadAffinity) Detail(pass *framework.Pass, cluster *framework.ClusterInfo) string {
	if i := peerElsewhere(pass, cluster); i >= 0 {
		return fmt.Sprintf("not a target of binding %s", pass.Peers.Affinity[i].Name)
	}
	return ""
}

func peerElsewhere(pass *framework.Pass, cluster *framework.ClusterInfo) int {
	return slices.IndexFunc(pass.Peers.Affinity, func(p framework.Peer) bool { return len(p.Clusters) > 0 && !targets(p.Clusters, cluster) })
}

// workloadAntiAffinity keeps a workload off the clusters that its group already uses.
type workloadAntiAffinity struct{}

func (workloadAntiAffinity) Name() string { return "WorkloadAntiAffinity" }

// Filter passes clusters that no peer targets; targets of the binding itself
// stay.
func (workloadAntiAffinity) Filter(pass *framework.Pass, cluster *framework.ClusterInfo) framework.Verdict {
	if len(pass.Peers.AntiAffinity) == 0 || pass.IsTarget(cluster) || peerHere(pass, cluster) < 0 {
		return framework.Verdict{}
	}
	return framework.Reject(withPeers)
}

// Detail names the first peer that targets the cluster.
func (workloadAntiAffinity) Detail(pass *framework.Pass, cluster *framework.ClusterInfo) string {
	if i := peerHere(pass, cluster); i >= 0 {
		return fmt.Sprintf("a target of binding %s", pass.Peers.AntiAffinity[i].Name)
	}
	return ""
}

func peerHere(pass *framework.Pass, cluster *framework.ClusterInfo) int {
	return slices.IndexFunc(pass.Peers.AntiAffinity, func(p framework.Peer) bool { return targets(p.Clusters, cluster) })
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
