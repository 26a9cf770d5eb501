package core

import (
	"cmp"
	"slices"

	"github.com/karmada-toolkit/karmada/pkg/domain/schedule/framework"
)

// regions groups candidates by region and picks the best set of regions. It is
// working space, to be reused.
type regions struct {
	byName map[string]int32
	items  []region
	// of is the group of each candidate, firstOf the first candidate and start the
	// place in list of each group.
	of, firstOf, start, list []int32
	chosen                   []bool
	search                   search
}

// region is a group: value counts its members, weight ranks it.
type region struct {
	name   string
	id     int32
	value  int64
	weight int64
}

func (g *regions) end() {
	clear(g.byName)
	clear(g.items[:cap(g.items)])
	g.items = g.items[:0]
}

// group makes a group of the candidates of each region; members keep the order
// of the candidates.
func (g *regions) group(candidates []candidate, snapshot *framework.Snapshot) {
	if g.byName == nil {
		g.byName = map[string]int32{}
	}
	clear(g.byName)
	g.items, g.of, g.firstOf, g.chosen = g.items[:0], g.of[:0], g.firstOf[:0], g.chosen[:0]
	for i := range candidates {
		name := snapshot.At(int(candidates[i].at)).Object.Spec.Region
		id, ok := int32(-1), false
		// Most regions were met before; a cluster without one is in none.
		if name != "" {
			if id, ok = g.byName[name]; !ok {
				id = int32(len(g.items))
				g.byName[name] = id
				g.items = append(g.items, region{name: name, id: id})
				g.firstOf = append(g.firstOf, int32(i))
				g.chosen = append(g.chosen, false)
			}
			g.items[id].value++
		}
		g.of = append(g.of, id)
	}
	g.start = g.start[:0]
	at := int32(0)
	for i := range g.items {
		g.start = append(g.start, at)
		at += int32(g.items[i].value)
	}
	g.list = slices.Grow(g.list[:0], int(at))[:at]
	next := append([]int32(nil), g.start...)
	for i, id := range g.of {
		if id >= 0 {
			g.list[next[id]] = int32(i)
			next[id]++
		}
	}
}

// members returns the indices of the candidates in the region at an index of
// items.
func (g *regions) members(item int) []int32 {
	id := g.items[item].id
	return g.list[g.start[id] : g.start[id]+int32(g.items[item].value)]
}

// choose returns the indices of the items of the best set, best first, or nothing
// if there is no set with least members and between low and high regions. It
// sorts items.
func (g *regions) choose(least, low, high int) []int {
	slices.SortFunc(g.items, func(a, b region) int {
		return cmp.Or(cmp.Compare(a.value, b.value), cmp.Compare(b.weight, a.weight), cmp.Compare(a.name, b.name))
	})
	set := g.search.best(g.items, int64(max(least, 0)), max(low, 1), high)
	return shortest(g.items, set, int64(least), max(low, 1))
}

// shortest sorts a set by weight and name and cuts it to the shortest part from
// the front that the search meets as a set of its own.
func shortest(items []region, set []int, least int64, low int) []int {
	slices.SortFunc(set, func(a, b int) int {
		return cmp.Or(cmp.Compare(items[b].weight, items[a].weight), cmp.Compare(items[a].name, items[b].name))
	})
	var value int64
	last := -1
	for i, item := range set {
		value += items[item].value
		last = max(last, item)
		if i+1 < low || value < least {
			continue
		}
		// The search stops at the first set that suffices: this one is met only if
		// it does not suffice without its last region.
		if i+1 == low || value-items[last].value < least {
			return set[:i+1]
		}
	}
	return set
}

// search finds the best set of regions. The sets are those that a depth-first
// walk over the subsets of the sorted items meets first on each branch with
// enough regions and members: never more regions than the limit, and not enough
// without the last one. The best has the largest weight, then the largest value,
// then comes first in the walk. Subsets with the same next item, number of
// regions and members so far have the same continuations, so the walk is done
// backwards over those states, which are few, and not over the subsets, which are
// many.
type search struct {
	states []total
	takes  []uint64
	set    []int
}

// total is the weight and value of the rest of a set; value is -1 for none.
type total struct{ weight, value int64 }

func (t total) less(o total) bool {
	if t.weight != o.weight {
		return t.weight < o.weight
	}
	return t.value < o.value
}

// best returns the indices of the items of the best set in ascending order, or
// nothing.
func (s *search) best(items []region, least int64, low, high int) []int {
	s.set = s.set[:0]
	high = min(high, len(items))
	var all int64
	for i := range items {
		all += items[i].value
	}
	if high < low || all < least {
		return nil
	}
	width := int(least) + 1
	layer := high * width
	none := total{value: -1}
	s.states = slices.Grow(s.states[:0], layer)[:layer]
	for i := range s.states {
		s.states[i] = none
	}
	words := (len(items)*layer + 63) / 64
	s.takes = slices.Grow(s.takes[:0], words)[:words]
	clear(s.takes)
	for i := range slices.Backward(items) {
		s.step(items, i, width, low, high)
	}
	if s.states[0] == none {
		return nil
	}
	s.collect(items, width, low)
	return s.set
}

// step finds, for every number of regions and members, the best rest of a set
// from item i on, given the best from the next item on.
func (s *search) step(items []region, i, width, low, high int) {
	item := &items[i]
	for size := range min(high, i+1) {
		for members := range width {
			at := size*width + members
			after := min(members+int(min(item.value, int64(width))), width-1)
			take := total{value: -1}
			switch {
			case size+1 >= low && after == width-1:
				take = total{weight: item.weight, value: item.value}
			case size+1 < high:
				if rest := s.states[(size+1)*width+after]; rest.value >= 0 {
					take = total{weight: item.weight + rest.weight, value: item.value + rest.value}
				}
			}
			if take.value >= 0 && (s.states[at].value < 0 || !take.less(s.states[at])) {
				s.states[at] = take
				bit := i*high*width + at
				s.takes[bit/64] |= 1 << (bit % 64)
			}
		}
	}
}

// collect walks forward along the choices made.
func (s *search) collect(items []region, width, low int) {
	layer := len(s.states)
	size, members := 0, 0
	for i := range items {
		bit := i*layer + size*width + members
		if s.takes[bit/64]&(1<<(bit%64)) == 0 {
			continue
		}
		s.set = append(s.set, i)
		size++
		members = min(members+int(min(items[i].value, int64(width))), width-1)
		if size >= low && members == width-1 {
			return
		}
	}
}
