package core

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/match"
	"github.com/karmada-toolkit/karmada/pkg/controlplane/replicas"
)

// Rule says how a cluster came to its replicas.
type Rule uint8

// The values of Rule.
const (
	RuleNone Rule = iota
	// RuleWhole: the template goes there as it is.
	RuleWhole
	// RuleDuplicated: all replicas.
	RuleDuplicated
	// RuleStaticWeight: a share by fixed weights.
	RuleStaticWeight
	// RuleDynamicWeight: a share by available replicas.
	RuleDynamicWeight
	// RuleAggregated: a share among as few clusters as possible.
	RuleAggregated
	// RuleKept: what it had.
	RuleKept
	// RuleScaledDown: its share of what it had.
	RuleScaledDown
	// RuleEmpty: no replicas, propagated all the same.
	RuleEmpty
)

// String returns the rule in words.
func (r Rule) String() string {
	return [...]string{
		"", "whole object", "duplicated", "static weight", "dynamic weight", "aggregated", "kept", "scaled down", "no replicas",
	}[r]
}

const noRoom = "Clusters available replicas %d are not enough to schedule."

// weights is the working space of static weights.
type weights struct {
	matchers []match.Matcher
}

func (w *weights) end() { clear(w.matchers); w.matchers = w.matchers[:0] }

// assign gives the selected clusters their replicas.
func (w *work) assign() ([]workv1alpha2.TargetCluster, error) {
	if len(w.selected) == 0 {
		return nil, errors.New("no clusters available to schedule")
	}
	spec := w.pass.Spec
	if spec.Replicas <= 0 && spec.ReplicaRequirements == nil || len(spec.Components) > 1 {
		return w.whole(), nil
	}
	a := assignment{work: w, out: make([]workv1alpha2.TargetCluster, 0, len(w.selected)), tie: replicas.TieOf(string(spec.Resource.UID))}
	var err error
	if w.pass.Tiered() {
		err = a.tiers()
	} else {
		err = a.divide(w.selected, int64(spec.Replicas))
	}
	if err != nil {
		return nil, err
	}
	if w.request.EmptyWorkloadPropagation {
		for _, at := range w.selected {
			if w.records[at].rule == RuleNone {
				a.add(at, 0, RuleEmpty)
			}
		}
	}
	return a.out, nil
}

// whole sends the template as it is to every selected cluster.
func (w *work) whole() []workv1alpha2.TargetCluster {
	out := make([]workv1alpha2.TargetCluster, len(w.selected))
	var components []workv1alpha2.TargetComponent
	if w.sets && len(w.pass.Spec.Components) > 1 {
		for i := range w.pass.Spec.Components {
			c := &w.pass.Spec.Components[i]
			components = append(components, workv1alpha2.TargetComponent{Name: c.Name, Replicas: c.Replicas})
		}
	}
	for i, at := range w.selected {
		out[i] = workv1alpha2.TargetCluster{Name: w.snapshot.At(int(at)).Name(), Components: components}
		w.records[at].rule = RuleWhole
	}
	return out
}

// assignment collects targets.
type assignment struct {
	*work
	out []workv1alpha2.TargetCluster
	tie replicas.Tie
	// tier is the one being filled, if the term has several.
	tier int32
}

func (a *assignment) add(at int32, n int64, rule Rule) {
	if n <= 0 && rule != RuleEmpty {
		return
	}
	r := &a.records[at]
	r.replicas, r.rule = int32(n), rule
	a.out = append(a.out, workv1alpha2.TargetCluster{Name: a.snapshot.At(int(at)).Name(), Replicas: int32(n)})
}

// tiers fills one tier of clusters after the other.
func (a *assignment) tiers() error {
	left := int64(a.pass.Spec.Replicas)
	// Selection does not sort by tier what it exchanges or takes by region.
	byTier := slices.Clone(a.selected)
	slices.SortStableFunc(byTier, func(x, y int32) int { return cmp.Compare(a.records[x].tier, a.records[y].tier) })
	for len(byTier) > 0 {
		n := 1
		for n < len(byTier) && a.records[byTier[n]].tier == a.records[byTier[0]].tier {
			n++
		}
		var room int64
		for _, at := range byTier[:n] {
			room += a.records[at].available()
		}
		share := min(left, room)
		a.tier = a.records[byTier[0]].tier
		if err := a.divide(byTier[:n], share); err != nil {
			return err
		}
		if left -= share; left <= 0 {
			return nil
		}
		byTier = byTier[n:]
	}
	return &UnschedulableError{Message: "Clusters available replicas are not enough to schedule."}
}

// divide gives n replicas to clusters by the strategy.
func (a *assignment) divide(clusters []int32, n int64) error {
	switch a.strategy {
	case duplicated:
		for _, at := range clusters {
			a.add(at, n, RuleDuplicated)
		}
		return nil
	case staticWeight:
		a.static(clusters, n)
		return nil
	default:
		return a.dynamic(clusters, n)
	}
}

// static divides by the largest weight that the list gives each cluster.
func (a *assignment) static(clusters []int32, n int64) {
	parties := a.parties[:0]
	preference := a.pass.Spec.Placement.ReplicaScheduling.WeightPreference
	if preference != nil {
		m := a.weights.matchers[:0]
		for i := range preference.StaticWeightList {
			m = append(m, match.Compile(&preference.StaticWeightList[i].TargetCluster))
		}
		for _, at := range clusters {
			weight := int64(0)
			for i := range m {
				if w := preference.StaticWeightList[i].Weight; w > weight && m[i].Matches(a.snapshot.At(int(at)).Object) {
					weight = w
				}
			}
			if weight > 0 {
				parties = append(parties, a.party(at, weight))
			}
		}
		a.weights.matchers = m
	}
	if len(parties) == 0 {
		for _, at := range clusters {
			parties = append(parties, a.party(at, 1))
		}
	}
	a.dispense(parties, n, RuleStaticWeight)
}

func (a *assignment) party(at int32, votes int64) replicas.Party {
	return replicas.Party{Name: a.snapshot.At(int(at)).Name(), Votes: votes, ID: at}
}

func (a *assignment) dispense(parties []replicas.Party, n int64, rule Rule) {
	byID(parties)
	replicas.Dispense(n, parties, a.tie)
	for i := range parties {
		a.add(parties[i].ID, parties[i].Seats, rule)
	}
	a.parties = parties
}

// byID sorts parties by name: the IDs are places in the snapshot, which is sorted
// by name, and cheaper to compare.
func byID(parties []replicas.Party) {
	slices.SortFunc(parties, func(x, y replicas.Party) int { return cmp.Compare(x.ID, y.ID) })
}

// survives says whether a target is among the clusters being assigned.
func (a *assignment) survives(at int32) bool {
	return at >= 0 && a.records[at].selected && (!a.pass.Tiered() || a.records[at].tier == a.tier)
}

// surviving calls a function for each target that survives, in the order of the
// target list.
func (a *assignment) surviving(each func(at int32, n int64)) {
	for i, at := range a.pass.Targets() {
		if a.survives(at) {
			each(at, int64(a.pass.Spec.Clusters[i].Replicas))
		}
	}
}

// dynamic divides by the room there is: everything anew, what is missing, or,
// when there is too much, by what each target has.
func (a *assignment) dynamic(clusters []int32, n int64) error {
	var assigned int64
	a.surviving(func(_ int32, held int64) { assigned += held })
	parties := a.parties[:0]
	rule := RuleDynamicWeight
	if a.strategy == aggregated {
		rule = RuleAggregated
	}
	switch {
	case a.fresh:
		for _, at := range clusters {
			parties = append(parties, a.party(at, a.records[at].available()))
		}
		return wrap("failed to do fresh scale", a.share(parties, n, rule, false))
	case assigned < n:
		for _, at := range clusters {
			parties = append(parties, a.party(at, a.records[at].capacity))
		}
		return wrap("failed to scale up", a.share(parties, n-assigned, rule, true))
	case assigned > n:
		a.surviving(func(at int32, held int64) { parties = append(parties, a.party(at, held)) })
		return wrap("failed to scale down", a.share(parties, n, RuleScaledDown, false))
	default:
		a.surviving(func(at int32, held int64) { a.add(at, held, RuleKept) })
		return nil
	}
}

func wrap(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// share divides n replicas by the votes; with keep, targets also keep what they
// have.
func (a *assignment) share(parties []replicas.Party, n int64, rule Rule, keep bool) error {
	a.parties = parties
	var votes int64
	for i := range parties {
		votes += parties[i].Votes
	}
	if votes < n {
		return &UnschedulableError{Message: fmt.Sprintf(noRoom, votes)}
	}
	if a.strategy == aggregated {
		parties = a.fewest(parties, n, keep)
	}
	if !keep {
		a.dispense(parties, n, rule)
		return nil
	}
	byID(parties)
	replicas.Dispense(n, parties, a.tie)
	for i := range parties {
		at := parties[i].ID
		a.add(at, parties[i].Seats+int64(a.records[at].held), rule)
	}
	a.keepOthers()
	return nil
}

// keepOthers adds the targets that got nothing new, by name.
func (a *assignment) keepOthers() {
	first := len(a.out)
	for _, at := range a.pass.Targets() {
		if a.survives(at) && a.records[at].rule == RuleNone {
			a.add(at, int64(a.records[at].held), RuleKept)
		}
	}
	slices.SortFunc(a.out[first:], func(x, y workv1alpha2.TargetCluster) int { return cmp.Compare(x.Name, y.Name) })
}

// fewest sorts the parties by votes, those that hold replicas first when what
// they have is kept, and cuts them to as few as have n votes.
func (a *assignment) fewest(parties []replicas.Party, n int64, keep bool) []replicas.Party {
	slices.SortStableFunc(parties, func(x, y replicas.Party) int {
		if keep {
			if xh, yh := a.records[x.ID].held > 0, a.records[y.ID].held > 0; xh != yh {
				if xh {
					return -1
				}
				return 1
			}
		}
		return cmp.Compare(y.Votes, x.Votes)
	})
	var votes int64
	for i := range parties {
		if votes += parties[i].Votes; votes >= n {
			return parties[:i+1]
		}
	}
	return parties
}
