package clustercondition

import (
	"testing"
	"time"
)

func TestFlapping(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(seconds int) time.Time { return now.Add(-time.Duration(seconds) * time.Second) }
	for name, tc := range map[string]struct {
		changes  []int // seconds before now
		last     int
		flapping bool
		want     bool
		after    time.Duration
		kept     int
	}{
		"three changes":                            {[]int{50, 40}, 30, false, false, 0, 3},
		"four":                                     {[]int{50, 40, 30}, 20, false, true, 40 * time.Second, 4},
		"the last one is known already":            {[]int{50, 40, 30}, 30, false, false, 0, 3},
		"older ones do not count":                  {[]int{60, 40, 30}, 20, false, false, 0, 3},
		"five: the last four are kept":             {[]int{50, 40, 30, 20}, 10, false, true, 50 * time.Second, 4},
		"it flaps until there was none for a time": {nil, 59, true, true, time.Second, 1},
		"and no longer":                            {[]int{80, 70}, 60, true, false, 0, 0},
		"of the future":                            {[]int{-5, -6, -7}, 10, false, false, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			f := FlapFacts{Now: now, Window: time.Minute, Last: at(tc.last), Flapping: tc.flapping}
			for _, s := range tc.changes {
				f.Changes = append(f.Changes, at(s))
			}
			changes, got, after := Flapping(f)
			if got != tc.want || after != tc.after || len(changes) != tc.kept {
				t.Errorf("%t for %s, %d changes; want %t for %s, %d", got, after, len(changes), tc.want, tc.after, tc.kept)
			}
		})
	}
}
