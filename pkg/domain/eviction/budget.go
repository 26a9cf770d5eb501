package eviction

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// BudgetWindow is the time to which a Budget applies.
const BudgetWindow = time.Minute

// Budget is how many bindings may be evicted in BudgetWindow. The zero value is no limit.
type Budget struct {
	// Bindings is a number of bindings.
	Bindings int
	// Percent is a share of all bindings, of which at least one may be evicted.
	Percent float64
}

// ParseBudget returns the budget of a text such as "30" or "10%"; nothing or 0 is no limit.
func ParseBudget(text string) (Budget, error) {
	if text == "" {
		return Budget{}, nil
	}
	if share, ok := strings.CutSuffix(text, "%"); ok {
		percent, err := strconv.ParseFloat(share, 64)
		if err != nil || percent <= 0 || percent > 100 || math.IsNaN(percent) {
			return Budget{}, fmt.Errorf("%q is not a percentage above 0%% and up to 100%%", text)
		}
		return Budget{Percent: percent}, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return Budget{}, fmt.Errorf("%q is neither a number of bindings such as 30, nor a percentage such as 10%%", text)
	}
	return Budget{Bindings: n}, nil
}

// Unlimited reports whether there is no limit.
func (b Budget) Unlimited() bool { return b == Budget{} }

// Wait returns the time until one more of all bindings may be evicted, 0 if it may be now. evicted are the times of
// earlier evictions, in any order.
func (b Budget) Wait(evicted []time.Time, bindings int, now time.Time) time.Duration {
	limit := b.Bindings
	switch {
	case b.Unlimited():
		return 0
	case b.Percent > 0:
		limit = max(1, int(b.Percent*float64(bindings)/100))
	}
	recent := slices.DeleteFunc(slices.Clone(evicted), func(t time.Time) bool { return now.Sub(t) >= BudgetWindow })
	if len(recent) < limit {
		return 0
	}
	slices.SortFunc(recent, time.Time.Compare)
	return recent[len(recent)-limit].Add(BudgetWindow).Sub(now)
}
