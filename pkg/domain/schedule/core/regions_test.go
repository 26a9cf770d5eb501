package core

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// chooseByWalking is the definition: walk over the subsets, sort what was met,
// pick.
func chooseByWalking(items []region, least, low, high int) []string {
	items = slices.Clone(items)
	slices.SortFunc(items, func(a, b region) int {
		return cmp.Or(cmp.Compare(a.value, b.value), cmp.Compare(b.weight, a.weight), cmp.Compare(a.name, b.name))
	})
	type set struct {
		id            int
		weight, value int64
		names         []string
	}
	var met []set
	var walk func(from int, members []region, value int64)
	walk = func(from int, members []region, value int64) {
		if len(members) > 0 && value >= int64(least) && low <= len(members) && len(members) <= high {
			s := set{id: len(met), value: value}
			members = slices.SortedFunc(slices.Values(members), func(a, b region) int {
				return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(a.name, b.name))
			})
			for _, m := range members {
				s.weight += m.weight
				s.names = append(s.names, m.name)
			}
			met = append(met, s)
			return
		}
		if len(members) >= high {
			return
		}
		for i := from; i < len(items); i++ {
			walk(i+1, append(slices.Clone(members), items[i]), value+items[i].value)
		}
	}
	walk(0, nil, 0)
	if len(met) == 0 {
		return nil
	}
	slices.SortFunc(met, func(a, b set) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(b.value, a.value), cmp.Compare(a.id, b.id))
	})
	best := met[0].names
	for _, s := range met[1:] {
		if len(s.names) < len(best) && slices.Equal(s.names, best[:len(s.names)]) {
			best = s.names
		}
	}
	return best
}

func chosenNames(items []region, least, low, high int) []string {
	g := regions{items: slices.Clone(items)}
	var out []string
	for _, item := range g.choose(least, low, high) {
		out = append(out, g.items[item].name)
	}
	return out
}

func TestRegions_Choose(t *testing.T) {
	abc := []region{{name: "A", value: 3, weight: 100}, {name: "B", value: 1, weight: 90}, {name: "C", value: 1, weight: 80}}
	for _, tc := range []struct {
		name             string
		least, low, high int
		want             []string
	}{
		{"a prefix of the best wins", 4, 2, 3, []string{"A", "B"}},
		{"all regions when that is the least", 1, 3, 3, []string{"A", "B", "C"}},
		{"a limit of 0 finds nothing", 1, 1, 0, nil},
		{"too few members", 6, 1, 3, nil},
		{"one suffices", 1, 1, 1, []string{"A"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := gocmp.Diff(tc.want, chosenNames(abc, tc.least, tc.low, tc.high)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRegions_EqualsWalkingAllSubsets(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 20000 {
		items := make([]region, 1+r.IntN(8))
		weights := int64(1 + r.IntN(30))
		for i := range items {
			items[i] = region{name: fmt.Sprintf("r%d", i), value: 1 + r.Int64N(4), weight: r.Int64N(weights)}
		}
		least, low, high := r.IntN(12), r.IntN(5), r.IntN(9)
		want := chooseByWalking(items, least, low, high)
		if diff := gocmp.Diff(want, chosenNames(items, least, low, high)); diff != "" {
			t.Fatalf("items %v, least %d members in %d..%d regions: %s", items, least, low, high, diff)
		}
	}
}

func BenchmarkRegions_Sixty(b *testing.B) {
	r := rand.New(rand.NewPCG(7, 8))
	items := make([]region, 60)
	for i := range items {
		items[i] = region{name: fmt.Sprintf("r%02d", i), value: 1 + r.Int64N(20), weight: r.Int64N(1000)}
	}
	g := regions{}
	for b.Loop() {
		g.items = append(g.items[:0], items...)
		g.choose(100, 5, 40)
	}
}
