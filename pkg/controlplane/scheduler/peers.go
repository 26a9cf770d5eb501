package scheduler

import (
	"cmp"
	"slices"

	"k8s.io/utils/keymutex"

	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/schedule/framework"
)

// grouped reports whether a binding belongs to a group of workloads.
func grouped(b workv1alpha2.Binding) bool {
	g := b.GetSpec().WorkloadAffinityGroups
	return b.GetNamespace() != "" && g != nil && (g.AffinityGroup != "" || g.AntiAffinityGroup != "")
}

// peers finds the bindings that a decision depends on, and serializes such
// decisions.
type peers struct {
	enabled  bool
	bindings *bindings
	// groups are the locks of the namespaces.
	groups keymutex.KeyMutex
}

// lock waits for the other decisions about groups of the namespace, if the binding
// belongs to a group. The caller must call unlock when the decision is written.
func (p *peers) lock(b workv1alpha2.Binding) (unlock func()) {
	if !p.enabled || !grouped(b) {
		return func() {}
	}
	p.groups.LockKey(b.GetNamespace())
	return func() { _ = p.groups.UnlockKey(b.GetNamespace()) }
}

// of returns the other bindings of the namespace that share a group with the
// binding, sorted by name.
func (p *peers) of(b workv1alpha2.Binding) framework.Peers {
	var peers framework.Peers
	if !p.enabled || !grouped(b) {
		return peers
	}
	groups := b.GetSpec().WorkloadAffinityGroups
	for _, other := range p.bindings.matching(func(other known) bool {
		return other.GetNamespace() == b.GetNamespace() && other.GetName() != b.GetName() && other.GetSpec().WorkloadAffinityGroups != nil
	}) {
		g := other.GetSpec().WorkloadAffinityGroups
		peer := framework.Peer{Namespace: other.GetNamespace(), Name: other.GetName(), Clusters: other.GetSpec().Clusters}
		if groups.AffinityGroup != "" && g.AffinityGroup == groups.AffinityGroup {
			peers.Affinity = append(peers.Affinity, peer)
		}
		if groups.AntiAffinityGroup != "" && g.AntiAffinityGroup == groups.AntiAffinityGroup {
			peers.AntiAffinity = append(peers.AntiAffinity, peer)
		}
	}
	byName := func(x, y framework.Peer) int { return cmp.Compare(x.Name, y.Name) }
	slices.SortFunc(peers.Affinity, byName)
	slices.SortFunc(peers.AntiAffinity, byName)
	return peers
}
