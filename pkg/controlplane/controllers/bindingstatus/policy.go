package bindingstatus

import (
	"time"

	"github.com/karmada-toolkit/karmada/internal/debounce"
)

// Policy defines how long the status of a binding is delayed because it is about to
// change again. A status that is complete is written at once.
type Policy struct {
	// Failure is how long a failure must last. Default: 150 ms.
	Failure time.Duration
	// Stable limits how long objects may take to become healthy. Default: 1 s, up to
	// 10 s while other objects take that long, and 60 ms (15 s in total) for each
	// other binding that waits.
	Stable debounce.Limits
	// Pending is added while clusters have not reported at all. Default: 2 s.
	Pending time.Duration
	// Moving is added while a workload that is evicted is not healthy in other clusters.
	// Default: 20 s.
	Moving time.Duration
	// Interval is the minimum time between two writes. Default: 250 ms.
	Interval time.Duration
}

func (p *Policy) complete() {
	for _, d := range []struct {
		value    *time.Duration
		standard time.Duration
	}{
		{&p.Failure, 150 * time.Millisecond},
		{&p.Pending, 2 * time.Second},
		{&p.Moving, 20 * time.Second},
		{&p.Interval, 250 * time.Millisecond},
	} {
		if *d.value <= 0 {
			*d.value = d.standard
		}
	}
	if p.Stable == (debounce.Limits{}) {
		p.Stable = debounce.Limits{
			Stable: time.Second, StableMax: 10 * time.Second,
			PerWaiting: 60 * time.Millisecond, PerWaitingMax: 15 * time.Second,
		}
	}
}

// delay returns how long a status waits that differs since dirty from the one that
// was written at written, where objects get limit to become healthy.
func (p Policy) delay(s *summary, now, dirty, written time.Time, limit time.Duration) time.Duration {
	due := dirty
	switch s.progress {
	case failed:
		due = dirty.Add(p.Failure)
	case unstable:
		due = dirty.Add(limit)
	case pending, unreported:
		due = dirty.Add(limit + p.Pending)
	case stable:
	}
	if s.moving && s.progress != failed {
		due = dirty.Add(limit + max(p.Pending, p.Moving))
	}
	if next := written.Add(p.Interval); next.After(due) {
		due = next
	}
	return max(0, due.Sub(now))
}
