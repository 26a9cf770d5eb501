// Package evictions limits and records the evictions of a whole federation, by any controller.
package evictions

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karmada-toolkit/karmada/pkg/domain/eviction"
	"github.com/karmada-toolkit/karmada/pkg/domain/scope"
)

// countPeriod is how long a number of bindings counts for a budget that is a percentage.
const countPeriod = 10 * time.Second

// Limits stop evictions. The zero value stops none.
type Limits struct {
	// Hold reports whether a cluster must not be evicted now, because many clusters failed at once. Optional.
	Hold func(ctx context.Context, cluster string) (bool, error)
	// Budget limits the evictions of the whole federation. Optional.
	Budget Budget
}

// Budget limits the evictions of the whole federation. A Ledger is one.
type Budget interface {
	// Take takes one eviction from the budget, or returns the time until there is one.
	Take(ctx context.Context) (after time.Duration, err error)
	// Return gives one back that was not used.
	Return()
}

// Held reports whether a cluster must not be evicted now.
func (l Limits) Held(ctx context.Context, cluster string) (bool, error) {
	if l.Hold == nil {
		return false, nil
	}
	return l.Hold(ctx, cluster)
}

// Take takes one eviction from the budget, or returns the time until there is one.
func (l Limits) Take(ctx context.Context) (after time.Duration, err error) {
	if l.Budget == nil {
		return 0, nil
	}
	return l.Budget.Take(ctx)
}

// Return gives one eviction back that was not used.
func (l Limits) Return() {
	if l.Budget != nil {
		l.Budget.Return()
	}
}

// Ledger records evictions. It is safe for concurrent use.
type Ledger struct {
	budget eviction.Budget
	client client.Reader
	clock  clock.PassiveClock

	mu sync.Mutex
	// evicted are the times of the evictions of the last eviction.BudgetWindow.
	evicted  []time.Time
	bindings int
	// counted is when bindings were counted; zero until the evictions before the start of this process were read.
	counted time.Time
}

// NewLedger returns a Ledger that reads bindings from a cache.
func NewLedger(cache client.Reader, budget eviction.Budget, c clock.PassiveClock) *Ledger {
	return &Ledger{budget: budget, client: cache, clock: c}
}

// Take takes one eviction from the budget, or returns the time until there is one.
func (l *Ledger) Take(ctx context.Context) (after time.Duration, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock.Now()
	if l.counted.IsZero() || l.budget.Percent > 0 && now.Sub(l.counted) >= countPeriod {
		if err := l.count(ctx, now); err != nil {
			return 0, err
		}
	}
	l.evicted = slices.DeleteFunc(l.evicted, func(t time.Time) bool { return now.Sub(t) >= eviction.BudgetWindow })
	if after := l.budget.Wait(l.evicted, l.bindings, now); after > 0 {
		return after, nil
	}
	l.evicted = append(l.evicted, now)
	return 0, nil
}

// Return gives back the last eviction, which failed.
func (l *Ledger) Return() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.evicted); n > 0 {
		l.evicted = l.evicted[:n-1]
	}
}

// count counts the bindings that are scheduled or being evicted. The first time, it reads from their tasks which evictions
// another process recorded, so that a restart does not renew the budget.
func (l *Ledger) count(ctx context.Context, now time.Time) error {
	bindings := 0
	var evicted []time.Time
	for _, s := range scope.Bindings() {
		list := s.NewList()
		if err := l.client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return fmt.Errorf("listing %ss: %w", s.Kind, err)
		}
		for _, b := range list.Bindings() {
			spec := b.GetSpec()
			if len(spec.Clusters) > 0 || len(spec.GracefulEvictionTasks) > 0 {
				bindings++
			}
			for i := range spec.GracefulEvictionTasks {
				at := now // it gets its time with the next write
				// Users who may write bindings can set a time to come.
				if created := spec.GracefulEvictionTasks[i].CreationTimestamp; created != nil && created.Time.Before(now) {
					at = created.Time
				}
				if now.Sub(at) < eviction.BudgetWindow {
					evicted = append(evicted, at)
				}
			}
		}
	}
	if l.counted.IsZero() {
		l.evicted = evicted
	}
	l.bindings, l.counted = bindings, now
	return nil
}
