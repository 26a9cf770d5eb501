package bindingstatus

import (
	"time"

	"github.com/karmada-toolkit/karmada/internal/debounce"
)

// Pace says how long the status of a binding waits for more of it before it is
// written. What is complete is written at once.
type Pace struct {
	// Failure is how long a failure must last. Default 150 ms.
	Failure time.Duration
	// Settle is how long objects may take to become healthy: at least 1 s, up to
	// 10 s where they often take longer, and 60 ms up to 15 s more for each binding
	// that waits too.
	Settle debounce.Limits
	// Pending is how much longer clusters are waited for that did not report at
	// all. Default 2 s.
	Pending time.Duration
	// Interval is the least time between two writes. Default 250 ms.
	Interval time.Duration
}

func (p *Pace) complete() {
	for _, d := range []struct {
		value    *time.Duration
		standard time.Duration
	}{
		{&p.Failure, 150 * time.Millisecond},
		{&p.Pending, 2 * time.Second},
		{&p.Interval, 250 * time.Millisecond},
	} {
		if *d.value <= 0 {
			*d.value = d.standard
		}
	}
	if p.Settle == (debounce.Limits{}) {
		p.Settle = debounce.Limits{
			Stable: time.Second, StableMax: 10 * time.Second,
			PerWaiting: 60 * time.Millisecond, PerWaitingMax: 15 * time.Second,
		}
	}
}

// wait returns how long a status waits that differs since dirty from what was
// written at written. settle is how long objects may take to become healthy. 0
// means that it is written now.
func (p Pace) wait(c progress, now, dirty, written time.Time, settle time.Duration) time.Duration {
	due := dirty
	switch c {
	case failed:
		due = dirty.Add(p.Failure)
	case unsettled:
		due = dirty.Add(settle)
	case pending, silent:
		due = dirty.Add(settle + p.Pending)
	case settled:
	}
	if next := written.Add(p.Interval); next.After(due) {
		due = next
	}
	return max(0, due.Sub(now))
}
