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

// selection picks the candidates of a scheduling cycle that the spread constraints allow.
type selection struct {
	cycle    *cycle
	strategy strategy
	// wanted is how many replicas, or sets of components, the clusters must have
	// room for.
	wanted int64
	// ample is set if clusters are taken whatever their room.
	ample    bool
	selected []int32
	regions  regions
}

func (s *selection) begin(strategy strategy, room *room) {
	s.strategy, s.wanted, s.ample = strategy, room.wanted(), strategy == duplicated && !room.sets
}

// choose sets the selected clusters, as the spread constraints have it.
func (s *selection) choose() error {
	placement := s.cycle.pass.Spec.Placement
	s.selected = s.selected[:0]
	var err error
	byRegion := constraint(placement, policyv1alpha1.SpreadByFieldRegion)
	byCluster := constraint(placement, policyv1alpha1.SpreadByFieldCluster)
	switch {
	case len(placement.SpreadConstraints) == 0 || placement.IgnoresSpread():
		for i := range s.cycle.candidates {
			s.selected = append(s.selected, s.cycle.candidates[i].at)
		}
	case byRegion != nil:
		err = s.byRegion(byRegion, byCluster)
	case byCluster != nil:
		err = s.byCluster(byCluster)
	default:
		err = &SpreadError{Message: "just support cluster and region spread constraint"}
	}
	for _, at := range s.selected {
		s.cycle.records[at].selected = true
	}
	return err
}

// byCluster takes the best clusters and, where replicas are divided or components
// go together, exchanges the last ones for roomier ones until all fit.
func (s *selection) byCluster(c *policyv1alpha1.SpreadConstraint) error {
	if len(s.cycle.candidates) < c.MinGroups {
		return &SpreadError{Message: "the number of feasible clusters is less than spreadConstraint.MinGroups"}
	}
	n := max(0, min(len(s.cycle.candidates), c.MaxGroups))
	if !s.ample && !s.makeRoom(n) {
		return &SpreadError{Message: fmt.Sprintf("no enough resource when selecting %d clusters", n), Capacity: true}
	}
	for i := range n {
		s.selected = append(s.selected, s.cycle.candidates[i].at)
	}
	return nil
}

// makeRoom exchanges candidates until the first n have room for all replicas, and
// reports whether they do.
func (s *selection) makeRoom(n int) bool {
	room := int64(0)
	for i := range n {
		room += s.cycle.candidates[i].available
	}
	rest := s.cycle.candidates[n:]
	for i := n - 1; i >= 0 && room < s.wanted; i-- {
		best := -1
		most := s.cycle.candidates[i].available
		for j := range rest {
			if rest[j].available > most {
				best, most = j, rest[j].available
			}
		}
		if best >= 0 {
			room += most - s.cycle.candidates[i].available
			s.cycle.candidates[i], rest[best] = rest[best], s.cycle.candidates[i]
		}
	}
	return room >= s.wanted
}

// byRegion picks regions, then clusters in them.
func (s *selection) byRegion(byRegion, byCluster *policyv1alpha1.SpreadConstraint) error {
	if byCluster == nil {
		byCluster = &policyv1alpha1.SpreadConstraint{}
	}
	g := &s.regions
	g.group(s.cycle.candidates, s.cycle.snapshot)
	if len(g.items) < byRegion.MinGroups {
		return &SpreadError{Message: "the number of feasible region is less than spreadConstraint.MinGroups"}
	}
	for i := range g.items {
		members := g.members(i)
		if s.strategy == duplicated {
			g.items[i].weight = s.duplicatedWeight(members)
		} else {
			g.items[i].weight = s.dividedWeight(members, byRegion.MinGroups, byCluster.MinGroups)
		}
	}
	chosen := g.choose(byCluster.MinGroups, byRegion.MinGroups, byRegion.MaxGroups)
	if len(chosen) == 0 {
		return &SpreadError{Message: "the number of clusters is less than the cluster spreadConstraint.MinGroups"}
	}
	for _, item := range chosen {
		g.chosen[g.items[item].id] = true
		s.selected = append(s.selected, s.cycle.candidates[g.members(item)[0]].at)
	}
	// The first member of a region is the first candidate of it.
	for i := 0; i < len(s.cycle.candidates) && len(s.selected) < byCluster.MaxGroups; i++ {
		if g.chosen[g.of[i]] && int(g.firstOf[g.of[i]]) != i {
			s.selected = append(s.selected, s.cycle.candidates[i].at)
		}
	}
	return nil
}

// duplicatedWeight counts the members with room for all replicas.
func (s *selection) duplicatedWeight(members []int32) int64 {
	var count, scores int64
	for _, m := range members {
		if c := &s.cycle.candidates[m]; c.available >= int64(s.cycle.pass.Spec.Replicas) {
			count++
			scores += s.cycle.records[c.at].score
		}
	}
	if count == 0 {
		return 0
	}
	return count*1000 + scores/count
}

// dividedWeight measures how much of its share of the replicas the region takes.
func (s *selection) dividedWeight(members []int32, minRegions, minClusters int) int64 {
	least := int64(max(minRegions, 1))
	share := (int64(s.cycle.pass.Spec.Replicas) + least - 1) / least
	enough := int64(max(minClusters, minRegions))
	var count, room, scores int64
	for _, m := range members {
		c := &s.cycle.candidates[m]
		count++
		room += c.available
		scores += s.cycle.records[c.at].score
		if count >= enough && room >= share {
			break
		}
	}
	if room < share {
		return room*1000 + scores/int64(len(members))
	}
	return share*1000 + scores/count
}
