package eviction

import (
	"testing"
	"time"
)

func TestParseBudget(t *testing.T) {
	for text, want := range map[string]Budget{"": {}, "0": {}, "30": {Bindings: 30}, "10%": {Percent: 10}, "0.5%": {Percent: 0.5}, "100%": {Percent: 100}} {
		if got, err := ParseBudget(text); err != nil || got != want {
			t.Errorf("%q: %+v %v", text, got, err)
		}
	}
	for _, text := range []string{"-1", "1.5", "0%", "101%", "-5%", "NaN%", "%", "a", "10/m"} {
		if got, err := ParseBudget(text); err == nil {
			t.Errorf("%q: %+v", text, got)
		}
	}
}

func TestBudget_Wait(t *testing.T) {
	for name, tc := range map[string]struct {
		budget  Budget
		evicted []int // seconds before now
		total   int
		want    time.Duration
	}{
		"no limit":                              {Budget{}, []int{1, 1, 1}, 3, 0},
		"below":                                 {Budget{Bindings: 3}, []int{1, 59}, 3, 0},
		"reached: until the oldest is a minute": {Budget{Bindings: 2}, []int{10, 40}, 3, 20 * time.Second},
		"older ones do not count":               {Budget{Bindings: 2}, []int{10, 60}, 3, 0},
		"more than the limit, after a restart with another one": {Budget{Bindings: 1}, []int{10, 40}, 3, 50 * time.Second},
		"ten percent of 25 are two":                             {Budget{Percent: 10}, []int{10}, 25, 0},
		"and not three":                                         {Budget{Percent: 10}, []int{10, 20}, 25, 40 * time.Second},
		"at least one":                                          {Budget{Percent: 1}, nil, 5, 0},
		"and only one":                                          {Budget{Percent: 1}, []int{0}, 5, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			var evicted []time.Time
			for _, s := range tc.evicted {
				evicted = append(evicted, at(-s))
			}
			if got := tc.budget.Wait(evicted, tc.total, at(0)); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}
