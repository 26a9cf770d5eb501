package replicas

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func seatsOf(parties []Party) []int64 {
	out := make([]int64, len(parties))
	for i := range parties {
		out[i] = parties[i].Seats
	}
	return out
}

func TestDispense(t *testing.T) {
	for _, tc := range []struct {
		name  string
		seats int64
		votes []int64
		uid   string
		want  []int64
	}{
		{"two to one", 7, []int64{2, 1}, "", []int64{5, 2}},
		{"one to three", 9, []int64{1, 3}, "", []int64{2, 7}},
		{"a tie goes to the party with fewer seats", 2, []int64{3, 1}, "", []int64{1, 1}},
		{"an even hash favors the first name", 3, []int64{1, 1}, "a", []int64{2, 1}},
		{"an odd hash favors the last name", 3, []int64{1, 1}, "b", []int64{1, 2}},
		{"no votes, no seats", 3, []int64{0, 0}, "", []int64{0, 0}},
		{"no seats", 0, []int64{1, 2}, "", []int64{0, 0}},
		{"a party without votes gets nothing", 5, []int64{0, 1}, "", []int64{0, 5}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			parties := make([]Party, len(tc.votes))
			for i, v := range tc.votes {
				parties[len(tc.votes)-1-i] = Party{Name: fmt.Sprintf("m%d", i), Votes: v}
			}
			Dispense(tc.seats, parties, TieOf(tc.uid))
			if diff := cmp.Diff(tc.want, seatsOf(parties)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// oneByOne is the definition, seat for seat.
func oneByOne(seats int64, parties []Party, tie Tie) {
	slices.SortFunc(parties, func(a, b Party) int { return strings.Compare(a.Name, b.Name) })
	for i := range parties {
		parties[i].Seats = 0
	}
	for ; seats > 0; seats-- {
		best := 0
		for i := 1; i < len(parties); i++ {
			a, b := &parties[i], &parties[best]
			qa, qb := float64(a.Votes)/float64(2*a.Seats+1), float64(b.Votes)/float64(2*b.Seats+1)
			switch {
			case qa != qb:
				if qa > qb {
					best = i
				}
			case a.Seats != b.Seats:
				if a.Seats < b.Seats {
					best = i
				}
			case bool(tie):
				best = i
			}
		}
		parties[best].Seats++
	}
}

func TestDispense_EqualsOneByOne(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		n := 1 + r.IntN(40)
		limit := []int64{2, 5, 100, 1 << 31}[r.IntN(4)]
		parties := make([]Party, n)
		for i := range parties {
			parties[i] = Party{Name: fmt.Sprintf("m%03d", i), Votes: r.Int64N(limit)}
		}
		parties[0].Votes++
		seats := r.Int64N(int64(1 + r.IntN(3000)))
		tie := Tie(r.IntN(2) == 1)
		want := slices.Clone(parties)
		oneByOne(seats, want, tie)
		r.Shuffle(n, func(i, j int) { parties[i], parties[j] = parties[j], parties[i] })
		Dispense(seats, parties, tie)
		if diff := cmp.Diff(want, parties); diff != "" {
			t.Fatal(diff)
		}
		var sum int64
		for i := range parties {
			sum += parties[i].Seats
		}
		if sum != seats {
			t.Fatalf("dispensed %d of %d", sum, seats)
		}
	}
}

func TestTieOf(t *testing.T) {
	if TieOf("") != NameAscending || TieOf("a") != NameAscending || TieOf("b") != NameDescending {
		t.Error("the low bit of the hash decides")
	}
}
