package core

import (
	"fmt"

	policyv1alpha1 "github.com/karmada-toolkit/karmada/pkg/apis/policy/v1alpha1"
)

// strategy is how replicas are given out.
type strategy uint8

const (
	duplicated strategy = iota
	staticWeight
	dynamicWeight
	aggregated
)

// strategyOf reads the strategy.
func strategyOf(s *policyv1alpha1.ReplicaSchedulingStrategy) strategy {
	switch {
	case s == nil || s.ReplicaSchedulingType != policyv1alpha1.ReplicaSchedulingTypeDivided:
		return duplicated
	case s.ReplicaDivisionPreference == policyv1alpha1.ReplicaDivisionPreferenceAggregated:
		return aggregated
	case s.WeightPreference != nil && s.WeightPreference.DynamicWeight != "":
		return dynamicWeight
	default:
		return staticWeight
	}
}

// choose sets the selected clusters, as the spread constraints have it.
func (w *work) choose() error {
	placement := w.pass.Spec.Placement
	w.selected = w.selected[:0]
	var err error
	byRegion := constraint(placement, policyv1alpha1.SpreadByFieldRegion)
	byCluster := constraint(placement, policyv1alpha1.SpreadByFieldCluster)
	switch {
	case len(placement.SpreadConstraints) == 0 || ignoresSpread(placement.ReplicaScheduling):
		for i := range w.candidates {
			w.selected = append(w.selected, w.candidates[i].at)
		}
	case byRegion != nil:
		err = w.byRegion(byRegion, byCluster)
	case byCluster != nil:
		err = w.byCluster(byCluster)
	default:
		err = &SpreadError{Message: "just support cluster and region spread constraint"}
	}
	for _, at := range w.selected {
		w.records[at].selected = true
	}
	return err
}

// ignoresSpread says whether the strategy is a static weight, which takes every
// feasible cluster.
func ignoresSpread(s *policyv1alpha1.ReplicaSchedulingStrategy) bool {
	if s == nil || s.ReplicaSchedulingType != policyv1alpha1.ReplicaSchedulingTypeDivided ||
		s.ReplicaDivisionPreference == policyv1alpha1.ReplicaDivisionPreferenceAggregated {
		return false
	}
	return s.WeightPreference == nil || len(s.WeightPreference.StaticWeightList) > 0 && s.WeightPreference.DynamicWeight == ""
}

// byCluster takes the best clusters and, where replicas are divided, exchanges
// the last ones for roomier ones until the replicas fit.
func (w *work) byCluster(c *policyv1alpha1.SpreadConstraint) error {
	if len(w.candidates) < c.MinGroups {
		return &SpreadError{Message: "the number of feasible clusters is less than spreadConstraint.MinGroups"}
	}
	n := max(0, min(len(w.candidates), c.MaxGroups))
	if w.strategy != duplicated {
		if !w.makeRoom(n) {
			return &SpreadError{Message: fmt.Sprintf("no enough resource when selecting %d clusters", n), Capacity: true}
		}
	}
	for i := range n {
		w.selected = append(w.selected, w.candidates[i].at)
	}
	return nil
}

// makeRoom exchanges candidates until the first n have room for all replicas, and
// reports whether they do.
func (w *work) makeRoom(n int) bool {
	need := int64(w.pass.Spec.Replicas)
	if w.sets {
		need = 1
	}
	room := int64(0)
	for i := range n {
		room += w.candidates[i].available
	}
	rest := w.candidates[n:]
	for i := n - 1; i >= 0 && room < need; i-- {
		best := -1
		most := w.candidates[i].available
		for j := range rest {
			if rest[j].available > most {
				best, most = j, rest[j].available
			}
		}
		if best >= 0 {
			room += most - w.candidates[i].available
			w.candidates[i], rest[best] = rest[best], w.candidates[i]
		}
	}
	return room >= need
}

// byRegion picks regions, then clusters in them.
func (w *work) byRegion(byRegion, byCluster *policyv1alpha1.SpreadConstraint) error {
	if byCluster == nil {
		byCluster = &policyv1alpha1.SpreadConstraint{}
	}
	g := &w.regions
	g.group(w.candidates, w.snapshot)
	if len(g.items) < byRegion.MinGroups {
		return &SpreadError{Message: "the number of feasible region is less than spreadConstraint.MinGroups"}
	}
	for i := range g.items {
		members := g.members(i)
		if w.strategy == duplicated {
			g.items[i].weight = w.duplicatedWeight(members)
		} else {
			g.items[i].weight = w.dividedWeight(members, byRegion.MinGroups, byCluster.MinGroups)
		}
	}
	chosen := g.choose(byCluster.MinGroups, byRegion.MinGroups, byRegion.MaxGroups)
	if len(chosen) == 0 {
		return &SpreadError{Message: "the number of clusters is less than the cluster spreadConstraint.MinGroups"}
	}
	for _, item := range chosen {
		g.chosen[g.items[item].id] = true
		w.selected = append(w.selected, w.candidates[g.members(item)[0]].at)
	}
	// The first member of a region is the first candidate of it.
	for i := 0; i < len(w.candidates) && len(w.selected) < byCluster.MaxGroups; i++ {
		if g.chosen[g.of[i]] && int(g.firstOf[g.of[i]]) != i {
			w.selected = append(w.selected, w.candidates[i].at)
		}
	}
	return nil
}

// duplicatedWeight counts the members with room for all replicas.
func (w *work) duplicatedWeight(members []int32) int64 {
	var count, scores int64
	for _, m := range members {
		if c := &w.candidates[m]; c.available >= int64(w.pass.Spec.Replicas) {
			count++
			scores += w.records[c.at].score
		}
	}
	if count == 0 {
		return 0
	}
	return count*1000 + scores/count
}

// dividedWeight measures how much of its share of the replicas the region takes.
func (w *work) dividedWeight(members []int32, minRegions, minClusters int) int64 {
	least := int64(max(minRegions, 1))
	share := (int64(w.pass.Spec.Replicas) + least - 1) / least
	enough := int64(max(minClusters, minRegions))
	var count, room, scores int64
	for _, m := range members {
		c := &w.candidates[m]
		count++
		room += c.available
		scores += w.records[c.at].score
		if count >= enough && room >= share {
			break
		}
	}
	if room < share {
		return room*1000 + scores/int64(len(members))
	}
	return share*1000 + scores/count
}
