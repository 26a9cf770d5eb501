package core

import (
	"cmp"
	"fmt"
	"slices"

	workv1alpha2 "github.com/karmada-toolkit/karmada/pkg/apis/work/v1alpha2"
	"github.com/karmada-toolkit/karmada/pkg/domain/match"
	"github.com/karmada-toolkit/karmada/pkg/domain/replicas"
)

// Rule is how a cluster came to its replicas.
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

// division divides replicas among the selected clusters of a scheduling cycle.
type division struct {
	cycle    *cycle
	strategy strategy
	// fresh divides everything anew, whatever the targets have.
	fresh bool
	tie   replicas.Tie

	targets  targets
	parties  []replicas.Party
	matchers []match.Matcher
}

func (d *division) begin(strategy strategy, fresh bool, spec *workv1alpha2.ResourceBindingSpec) {
	d.strategy, d.fresh, d.tie = strategy, fresh, replicas.TieOf(string(spec.Resource.UID))
}

func (d *division) end() {
	d.targets = targets{}
	clear(d.parties[:cap(d.parties)])
	clear(d.matchers)
	d.matchers = d.matchers[:0]
}

// assign gives the selected clusters their replicas; with empty, those that get
// none become targets too.
func (d *division) assign(selected []int32, empty bool) ([]workv1alpha2.TargetCluster, error) {
	d.targets = targets{cycle: d.cycle, list: make([]workv1alpha2.TargetCluster, 0, len(selected))}
	var err error
	if d.cycle.pass.Tiered() {
		err = d.tiers(selected)
	} else {
		err = d.divide(selected, int64(d.cycle.pass.Spec.Replicas))
	}
	if err != nil {
		return nil, err
	}
	if empty {
		for _, at := range selected {
			if d.cycle.records[at].rule == RuleNone {
				d.targets.add(at, 0, RuleEmpty)
			}
		}
	}
	return d.targets.list, nil
}

// tiers fills one tier of clusters after the other.
func (d *division) tiers(selected []int32) error {
	left := int64(d.cycle.pass.Spec.Replicas)
	// Selection does not sort by tier what it exchanges or takes by region.
	byTier := slices.Clone(selected)
	slices.SortStableFunc(byTier, func(x, y int32) int { return cmp.Compare(d.cycle.records[x].tier, d.cycle.records[y].tier) })
	for len(byTier) > 0 {
		n := 1
		for n < len(byTier) && d.cycle.records[byTier[n]].tier == d.cycle.records[byTier[0]].tier {
			n++
		}
		var room int64
		for _, at := range byTier[:n] {
			room += d.cycle.records[at].available()
		}
		share := min(left, room)
		d.targets.tier = d.cycle.records[byTier[0]].tier
		if err := d.divide(byTier[:n], share); err != nil {
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
func (d *division) divide(clusters []int32, n int64) error {
	switch d.strategy {
	case duplicated:
		for _, at := range clusters {
			d.targets.add(at, n, RuleDuplicated)
		}
		return nil
	case staticWeight:
		return d.static(clusters, n)
	default:
		return d.dynamic(clusters, n)
	}
}

// static divides by the largest weight that the list gives each cluster.
func (d *division) static(clusters []int32, n int64) error {
	parties := d.parties[:0]
	preference := d.cycle.pass.Spec.Placement.ReplicaScheduling.WeightPreference
	if preference != nil {
		m := d.matchers[:0]
		for i := range preference.StaticWeightList {
			m = append(m, match.Compile(&preference.StaticWeightList[i].TargetCluster))
		}
		for _, at := range clusters {
			weight := int64(0)
			for i := range m {
				if w := preference.StaticWeightList[i].Weight; w > weight && m[i].Matches(d.cycle.snapshot.At(int(at)).Object) {
					weight = w
				}
			}
			if weight > 0 {
				parties = append(parties, d.party(at, weight))
			}
		}
		d.matchers = m
	}
	if len(parties) == 0 {
		for _, at := range clusters {
			parties = append(parties, d.party(at, 1))
		}
	}
	parties, n = d.limit(parties, n)
	if len(parties) == 0 && n > 0 {
		return &UnschedulableError{Message: fmt.Sprintf(noRoom, 0)}
	}
	d.dispense(parties, n, RuleStaticWeight)
	return nil
}

// limit takes the clusters that get no more replicas, but would by weight, out of a division. It returns the others with
// what is left for them.
func (d *division) limit(parties []replicas.Party, n int64) ([]replicas.Party, int64) {
	full := func(p replicas.Party) bool { return d.cycle.records[p.ID].full }
	more := func(p replicas.Party) bool { return full(p) && p.Seats > int64(d.cycle.records[p.ID].held) }
	for slices.ContainsFunc(parties, full) {
		byID(parties)
		replicas.Dispense(n, parties, d.tie)
		i := slices.IndexFunc(parties, more)
		if i < 0 {
			break
		}
		at := parties[i].ID
		held := int64(d.cycle.records[at].held)
		d.targets.add(at, held, RuleKept)
		n -= held
		parties = slices.Delete(parties, i, i+1)
	}
	return parties, n
}

func (d *division) party(at int32, votes int64) replicas.Party {
	return replicas.Party{Name: d.cycle.snapshot.At(int(at)).Name(), Votes: votes, ID: at}
}

func (d *division) dispense(parties []replicas.Party, n int64, rule Rule) {
	byID(parties)
	replicas.Dispense(n, parties, d.tie)
	for i := range parties {
		d.targets.add(parties[i].ID, parties[i].Seats, rule)
	}
	d.parties = parties
}

// byID sorts parties by name: the IDs are places in the snapshot, which is sorted
// by name, and cheaper to compare.
func byID(parties []replicas.Party) {
	slices.SortFunc(parties, func(x, y replicas.Party) int { return cmp.Compare(x.ID, y.ID) })
}

// dynamic divides by the room there is: everything anew, what is missing, or,
// when there is too much, by what each target has.
func (d *division) dynamic(clusters []int32, n int64) error {
	var assigned int64
	d.targets.surviving(func(_ int32, held int64) { assigned += held })
	parties := d.parties[:0]
	rule := RuleDynamicWeight
	if d.strategy == aggregated {
		rule = RuleAggregated
	}
	switch {
	case d.fresh:
		for _, at := range clusters {
			parties = append(parties, d.party(at, d.cycle.records[at].available()))
		}
		return wrap("failed to do fresh scale", d.share(parties, n, rule, false))
	case assigned < n:
		for _, at := range clusters {
			parties = append(parties, d.party(at, d.cycle.records[at].capacity))
		}
		return wrap("failed to scale up", d.share(parties, n-assigned, rule, true))
	case assigned > n:
		d.targets.surviving(func(at int32, held int64) { parties = append(parties, d.party(at, held)) })
		return wrap("failed to scale down", d.share(parties, n, RuleScaledDown, false))
	default:
		d.targets.surviving(func(at int32, held int64) { d.targets.add(at, held, RuleKept) })
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
func (d *division) share(parties []replicas.Party, n int64, rule Rule, keep bool) error {
	d.parties = parties
	var votes int64
	for i := range parties {
		votes += parties[i].Votes
	}
	if votes < n {
		return &UnschedulableError{Message: fmt.Sprintf(noRoom, votes)}
	}
	if d.strategy == aggregated {
		parties = d.fewest(parties, n, keep)
	}
	if !keep {
		d.dispense(parties, n, rule)
		return nil
	}
	byID(parties)
	replicas.Dispense(n, parties, d.tie)
	for i := range parties {
		at := parties[i].ID
		d.targets.add(at, parties[i].Seats+int64(d.cycle.records[at].held), rule)
	}
	d.targets.keepOthers()
	return nil
}

// fewest sorts the parties by votes, those that hold replicas first when what
// they have is kept, and cuts them to as few as have n votes.
func (d *division) fewest(parties []replicas.Party, n int64, keep bool) []replicas.Party {
	slices.SortStableFunc(parties, func(x, y replicas.Party) int {
		if keep {
			if xh, yh := d.cycle.records[x.ID].held > 0, d.cycle.records[y.ID].held > 0; xh != yh {
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

// targets collects the targets of a division.
type targets struct {
	cycle *cycle
	// tier is the one being filled, if the term has several.
	tier int32
	list []workv1alpha2.TargetCluster
}

func (t *targets) add(at int32, n int64, rule Rule) {
	if n <= 0 && rule != RuleEmpty {
		return
	}
	r := &t.cycle.records[at]
	r.replicas, r.rule = int32(n), rule
	t.list = append(t.list, workv1alpha2.TargetCluster{Name: t.cycle.snapshot.At(int(at)).Name(), Replicas: int32(n)})
}

// survives reports whether a target is among the clusters being assigned.
func (t *targets) survives(at int32) bool {
	return at >= 0 && t.cycle.records[at].selected && (!t.cycle.pass.Tiered() || t.cycle.records[at].tier == t.tier)
}

// surviving calls a function for each target that survives, in the order of the
// target list.
func (t *targets) surviving(each func(at int32, n int64)) {
	for i, at := range t.cycle.pass.Targets() {
		if t.survives(at) {
			each(at, int64(t.cycle.pass.Spec.Clusters[i].Replicas))
		}
	}
}

// keepOthers adds the targets that got nothing new, by name.
func (t *targets) keepOthers() {
	first := len(t.list)
	for _, at := range t.cycle.pass.Targets() {
		if t.survives(at) && t.cycle.records[at].rule == RuleNone {
			t.add(at, int64(t.cycle.records[at].held), RuleKept)
		}
	}
	slices.SortFunc(t.list[first:], func(x, y workv1alpha2.TargetCluster) int { return cmp.Compare(x.Name, y.Name) })
}
