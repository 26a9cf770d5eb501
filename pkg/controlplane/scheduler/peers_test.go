package scheduler

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

func TestPeers_ShareAGroupAndANamespace(t *testing.T) {
	b := newBench(t)
	b.peers.enabled = true
	add := func(namespace, name, affinity, anti string) workv1alpha2.Binding {
		obj := fill(&workv1alpha2.ResourceBinding{}, scope.NamespacedBinding(), dividedPlacement())
		obj.SetNamespace(namespace)
		obj.SetName(name)
		obj.GetSpec().WorkloadAffinityGroups = &workv1alpha2.WorkloadAffinityGroups{AffinityGroup: affinity, AntiAffinityGroup: anti}
		b.bindings.observe(scope.NamespacedBinding(), obj)
		return obj
	}
	mine := add("ns", "mine", "app=web", "tier=db")
	add("ns", "z-friend", "app=web", "")
	add("ns", "a-friend", "app=web", "")
	add("ns", "rival", "", "tier=db")
	add("ns", "stranger", "app=other", "tier=other")
	add("elsewhere", "friend", "app=web", "tier=db")
	peers := b.peers.of(mine)
	var friends, rivals []string
	for _, p := range peers.Affinity {
		friends = append(friends, p.Name)
	}
	for _, p := range peers.AntiAffinity {
		rivals = append(rivals, p.Name)
	}
	if diff := cmp.Diff([]string{"a-friend", "z-friend"}, friends); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"rival"}, rivals); diff != "" {
		t.Error(diff)
	}
	b.peers.enabled = false
	if p := b.peers.of(mine); len(p.Affinity)+len(p.AntiAffinity) > 0 {
		t.Error("the gate is off")
	}
}
