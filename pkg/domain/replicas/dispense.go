package replicas

import (
	"cmp"
	"slices"
)

// Party is one claimant of a division: Votes is its weight, Seats what it got.
type Party struct {
	Name  string
	Votes int64
	Seats int64
	// ID is not used here; it is for the caller.
	ID int32
}

// Tie orders parties with equal claims.
type Tie bool

// The values of Tie.
const (
	NameAscending  Tie = false
	NameDescending Tie = true
)

// TieOf derives the order of names from the UID of the template, so that over
// many templates no cluster is favored: descending when the low bit of the
// FNV-1a-32 hash of the UID is set.
func TieOf(uid string) Tie {
	if uid == "" {
		return NameAscending
	}
	hash := uint32(2166136261)
	for i := range len(uid) {
		hash = (hash ^ uint32(uid[i])) * 16777619
	}
	return Tie(hash&1 == 1)
}

// Dispense divides seats between the parties by highest averages with the
// divisors 1, 3, 5… (Webster, Sainte-Laguë): each seat goes to the party with the
// largest Votes/(2·Seats+1); among equals to the one with fewer seats, then by
// name. It sorts parties by name, sets their Seats, and reports whether there was
// anything to divide by: without votes all get 0.
func Dispense(seats int64, parties []Party, tie Tie) bool {
	byName := func(a, b Party) int { return cmp.Compare(a.Name, b.Name) }
	if !slices.IsSortedFunc(parties, byName) {
		slices.SortFunc(parties, byName)
	}
	var total float64
	for i := range parties {
		parties[i].Seats = 0
		total += float64(max(parties[i].Votes, 0))
	}
	if total == 0 {
		return false
	}
	d := dispenser{parties: parties, tie: tie}
	left := max(seats, 0) - d.prefill(seats, total)
	if len(parties) <= smallDivision {
		d.scan(left)
	} else {
		d.heap(left)
	}
	return true
}

// smallDivision is the number of parties up to which looking at each of them
// for every seat is faster than a heap.
const smallDivision = 16

type dispenser struct {
	parties []Party
	tie     Tie
}

func average(votes, seats int64) float64 {
	return float64(max(votes, 0)) / float64(2*seats+1)
}

// prefill hands out most seats at once. Every seat whose average lies above a
// threshold is dispensed before every seat below it, so with a threshold that at
// most that many averages exceed, the seats above it are a prefix of the
// sequence.
func (d *dispenser) prefill(seats int64, total float64) int64 {
	n := int64(len(d.parties))
	if seats <= 2*n {
		return 0
	}
	threshold := total / float64(2*seats-n)
	var given int64
	for i := range d.parties {
		p := &d.parties[i]
		p.Seats = int64(average(p.Votes, 0)/(2*threshold) + 0.5)
		for p.Seats > 0 && average(p.Votes, p.Seats-1) <= threshold {
			p.Seats--
		}
		for average(p.Votes, p.Seats) > threshold {
			p.Seats++
		}
		given += p.Seats
	}
	if given <= seats {
		return given
	}
	for i := range d.parties {
		d.parties[i].Seats = 0
	}
	return 0
}

// first reports whether party i gets a seat before party j.
func (d *dispenser) first(i, j int32, averages []float64) bool {
	if averages[i] != averages[j] {
		return averages[i] > averages[j]
	}
	if d.parties[i].Seats != d.parties[j].Seats {
		return d.parties[i].Seats < d.parties[j].Seats
	}
	return (i < j) != bool(d.tie)
}

func (d *dispenser) scan(left int64) {
	var space [smallDivision]float64
	averages := space[:len(d.parties)]
	for i := range d.parties {
		averages[i] = average(d.parties[i].Votes, d.parties[i].Seats)
	}
	for ; left > 0; left-- {
		best := int32(0)
		for i := int32(1); int(i) < len(averages); i++ {
			if d.first(i, best, averages) {
				best = i
			}
		}
		d.parties[best].Seats++
		averages[best] = average(d.parties[best].Votes, d.parties[best].Seats)
	}
}

func (d *dispenser) heap(left int64) {
	if left <= 0 {
		return
	}
	averages := make([]float64, len(d.parties))
	order := make([]int32, len(d.parties))
	for i := range d.parties {
		averages[i] = average(d.parties[i].Votes, d.parties[i].Seats)
		order[i] = int32(i)
	}
	down := func(at int) {
		for {
			child := 2*at + 1
			if child >= len(order) {
				return
			}
			if child+1 < len(order) && d.first(order[child+1], order[child], averages) {
				child++
			}
			if !d.first(order[child], order[at], averages) {
				return
			}
			order[at], order[child] = order[child], order[at]
			at = child
		}
	}
	for i := len(order)/2 - 1; i >= 0; i-- {
		down(i)
	}
	for ; left > 0; left-- {
		top := order[0]
		d.parties[top].Seats++
		averages[top] = average(d.parties[top].Votes, d.parties[top].Seats)
		down(0)
	}
}
