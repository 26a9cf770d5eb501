package scheduler

import (
	"cmp"
	"slices"

	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/scheduler/framework"
)

// grouped says whether a binding belongs to a group of workloads.
func grouped(b workv1alpha2.Binding) bool {
	g := b.GetSpec().WorkloadAffinityGroups
	return b.GetNamespace() != "" && g != nil && (g.AffinityGroup != "" || g.AntiAffinityGroup != "")
}

// peersOf returns the other bindings of the namespace that share a group with the
// binding, sorted by name.
func (s *scheduler) peersOf(b workv1alpha2.Binding) framework.Peers {
	var peers framework.Peers
	if !s.workloadAffinity || !grouped(b) {
		return peers
	}
	groups := b.GetSpec().WorkloadAffinityGroups
	s.bindings.each(func(k key, other known) {
		if k.Namespace != b.GetNamespace() || k.Name == b.GetName() || other.GetSpec().WorkloadAffinityGroups == nil {
			return
		}
		g := other.GetSpec().WorkloadAffinityGroups
		peer := framework.Peer{Namespace: k.Namespace, Name: k.Name, Clusters: other.GetSpec().Clusters}
		if groups.AffinityGroup != "" && g.AffinityGroup == groups.AffinityGroup {
			peers.Affinity = append(peers.Affinity, peer)
		}
		if groups.AntiAffinityGroup != "" && g.AntiAffinityGroup == groups.AntiAffinityGroup {
			peers.AntiAffinity = append(peers.AntiAffinity, peer)
		}
	})
	byName := func(x, y framework.Peer) int { return cmp.Compare(x.Name, y.Name) }
	slices.SortFunc(peers.Affinity, byName)
	slices.SortFunc(peers.AntiAffinity, byName)
	return peers
}
